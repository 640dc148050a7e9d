package attribution

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

func TestSandboxesAreFoundWithoutBeingNamed(t *testing.T) {
	const (
		kubepods = "/kubepods/burstable/pod" + podUIDs
		systemd  = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12345678_1234_1234_1234_123456789abc.slice"
	)
	plain := []proc{
		{pid: 1, args: "/sbin/init", cgroup: v2("/init.scope")},
		{pid: 30, ppid: 1, args: "/usr/bin/dockerd", cgroup: v2("/system.slice/docker.service")},
		// A browser's renderer, a service's worker, a VM that is not Kata's.
		{pid: 31, ppid: 1, args: "chrome", cgroup: v2("/user.slice/app.scope")},
		{pid: 32, ppid: 31, nspid: "32 1", args: "chrome --type=renderer", cgroup: v2("/user.slice/app.scope")},
		{pid: 33, ppid: 1, args: "qemu-system-x86_64 -name windows", cgroup: v2("/machine.slice/qemu.scope")},
	}
	for name, c := range map[string]struct {
		procs []proc
		found string // name|engine|ids|group|workload|pause
	}{
		"nothing": {},
		"docker on cgroupfs, with its shim": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "containerd-shim-runc-v2 -namespace moby -id " + hex, cgroup: v1("/")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v1("/docker/" + hex)},
			},
			found: hex[:12] + "|docker|1|/docker/" + hex + "|61|0",
		},
		"docker on systemd, in the host's pid namespace": {
			procs: []proc{{pid: 61, ppid: 1, args: "/probe", cgroup: v2("/system.slice/docker-" + hex + ".scope")}},
			found: hex[:12] + "|docker|1|/system.slice/docker-" + hex + ".scope|61|0",
		},
		"podman, in groups of cgroupfs": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "conmon -c " + hex + " -r crun", cgroup: v1("/libpod_parent/conmon")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v1("/libpod_parent/libpod-" + hex)},
			},
			found: hex[:12] + "|podman|1|/libpod_parent/libpod-" + hex + "|61|0",
		},
		"podman, as a unit of systemd": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "conmon -c " + hex + " -r crun --exit-command /usr/bin/podman", cgroup: v2("/system.slice/web.service/runtime")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v2("/system.slice/web.service/libpod-payload-" + hex)},
			},
			found: hex[:12] + "|podman|1|/system.slice/web.service/libpod-payload-" + hex + "|61|0",
		},
		"a pod of a user's podman is one entry": {
			procs: []proc{
				{pid: 61, ppid: 1, nspid: "61 1", args: "/catatonit -P", cgroup: v2(user + "/user.slice/user-libpod_pod_" + hex + ".slice/libpod-" + hex + ".scope/container")},
				{pid: 62, ppid: 1, nspid: "62 1", args: "/probe", cgroup: v2(user + "/user.slice/user-libpod_pod_" + hex + ".slice/libpod-" + hex2 + ".scope/container")},
			},
			found: "pod " + hex[:12] + "|podman|2|" + user + "/user.slice/user-libpod_pod_" + hex + ".slice|62|61",
		},
		"a pod of podman's is one entry": {
			procs: []proc{
				{pid: 61, ppid: 1, nspid: "61 1", args: "/catatonit -P", cgroup: v2("/machine.slice/machine-libpod_pod_" + hex + ".slice/libpod-" + hex + ".scope")},
				{pid: 62, ppid: 1, nspid: "62 1", args: "/probe", cgroup: v2("/machine.slice/machine-libpod_pod_" + hex + ".slice/libpod-" + hex2 + ".scope")},
			},
			found: "pod " + hex[:12] + "|podman|2|/machine.slice/machine-libpod_pod_" + hex + ".slice|62|61",
		},
		"a pod of the kubelet's on cgroupfs: two containers, one shim": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "containerd-shim-runc-v2 -namespace k8s.io -id " + hex, cgroup: v1("/system.slice/containerd.service")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/pause", cgroup: v1(kubepods + "/" + hex)},
				{pid: 62, ppid: 60, nspid: "62 1", args: "/probe", cgroup: v1(kubepods + "/" + hex2)},
			},
			found: "pod " + podUIDs + "|containerd|2|" + kubepods + "|62|61",
		},
		"a pod of the kubelet's on systemd, with CRI-O": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "conmon -c " + hex + " --exit-dir /var/run/crio/exits", cgroup: v2(systemd + "/crio-conmon-" + hex + ".scope")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/pause", cgroup: v2(systemd + "/crio-" + hex + ".scope")},
			},
			found: "pod " + podUIDs + "|cri-o|1|" + systemd + "|0|61",
		},
		"a pod of CRI-O's without a kubelet: by the conmons in its group": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "conmon -c " + hex, cgroup: v1("/pods/p1")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/pause", cgroup: v1("/pods/p1/crio-" + hex)},
				{pid: 62, ppid: 1, args: "conmon -c " + hex2, cgroup: v1("/pods/p1")},
				{pid: 63, ppid: 62, nspid: "63 1", args: "/probe", cgroup: v1("/pods/p1/crio-" + hex2)},
			},
			found: hex[:12] + "|cri-o|2|/pods/p1|63|61",
		},
		"of a pod's containers the one that the shim is named after is its pause": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "containerd-shim-runc-v2 -namespace k8s.io -id " + hex2, cgroup: v1("/")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/hold", cgroup: v1("/k8s.io/" + hex2)},
				{pid: 62, ppid: 60, nspid: "62 1", args: "/probe", cgroup: v1("/k8s.io/" + hex)},
			},
			found: hex[:12] + "|containerd|2||62|61",
		},
		"pods of containerd's CRI without a kubelet: by the shim that both have": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "containerd-shim-runc-v2 -namespace k8s.io -id " + hex, cgroup: v1("/")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/pause", cgroup: v1("/k8s.io/" + hex)},
				{pid: 62, ppid: 60, nspid: "62 1", args: "/probe", cgroup: v1("/k8s.io/" + hex2)},
			},
			found: hex[:12] + "|containerd|2||62|61",
		},
		"containerd given a systemd path on cgroupfs": {
			procs: []proc{{pid: 61, ppid: 1, args: "/probe", cgroup: v1("/system.slice:cri-containerd:" + hex)}},
			found: hex[:12] + "|containerd|1|/system.slice:cri-containerd:" + hex + "|61|0",
		},
		"a bare runc, and another beside it": {
			procs: []proc{
				{pid: 61, ppid: 1, nspid: "61 1", args: "/probe", cgroup: v1("/tare-run-a/runc/c-0")},
				{pid: 62, ppid: 61, nspid: "62 2", args: "/probe", cgroup: v1("/tare-run-a/runc/c-0/below")},
				{pid: 63, ppid: 1, nspid: "63 1", args: "/probe", cgroup: v1("/tare-run-a/runc/c-1")},
			},
			found: "c-0|oci|1|/tare-run-a/runc/c-0|61|0 c-1|oci|1|/tare-run-a/runc/c-1|63|0",
		},
		"a bare runsc": {
			procs: []proc{
				{pid: 60, ppid: 1, nspid: "60 1", exe: "/usr/bin/runsc", args: "runsc-gofer gofer --bundle /b c1", cgroup: v1("/c1")},
				{pid: 61, ppid: 1, nspid: "61 1", exe: "/usr/bin/runsc", args: "runsc-sandbox boot --bundle=/b c1", cgroup: v1("/c1")},
				{pid: 62, ppid: 61, nspid: "62 11", exe: "/usr/bin/runsc", cgroup: v1("/c1")},
			},
			found: "c1|gvisor|1|/c1|61|0",
		},
		"containers within a container are part of it": {
			procs: []proc{
				{pid: 61, ppid: 1, nspid: "61 1", args: "dockerd", cgroup: v1("/docker/" + hex)},
				{pid: 62, ppid: 61, nspid: "62 8", args: "containerd-shim-runc-v2 -namespace moby -id " + hex2, cgroup: v1("/docker/" + hex)},
				{pid: 63, ppid: 62, nspid: "63 9 1", args: "/probe", cgroup: v1("/docker/" + hex + "/docker/" + hex2)},
			},
			found: hex[:12] + "|docker|1|/docker/" + hex + "|61|0",
		},
		"Kata in a pod of the kubelet's, all in the pod's group": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "containerd-shim-kata-v2 -namespace k8s.io -id " + hex, cgroup: v1(kubepods + "/kata_" + hex)},
				{pid: 61, ppid: 60, args: "/usr/bin/cloud-hypervisor --api-socket /run/vc/vm/" + hex + "/clh-api.sock", cgroup: v1(kubepods + "/kata_" + hex)},
			},
			found: "pod " + podUIDs + "|kata|1|" + kubepods + "|0|0",
		},
		"Kata without anything in the pod's group": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "containerd-shim-kata-v2 -namespace k8s.io -id " + hex, cgroup: v1("/kata_overhead/" + hex)},
				{pid: 61, ppid: 60, args: "virtiofsd --shared-dir=/run/kata-containers/shared/sandboxes/" + hex + "/shared", cgroup: v1("/kata_overhead/" + hex)},
			},
			found: hex[:12] + "|kata|1||0|0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := snapshot(t, tree(t, append(slices.Clone(plain), c.procs...)...))
			var got []string
			for i, f := range s.Sandboxes() {
				if f.Rule == "" || f.Box.Lane != i {
					t.Errorf("%+v", f)
				}
				got = append(got, fmt.Sprintf("%s|%s|%d|%s|%d|%d", f.Name, f.Engine, len(f.Box.IDs), f.Box.Group, f.Box.Workload, f.Box.Pause))
			}
			if strings.Join(got, " ") != c.found {
				t.Errorf("%s\nwant %s", strings.Join(got, " "), c.found)
			}
			// What was found holds all its processes, and nothing else.
			var boxes []Sandbox
			for _, f := range s.Sandboxes() {
				boxes = append(boxes, f.Box)
			}
			var problems record.Problems
			members := s.Members(boxes, nil, &problems)
			for _, p := range c.procs {
				if !slices.ContainsFunc(members, func(m Member) bool { return m.Pid == p.pid }) {
					t.Errorf("process %d is nobody's", p.pid)
				}
			}
			if len(members) != len(c.procs) {
				_, long := roles(members)
				t.Errorf("%d members%s", len(members), long)
			}
		})
	}
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
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
