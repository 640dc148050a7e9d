package attribution

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/record"
)

// A result is a line "name|engine|ids|group|workload|pause" for each sandbox.
func TestSandboxesAreFoundWithoutBeingNamed(t *testing.T) {
	plain := []proc{
		{pid: 1, args: "/sbin/init", cgroup: v2("/init.scope")},
		{pid: 30, ppid: 1, args: "/usr/bin/dockerd", cgroup: v2("/system.slice/docker.service")},
		// A browser's renderer, a service's worker, a VM that is not Kata's.
		{pid: 31, ppid: 1, args: "chrome", cgroup: v2("/user.slice/app.scope")},
		{pid: 32, ppid: 31, nspid: "32 1", args: "chrome --type=renderer", cgroup: v2("/user.slice/app.scope")},
		{pid: 33, ppid: 1, args: "qemu-system-x86_64 -name windows", cgroup: v2("/machine.slice/qemu.scope")},
	}
	golden.Cases(t, "testdata/found.txt", func(t *testing.T, input string) string {
		sandboxed := processesIn(t, input)
		_, s := snapshot(t, tree(t, append(slices.Clone(plain), sandboxed...)...))
		var got []string
		var boxes []Sandbox
		for i, f := range s.Sandboxes() {
			if f.Rule == "" || f.Box.Lane != i {
				t.Errorf("%+v", f)
			}
			boxes = append(boxes, f.Box)
			got = append(got, fmt.Sprintf("%s|%s|%d|%s|%d|%d", f.Name, f.Engine, len(f.Box.IDs), f.Box.Group, f.Box.Workload, f.Box.Pause))
		}
		// What was found holds all its processes, and nothing else.
		var problems record.Problems
		members := s.Members(boxes, nil, &problems)
		for _, p := range sandboxed {
			if !slices.ContainsFunc(members, func(m Member) bool { return m.Pid == p.pid }) {
				t.Errorf("process %d belongs to no sandbox", p.pid)
			}
		}
		check.Equal(t, "members", len(members), len(sandboxed))
		return shortened.Replace(strings.Join(got, "\n"))
	})
}

func TestPathsOfCgroupsTellTheContainer(t *testing.T) {
	for path, want := range map[string]string{
		"/docker/" + hex: hex + " docker",
		"/docker/abc":    "",
		"/supervisor/0123456789abcdef0123456789abcdef": "",
		"/system.slice/docker.service":                 "",
		"/":                                            "",
		"/machine.slice/libpod-" + hex + ".scope/container":       hex + " podman",
		"/kubepods/besteffort/pod" + podUIDs + "/" + hex:          hex + " kubernetes",
		"/podcast/pod" + podUIDs:                                  "",
		"/kata_overhead/x:y":                                      "x:y kata",
		"/kata-overhead.slice:runtime-rs:x":                       "x kata",
		"/default/kata_x":                                         "x kata",
		"/a:b:c":                                                  "c oci",
		"/user.slice/user-0.slice/docker-0123.scope":              "",
		"/docker/" + hex + "/kubepods/pod" + podUIDs + "/" + hex2: hex + " docker",
	} {
		p, ok := locate(path)
		got := ""
		if ok {
			got = p.id + " " + p.engine
		}
		check.Equal(t, path, got, want)
	}
}
