package attribution

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// An input has the sandbox, the daemons, and the processes. A result has the roles, the
// charges, and the rule for each role.
func TestEveryProcessOfASandboxHasItsRole(t *testing.T) {
	init := proc{pid: 1, args: "/sbin/init", cgroup: root1}
	golden.Cases(t, "testdata/members.txt", func(t *testing.T, input string) string {
		box, rows, _ := strings.Cut(numbered.Replace(input), "\n")
		var of struct {
			Sandbox
			Daemons []int
		}
		must.OK(t, json.Unmarshal([]byte(box), &of))
		_, s := snapshot(t, tree(t, append([]proc{init}, processesIn(t, rows)...)...))
		var problems record.Problems
		boxes := []Sandbox{of.Sandbox}
		members := s.Members(boxes, of.Daemons, &problems)
		short, long := roles(members)
		check.Equal(t, "problems", problems.Gone+problems.Broken+problems.Denied+problems.Reused, 0)
		return shortened.Replace(short + "\n" + charges(s.Charges(members, boxes)) + long)
	})
}

func TestNestedGroupsBelongToDifferentSandboxes(t *testing.T) {
	_, s := snapshot(t, tree(t,
		proc{pid: 61, ppid: 1, nspid: "61 1", args: "/probe", cgroup: v1("/g/c1")},
		proc{pid: 62, ppid: 1, nspid: "62 1", args: "/probe", cgroup: v1("/g/c1/inner/c2")}))
	var problems record.Problems
	boxes := []Sandbox{{Lane: 0, IDs: []string{"c1"}, Group: "/g/c1"}, {Lane: 1, IDs: []string{"c2"}, Group: "/g/c1/inner/c2"}}
	short, long := roles(s.Members(boxes, nil, &problems))
	check.That(t, short == "61=workload@0 62=workload@1", "%s", long)
}

func TestGroupOfPidOneBelongsToNoSandbox(t *testing.T) {
	_, s := snapshot(t, tree(t,
		proc{pid: 1, args: "/sbin/init", cgroup: v1("/outer")},
		proc{pid: 40, ppid: 1, args: "tare", cgroup: v1("/outer/below")},
		proc{pid: 60, ppid: 40, args: "launcher", cgroup: v1("/elsewhere")},
		proc{pid: 61, ppid: 60, args: "/probe", cgroup: v1("/outer")}))
	var problems record.Problems
	short, long := roles(s.Members([]Sandbox{{Workload: 61}}, nil, &problems))
	check.That(t, short == "61=workload@0", "%s", long)
}

func TestOrphansOfABareRuntimeHaveTheRoleRuntime(t *testing.T) {
	root := tree(t,
		proc{pid: 1, args: "/sbin/init", cgroup: root1},
		proc{pid: 40, ppid: 1, args: "tare overhead leaky", cgroup: root1},
		proc{pid: 50, ppid: 40, args: "tare-lane 0 1 2", cgroup: root1},
		proc{pid: 61, ppid: 50, nspid: "61 1", args: "/probe", cgroup: v1("/g/c1")},
		proc{pid: 62, ppid: 50, args: "helper", cgroup: root1}, // reparented by a double fork
		proc{pid: 63, ppid: 62, args: "its-child", cgroup: root1},
		proc{pid: 64, ppid: 40, args: "du", cgroup: root1},
		proc{pid: 70, ppid: 1, args: "tare-lane 0 1 2", cgroup: root1}, // a process of another run
		proc{pid: 71, ppid: 70, args: "helper", cgroup: root1})
	must.OK(t, os.Symlink("40", filepath.Join(string(root), "proc/self")))
	_, s := snapshot(t, root)
	var problems record.Problems
	short, long := roles(s.Members([]Sandbox{{Workload: 61, Group: "/g/c1"}}, nil, &problems))
	check.That(t, short == "62=runtime@-1 63=runtime@-1 61=workload@0", "%s", long)
}

// A result has a line "name|engine|ids|group|workload|pause" per sandbox.
func TestSandboxesAreDiscovered(t *testing.T) {
	plain := []proc{
		{pid: 1, args: "/sbin/init", cgroup: v2("/init.scope")},
		{pid: 30, ppid: 1, args: "/usr/bin/dockerd", cgroup: v2("/system.slice/docker.service")},
		// These are a renderer of a browser, a worker of a service, and a VM without Kata.
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
			check.That(t, f.Rule != "" && f.Box.Lane == i, "%+v", f)
			boxes = append(boxes, f.Box)
			got = append(got, fmt.Sprintf("%s|%s|%d|%s|%d|%d", f.Name, f.Engine, len(f.Box.IDs), f.Box.Group, f.Box.Workload, f.Box.Pause))
		}
		// Members returns exactly the processes of the discovered sandboxes.
		var problems record.Problems
		members := s.Members(boxes, nil, &problems)
		for _, p := range sandboxed {
			check.That(t, slices.ContainsFunc(members, func(m Member) bool { return m.Pid == p.pid }), "process %d belongs to no sandbox", p.pid)
		}
		check.Equal(t, "members", len(members), len(sandboxed))
		return shortened.Replace(strings.Join(got, "\n"))
	})
}

func TestCgroupPathIdentifiesTheContainer(t *testing.T) {
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

func TestProcessesRelatedToASandboxAreFound(t *testing.T) {
	t.Parallel()
	pod, system := v1("/pods/kk"), v1("/system/containerd")
	for name, c := range map[string]struct {
		other proc
		space string // network namespace of other
		want  int
	}{
		"unrelated process":                       {proc{ppid: 1, args: "/usr/bin/cc", cgroup: root1}, "net:[1]", 0},
		"process in the cgroup of the daemon":     {proc{ppid: 1, args: "/usr/bin/cc", cgroup: system}, "net:[1]", 0},
		"child of the daemon":                     {proc{ppid: 500, args: "/usr/bin/cc", cgroup: v1("/other")}, "net:[1]", 0},
		"foreign workload with the same name":     {proc{ppid: 1, args: "/probe", cgroup: root1}, "net:[3]", 0},
		"child of the shim in another cgroup":     {proc{ppid: 10, args: "/opt/helper", cgroup: v1("/other")}, "net:[1]", 1},
		"process with the name of the shim":       {proc{ppid: 1, args: "/opt/containerd-shim-runc-v2", cgroup: root1}, "net:[1]", 1},
		"process in the cgroup of the shim":       {proc{ppid: 1, args: "/opt/helper", cgroup: v1("/shims/kk")}, "net:[1]", 1},
		"process in the network of the container": {proc{ppid: 1, args: "/opt/helper", cgroup: root1}, "net:[2]", 1},
	} {
		c.other.pid = 90
		root := tree(t, proc{pid: 1, args: "/sbin/init", cgroup: root1}, proc{pid: 500, ppid: 1, args: "containerd", cgroup: system},
			proc{pid: 10, ppid: 1, args: "/usr/bin/containerd-shim-runc-v2 -namespace x -id kk", cgroup: v1("/shims/kk")},
			proc{pid: 11, ppid: 10, args: "/probe", cgroup: pod, nspid: "11 1"}, c.other)
		for pid, space := range map[int]string{1: "net:[1]", 500: "net:[1]", 10: "net:[1]", 11: "net:[2]", 90: c.space} {
			ns := filepath.Join(string(root), "proc", strconv.Itoa(pid), "ns")
			must.OK(t, os.MkdirAll(ns, 0o755))
			must.OK(t, os.Symlink(space, filepath.Join(ns, "net")))
		}
		_, s := snapshot(t, root)
		var problems record.Problems
		members := s.Members([]Sandbox{{IDs: []string{"kk"}, Group: "/pods/kk", Workload: 11}}, []int{500}, &problems)
		check.Equal(t, name, s.Related(members), c.want)
	}
}
