package attribution

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestEveryProcessOfASandboxHasItsRole(t *testing.T) {
	const docker = "/docker/" + hex
	init := proc{pid: 1, args: "/sbin/init", cgroup: root1}
	for name, c := range map[string]struct {
		procs   []proc
		box     Sandbox
		daemons []int
		roles   string
		charges string
		rules   []string // each is somewhere
	}{
		"a container of docker's, with an exec session and another container": {
			procs: []proc{
				{pid: 50, ppid: 1, args: "/usr/bin/dockerd -H unix:///x", cgroup: v1("/system.slice/docker.service")},
				{pid: 51, ppid: 50, args: "/usr/bin/docker-proxy -container-ip 172.17.0.2", cgroup: v1("/system.slice/docker.service")},
				{pid: 52, ppid: 50, args: "containerd --config c.toml", cgroup: v1("/system.slice/docker.service")},
				{pid: 60, ppid: 1, args: "/usr/bin/containerd-shim-runc-v2 -namespace moby -id " + hex + " -address a", cgroup: v1("/system.slice/docker.service"), threads: []thread{{}, {}}},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v1(docker)},
				{pid: 62, ppid: 61, nspid: "62 7", args: "/bin/child", cgroup: v1(docker)},
				{pid: 63, ppid: 60, nspid: "63 9", args: "/probe hold", cgroup: v1(docker)},
				{pid: 64, ppid: 60, args: "runc --root /r --log l exec --process p " + hex, cgroup: v1("/system.slice/docker.service")},
				{pid: 70, ppid: 1, args: "/usr/bin/containerd-shim-runc-v2 -namespace moby -id " + hex2 + " -address a", cgroup: v1("/system.slice/docker.service")},
				{pid: 71, ppid: 70, nspid: "71 1", args: "/probe", cgroup: v1("/docker/" + hex2)},
				{pid: 80, ppid: 1, args: "docker exec " + hex + " /probe hold", cgroup: v1("/user.slice")},
				{pid: 81, ppid: 1, args: "vim /x/" + hex, cgroup: v1("/user.slice")},
				{pid: 82, ppid: 71, nspid: "82 8", args: "containerd-shim-runc-v2 -id " + hex, cgroup: v1("/docker/" + hex2)},
			},
			box: Sandbox{IDs: []string{hex}, Workload: 61}, daemons: []int{50, 52},
			roles:   "50=daemon@-1 51=daemon@-1 52=daemon@-1 60=shim@0 61=workload@0 62=workload@0 63=workload@0 64=runtime@0 80=runtime@0",
			charges: docker + "=pod@0 /system.slice/docker.service=shared@-1 /user.slice=shared@-1",
			rules:   []string{"argument names the container", "the container's first process", "descends from the container's first process", "in the pod's cgroup", "started by the daemon"},
		},
		"podman: conmon in a cgroup of its own is overhead, a shared one is shared": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "/usr/bin/conmon --api-version 1 -c " + hex + " -u " + hex + " -r /usr/bin/runc -n tare", cgroup: v2("/machine.slice/libpod-conmon-" + hex + ".scope")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v2("/machine.slice/libpod-" + hex + ".scope/container")},
				{pid: 62, ppid: 1, args: "podman exec " + hex + " /probe", cgroup: v2("/user.slice")},
				{pid: 63, ppid: 62, args: "/usr/bin/conmon -c " + hex + " --exec-attach -r /usr/bin/runc", cgroup: v2("/machine.slice/libpod-conmon-" + hex + ".scope")},
				{pid: 64, ppid: 63, nspid: "64 3", args: "/probe", cgroup: v2("/machine.slice/libpod-" + hex + ".scope/container")},
				{pid: 99, ppid: 1, args: "bash", cgroup: v2("/user.slice")},
			},
			box:     Sandbox{IDs: []string{hex}, Workload: 61},
			roles:   "60=monitor@0 61=workload@0 62=runtime@0 63=monitor@0 64=workload@0",
			charges: "/machine.slice/libpod-" + hex + ".scope/container=pod@0 /machine.slice/libpod-conmon-" + hex + ".scope=overhead@0 /user.slice=shared@-1",
		},
		"podman on cgroupfs: the group of all monitors is nobody's own": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "/usr/bin/conmon --api-version 1 -c " + hex, cgroup: v1("/libpod_parent/conmon")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v1("/libpod_parent/libpod-" + hex)},
			},
			box:     Sandbox{IDs: []string{hex}, Workload: 61},
			roles:   "60=monitor@0 61=workload@0",
			charges: "/libpod_parent/conmon=shared@-1 /libpod_parent/libpod-" + hex + "=pod@0",
		},
		"a CRI-O pod: conmon in the pod's group, a pause and two containers": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "/usr/bin/conmon -c " + hex + " --exit-dir /var/run/crio/exits", cgroup: v1("/pods/p1")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/pause", cgroup: v1("/pods/p1/crio-" + hex)},
				{pid: 62, ppid: 1, args: "/usr/bin/conmon -c " + hex2, cgroup: v1("/pods/p1")},
				{pid: 63, ppid: 62, nspid: "63 1", args: "/probe", cgroup: v1("/pods/p1/crio-" + hex2)},
				{pid: 64, ppid: 63, nspid: "64 2", args: "qemu-system-x86_64 -name windows", cgroup: v1("/pods/p1/crio-" + hex2)},
			},
			box:     Sandbox{IDs: []string{hex, hex2}, Workload: 63, Pause: 61, Group: "/pods/p1"},
			roles:   "60=monitor@0 61=pause@0 62=monitor@0 63=workload@0 64=workload@0",
			charges: "/pods/p1=pod@0 /pods/p1/crio-" + hex + "=pod@0 nested /pods/p1/crio-" + hex2 + "=pod@0 nested",
		},
		"a pod whose group was asked for and holds no process itself": {
			procs:   []proc{{pid: 61, ppid: 1, nspid: "61 1", args: "/pause", cgroup: v1("/pods/p1/a")}, {pid: 63, ppid: 1, nspid: "63 1", args: "/probe", cgroup: v1("/pods/p1/b")}},
			box:     Sandbox{Workload: 63, Group: "/pods/p1"},
			roles:   "61=pause@0 63=workload@0",
			charges: "/pods/p1=pod@0 /pods/p1/a=pod@0 nested /pods/p1/b=pod@0 nested",
			rules:   []string{"program pause is the first process"},
		},
		"gVisor: sentry, gofer, the sentry's address spaces, an exec": {
			procs: []proc{
				{pid: 60, ppid: 1, comm: "exe", nspid: "60 1", exe: "/usr/bin/runsc", args: "runsc-gofer --root=/s gofer --bundle /b c1", cgroup: v1("/tare-run-a/c1")},
				{pid: 61, ppid: 1, comm: "exe", nspid: "61 1", exe: "/usr/bin/runsc", args: "runsc-sandbox --root=/s boot --bundle=/b c1", cgroup: v1("/tare-run-a/c1")},
				{pid: 62, ppid: 61, comm: "exe", nspid: "62 11", exe: "/usr/bin/runsc", cgroup: v1("/tare-run-a/c1")},
				{pid: 63, ppid: 62, comm: "exe", nspid: "63 12", exe: "/usr/bin/runsc", cgroup: v1("/tare-run-a/c1")},
				{pid: 64, ppid: 1, args: "/usr/bin/runsc --root /s exec c1 /probe", cgroup: root1},
				{pid: 70, ppid: 1, comm: "exe", nspid: "70 1", exe: "/usr/bin/runsc", args: "runsc-sandbox --root=/s boot --bundle=/b c2", cgroup: v1("/tare-run-a/c2")},
			},
			box:     Sandbox{IDs: []string{"c1"}, Workload: 61, Group: "/tare-run-a/c1"},
			roles:   "60=gofer@0 61=sentry@0 62=workload@0 63=workload@0 64=runtime@0",
			charges: "/=shared@-1 /tare-run-a/c1=pod@0",
			rules:   []string{"an address space in which the sentry runs the workload"},
		},
		"runc's init is the runtime's until it becomes the container's": {
			procs:   []proc{{pid: 61, ppid: 1, nspid: "61 1", comm: "runc:[2:INIT]", args: "runc init", cgroup: v1("/g/c1")}},
			box:     Sandbox{IDs: []string{"c1"}, Workload: 61, Group: "/g/c1"},
			roles:   "61=runtime@0",
			charges: "/g/c1=pod@0",
		},
		"host: plain processes in a group that others are in": {
			procs: []proc{
				{pid: 40, ppid: 1, args: "tare overhead", cgroup: v1("/user.slice")},
				{pid: 61, ppid: 40, args: "/probe", cgroup: v1("/user.slice")},
				{pid: 62, ppid: 61, args: "/child", cgroup: v1("/user.slice")},
				{pid: 63, ppid: 40, args: "/probe hold", cgroup: v1("/user.slice")},
				{pid: 64, ppid: 40, args: "/other", cgroup: v1("/user.slice")},
			},
			box:     Sandbox{Workload: 61, More: []int{63}},
			roles:   "61=workload@0 62=workload@0 63=workload@0",
			charges: "/user.slice=shared@-1",
		},
		"a first process that is in the daemon's group does not make that the pod's": {
			procs: []proc{
				{pid: 40, ppid: 1, args: "engined", cgroup: v1("/system.slice/e.service")},
				{pid: 60, ppid: 1, args: "containerd-shim-runc-v2 -id c1", cgroup: v1("/system.slice/e.service")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v1("/system.slice/e.service")},
			},
			box: Sandbox{IDs: []string{"c1"}, Workload: 61}, daemons: []int{40},
			roles:   "40=daemon@-1 60=shim@0 61=workload@0",
			charges: "/system.slice/e.service=shared@-1",
		},
		"a shim that names another id is found as the first process's parent": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "containerd-shim-runc-v2 -namespace c1 -id sandbox", cgroup: root1},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v1("/default/c1")},
			},
			box:     Sandbox{IDs: []string{"c1"}, Workload: 61, Group: "/default/c1"},
			roles:   "60=shim@0 61=workload@0",
			charges: "/=shared@-1 /default/c1=pod@0",
			rules:   []string{"parent of the container's first process"},
		},
		"what a shim starts in another group is another container's": {
			procs: []proc{
				{pid: 60, ppid: 1, args: "containerd-shim-runc-v2 -namespace k8s.io -id c1", cgroup: v1("/shims")},
				{pid: 61, ppid: 60, nspid: "61 1", args: "/probe", cgroup: v1("/default/c1")},
				{pid: 62, ppid: 60, args: "/in-the-hosts-pid-namespace", cgroup: v1("/default/c2")},
				{pid: 63, ppid: 60, args: "/usr/bin/helper", cgroup: v1("/shims")},
			},
			box:     Sandbox{IDs: []string{"c1"}, Workload: 61, Group: "/default/c1"},
			roles:   "60=shim@0 61=workload@0 63=shim@0",
			charges: "/default/c1=pod@0 /shims=shared@-1",
			rules:   []string{"started by the shim"},
		},
		"a process that left its container's group is still its own": {
			procs: []proc{
				{pid: 61, ppid: 1, nspid: "61 1", args: "/probe", cgroup: v1("/g/c1")},
				{pid: 62, ppid: 61, nspid: "62 2", args: "/escaped", cgroup: v1("/elsewhere")},
			},
			box:     Sandbox{IDs: []string{"c1"}, Workload: 61, Group: "/g/c1"},
			roles:   "61=workload@0 62=workload@0",
			charges: "/elsewhere=overhead@0 /g/c1=pod@0",
		},
		"a container that takes a shim's name stays a workload": {
			procs: []proc{
				{pid: 61, ppid: 1, nspid: "61 1", args: "conmon -c other", cgroup: v1("/g/c1")},
				{pid: 62, ppid: 61, nspid: "62 2", args: "runsc-sandbox boot other", cgroup: v1("/g/c1")},
			},
			box:     Sandbox{IDs: []string{"c1"}, Workload: 61, Group: "/g/c1"},
			roles:   "61=workload@0 62=workload@0",
			charges: "/g/c1=pod@0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := snapshot(t, tree(t, append([]proc{init}, c.procs...)...))
			var problems record.Problems
			boxes := []Sandbox{c.box}
			members := s.Members(boxes, c.daemons, &problems)
			short, long := roles(members)
			if short != c.roles {
				t.Errorf("%s\nwant %s%s", short, c.roles, long)
			}
			for _, rule := range c.rules {
				if !strings.Contains(long, rule) {
					t.Errorf("no rule %q%s", rule, long)
				}
			}
			if got := charges(s.Charges(full(t, r, members), boxes)); got != c.charges {
				t.Errorf("%s\nwant %s", got, c.charges)
			}
			if problems.Gone+problems.Broken+problems.Denied+problems.Reused != 0 {
				t.Errorf("%+v", problems)
			}
		})
	}
}

func TestSandboxesThatShareAGroupAreKeptApartByTheirProcesses(t *testing.T) {
	_, s := snapshot(t, tree(t,
		proc{pid: 61, ppid: 1, nspid: "61 1", args: "/probe", cgroup: v1("/g/c1")},
		proc{pid: 62, ppid: 1, nspid: "62 1", args: "/probe", cgroup: v1("/g/c1/inner/c2")}))
	var problems record.Problems
	boxes := []Sandbox{{Lane: 0, IDs: []string{"c1"}, Group: "/g/c1"}, {Lane: 1, IDs: []string{"c2"}, Group: "/g/c1/inner/c2"}}
	if short, long := roles(s.Members(boxes, nil, &problems)); short != "61=workload@0 62=workload@1" {
		t.Errorf("%s", long)
	}
}

func TestTheGroupOfTheMachinesFirstProcessIsNoSandboxs(t *testing.T) {
	_, s := snapshot(t, tree(t,
		proc{pid: 1, args: "/sbin/init", cgroup: v1("/outer")},
		proc{pid: 40, ppid: 1, args: "tare", cgroup: v1("/outer/below")},
		proc{pid: 60, ppid: 40, args: "launcher", cgroup: v1("/elsewhere")},
		proc{pid: 61, ppid: 60, args: "/probe", cgroup: v1("/outer")}))
	var problems record.Problems
	if short, long := roles(s.Members([]Sandbox{{Workload: 61}}, nil, &problems)); short != "61=workload@0" {
		t.Errorf("%s", long)
	}
}

func TestWhatABareRuntimeLeavesBehindIsItsOwn(t *testing.T) {
	root := tree(t,
		proc{pid: 1, args: "/sbin/init", cgroup: root1},
		proc{pid: 40, ppid: 1, args: "tare overhead leaky", cgroup: root1},
		proc{pid: 50, ppid: 40, args: "tare-lane 0 1 2", cgroup: root1},
		proc{pid: 61, ppid: 50, nspid: "61 1", args: "/probe", cgroup: v1("/g/c1")},
		proc{pid: 62, ppid: 50, args: "helper", cgroup: root1}, // by a double fork
		proc{pid: 63, ppid: 62, args: "its-child", cgroup: root1},
		proc{pid: 64, ppid: 40, args: "du", cgroup: root1},
		proc{pid: 70, ppid: 1, args: "tare-lane 0 1 2", cgroup: root1}, // another run's
		proc{pid: 71, ppid: 70, args: "helper", cgroup: root1})
	must.OK(t, os.Symlink("40", filepath.Join(string(root), "proc/self")))
	_, s := snapshot(t, root)
	var problems record.Problems
	if short, long := roles(s.Members([]Sandbox{{Workload: 61, Group: "/g/c1"}}, nil, &problems)); short != "62=runtime@-1 63=runtime@-1 61=workload@0" {
		t.Errorf("%s", long)
	}
}
