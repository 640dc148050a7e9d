package attribution

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

// The sandbox of testdata: cgroup v1, sandbox_cgroup_only=false, QEMU without
// KVM, two virtiofsds and vhost-device-vsock run through the dynamic linker.
func TestALiveKataSandboxIsChargedWhereItIs(t *testing.T) {
	root := kata(t)
	for name, box := range map[string]func(*Snapshot) Sandbox{
		"by its id alone":       func(*Snapshot) Sandbox { return Sandbox{IDs: []string{"kk"}} },
		"by its id and a group": func(*Snapshot) Sandbox { return Sandbox{IDs: []string{"kk"}, Group: "/default/kk"} },
		"by what an engine says: its first process is the VMM": func(*Snapshot) Sandbox { return Sandbox{IDs: []string{"kk"}, Workload: 26377} },
		"by nothing at all": func(s *Snapshot) Sandbox {
			found := s.Sandboxes()
			if len(found) != 1 || found[0].Name != "kk" || found[0].Engine != "kata" || found[0].Rule == "" {
				t.Fatalf("%+v", found)
			}
			return found[0].Box
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := snapshot(t, root)
			var problems record.Problems
			boxes := []Sandbox{box(s)}
			members := s.Members(boxes, []int{500}, &problems)
			short, long := roles(members)
			if want := "500=daemon@-1 26365=shim@0 26376=virtiofs@0 26377=vmm@0 26379=vmm@0 26387=virtiofs@0"; short != want {
				t.Errorf("%s%s", short, long)
			}
			processes := full(t, r, members)
			var memory int64
			for _, p := range processes {
				if p.Role != record.RoleDaemon {
					memory += p.PSSAnon + p.PSSShmem
				}
			}
			if want := int64(138_116+232_923) << 10; memory != want {
				t.Errorf("anonymous and shared memory %d, want %d", memory, want)
			}
			i := slices.IndexFunc(processes, func(p record.Process) bool { return p.Pid == 26377 })
			vmm := processes[i]
			if len(vmm.Groups) != 2 || len(vmm.Groups[0].Threads) != 3 || vmm.Groups[0].Paths["memory"] != "/kata_overhead/kk" {
				t.Fatalf("%+v", vmm.Groups)
			}
			vcpu := vmm.Groups[1]
			if len(vcpu.Threads) != 1 || vcpu.Names[0] != "CPU 0/TCG" || vcpu.Paths["memory"] != "/default/kk" || vcpu.Paths["cpu"] != "/default/kk" || vcpu.Paths["pids"] != "/default/kk" {
				t.Errorf("%+v", vcpu)
			}
			if vmm.VCPU != 3_900_000_000 || vmm.CPU != 4_180_000_000 || vmm.Threads != 4 || vmm.PageTables != 1008<<10 || vmm.RSS != 416068<<10 {
				t.Errorf("%+v", vmm)
			}
			groups := s.Charges(processes, boxes)
			if got, want := charges(groups), "/=shared@-1 /default/kk=pod@0 /kata_overhead/kk=overhead@0"; got != want {
				t.Errorf("%s", got)
			}
			if problems.Gone+problems.Broken+problems.Denied+problems.Reused != 0 {
				t.Errorf("%+v", problems)
			}
		})
	}
}

const (
	podUIDs = "12345678-1234-1234-1234-123456789abc"
	hex     = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	hex2    = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	user    = "/user.slice/user-1000.slice/user@1000.service"
)

func TestKatasVariantsAreToldApart(t *testing.T) {
	pod := "/kubepods/burstable/pod" + podUIDs
	shim := proc{pid: 10, ppid: 1, args: "/opt/kata/bin/containerd-shim-kata-v2 -namespace k8s.io -address a -id " + hex}
	with := func(p proc, cgroup string, threads ...thread) proc {
		p.cgroup, p.threads = cgroup, threads
		return p
	}
	qemu := proc{pid: 11, ppid: 10, args: "/usr/bin/qemu-system-x86_64 -name sandbox-" + hex + ",debug-threads=on -qmp unix:/run/vc/vm/" + hex + "/qmp.sock"}
	virtiofsd := proc{pid: 12, ppid: 10, args: "/usr/libexec/virtiofsd --shared-dir=/run/kata-containers/shared/sandboxes/" + hex + "/shared --fd=3"}
	second := proc{pid: 13, ppid: 12, args: virtiofsd.args, nspid: "13 1"}
	kvm := thread{comm: "CPU 0/KVM", ns: 700}
	for name, c := range map[string]struct {
		procs   []proc
		box     Sandbox
		roles   string
		charges string
		vcpu    int64
		rule    string
	}{
		"sandbox_cgroup_only=true: everything in the pod's group": {
			procs: []proc{with(shim, v1(pod+"/kata_"+hex)), with(qemu, v1(pod+"/kata_"+hex), kvm, thread{comm: "worker"}),
				with(virtiofsd, v1(pod+"/kata_"+hex)), with(second, v1(pod+"/kata_"+hex))},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3 12=virtiofs@3 13=virtiofs@3",
			charges: pod + "=pod@3 " + pod + "/kata_" + hex + "=pod@3 nested", vcpu: 700,
		},
		"sandbox_cgroup_only=true, known by the id alone": {
			procs:   []proc{with(shim, v1("/default/kata_"+hex)), with(qemu, v1("/default/kata_"+hex), kvm)},
			box:     Sandbox{IDs: []string{hex}},
			roles:   "10=shim@3 11=vmm@3",
			charges: "/default/kata_" + hex + "=pod@3", vcpu: 700,
		},
		"sandbox_cgroup_only=true, where Kata renamed the group that was asked for": {
			procs:   []proc{with(shim, v1("/default/kata_"+hex)), with(qemu, v1("/default/kata_"+hex), kvm)},
			box:     Sandbox{IDs: []string{hex}, Group: "/default/" + hex},
			roles:   "10=shim@3 11=vmm@3",
			charges: "/default/kata_" + hex + "=pod@3", vcpu: 700,
		},
		"sandbox_cgroup_only=false on cgroup v2: the whole VMM moves": {
			procs: []proc{with(shim, v2("/kata_overhead/"+hex)), with(qemu, v2(pod+"/"+hex), kvm),
				with(virtiofsd, v2("/kata_overhead/"+hex)), with(second, v2("/kata_overhead/"+hex))},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3 12=virtiofs@3 13=virtiofs@3",
			charges: "/kata_overhead/" + hex + "=overhead@3 " + pod + "=pod@3 " + pod + "/" + hex + "=pod@3 nested", vcpu: 700,
		},
		"a QEMU that does not name its threads: by the group that they are in": {
			procs: []proc{with(shim, v1("/kata_overhead/"+hex)),
				with(qemu, v1("/kata_overhead/"+hex), thread{ns: 5}, thread{cgroup: v1(pod + "/" + hex), ns: 900})},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3",
			charges: "/kata_overhead/" + hex + "=overhead@3 " + pod + "=pod@3 " + pod + "/" + hex + "=pod@3 nested", vcpu: 900,
			rule: "threads of the VMM in the pod's group",
		},
		"a QEMU that does not name its threads and is all in one group: by guest time": {
			procs: []proc{with(shim, v1(pod+"/kata_"+hex)),
				with(qemu, v1(pod+"/kata_"+hex), thread{ns: 5}, thread{ns: 900, guest: 80}, thread{ns: 70, guest: 1})},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3",
			charges: pod + "=pod@3 " + pod + "/kata_" + hex + "=pod@3 nested", vcpu: 970,
			rule: "threads with guest time",
		},
		"a VMM of another name, by its guest time": {
			procs: []proc{with(shim, v1(pod+"/kata_"+hex)),
				with(proc{pid: 11, ppid: 10, args: "/opt/site/hv"}, v1(pod+"/kata_"+hex), thread{ns: 700, guest: 60})},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3",
			charges: pod + "=pod@3 " + pod + "/kata_" + hex + "=pod@3 nested", vcpu: 700,
		},
		"a VMM of another name, by the guest that it runs": {
			procs: []proc{with(shim, v1(pod+"/kata_"+hex)),
				with(proc{pid: 11, ppid: 10, args: "/opt/site/hv --config /run/vc/vm/" + hex + "/c.json"}, v1(pod+"/kata_"+hex), kvm, thread{comm: "worker"}),
				with(proc{pid: 14, ppid: 11, args: "/opt/site/helper"}, v1(pod+"/kata_"+hex))},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3 14=vmm@3",
			charges: pod + "=pod@3 " + pod + "/kata_" + hex + "=pod@3 nested", vcpu: 700,
		},
		"a VMM of another name beside the pod's group": {
			procs: []proc{with(shim, v1("/kata_overhead/"+hex)),
				with(proc{pid: 11, ppid: 10, args: "/opt/site/hv"}, v1("/kata_overhead/"+hex), kvm)},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3",
			charges: "/kata_overhead/" + hex + "=overhead@3", vcpu: 700,
		},
		"cloud-hypervisor": {
			procs: []proc{with(shim, v1("/kata_overhead/"+hex)),
				with(proc{pid: 11, ppid: 10, args: "/usr/bin/cloud-hypervisor --api-socket /run/vc/vm/" + hex + "/clh-api.sock"}, v1("/kata_overhead/"+hex),
					thread{comm: "vmm", ns: 3}, thread{comm: "vcpu0", cgroup: v1(pod + "/" + hex), ns: 40}, thread{comm: "vcpu1", cgroup: v1(pod + "/" + hex), ns: 2})},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3",
			charges: "/kata_overhead/" + hex + "=overhead@3 " + pod + "=pod@3 " + pod + "/" + hex + "=pod@3 nested", vcpu: 42,
		},
		"Firecracker below a jailer, in a pid namespace of its own": {
			procs: []proc{with(shim, v1("/kata_overhead/"+hex)),
				with(proc{pid: 11, ppid: 10, nspid: "11 1", args: "/firecracker --id " + hex + " --config-file fcConfig.json"}, v1("/kata_overhead/"+hex),
					thread{comm: "fc_api", ns: 3}, thread{comm: "fc_vcpu 0", ns: 40}, thread{comm: "fc_vcpu 1", ns: 2})},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3",
			charges: "/kata_overhead/" + hex + "=overhead@3", vcpu: 42,
		},
		"Dragonball lives in the shim": {
			procs: []proc{with(shim, v1(pod+"/"+hex), thread{comm: "tokio-runtime-w", ns: 7}, thread{comm: "db_vcpu0", ns: 40}),
				with(virtiofsd, v1(pod+"/"+hex))},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 12=virtiofs@3",
			charges: pod + "=pod@3 " + pod + "/" + hex + "=pod@3 nested", vcpu: 40,
		},
		"runtime-rs on systemd": {
			procs: []proc{with(shim, v1("/kata-overhead.slice:runtime-rs:"+hex)),
				with(qemu, v1("/kata-overhead.slice:runtime-rs:"+hex), thread{comm: "CPU 0/KVM", ns: 700, cgroup: v1("/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + hex + ".scope")})},
			box:     Sandbox{IDs: []string{hex}},
			roles:   "10=shim@3 11=vmm@3",
			charges: "/kata-overhead.slice:runtime-rs:" + hex + "=overhead@3 /kubepods.slice/kubepods-pod1.slice/cri-containerd-" + hex + ".scope=pod@3", vcpu: 700,
		},
		"vhost's worker of the kernel is the VMM's": {
			procs: []proc{with(shim, v1("/kata_overhead/"+hex)), with(qemu, v1("/kata_overhead/"+hex), kvm),
				{pid: 20, ppid: 2, comm: "vhost-11", flags: 0x00200000, cgroup: v1("/kata_overhead/" + hex)},
				{pid: 21, ppid: 2, comm: "vhost-99", flags: 0x00200000, cgroup: root1}},
			box:     Sandbox{IDs: []string{hex}, Group: pod},
			roles:   "10=shim@3 11=vmm@3 20=vmm@3",
			charges: "/kata_overhead/" + hex + "=overhead@3", vcpu: 700,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.box.Lane = 3
			others := []proc{{pid: 1, args: "/sbin/init", cgroup: root1}, {pid: 2, args: "containerd", ppid: 1, cgroup: root1},
				{pid: 3, ppid: 1, args: "/opt/kata/bin/containerd-shim-kata-v2 -namespace k8s.io -id " + hex2, cgroup: v1("/kata_overhead/" + hex2)},
				{pid: 4, ppid: 3, args: "/usr/bin/qemu-system-x86_64 -name sandbox-" + hex2, cgroup: v1("/kata_overhead/" + hex2)}}
			r, s := snapshot(t, tree(t, append(others, c.procs...)...))
			var problems record.Problems
			members := s.Members([]Sandbox{c.box}, nil, &problems)
			short, long := roles(members)
			if short != c.roles {
				t.Errorf("%s\nwant %s%s", short, c.roles, long)
			}
			processes := full(t, r, members)
			var vcpu int64
			rules := ""
			for _, p := range processes {
				vcpu += p.VCPU
				rules += p.Rule + "\n"
			}
			if vcpu != c.vcpu || !strings.Contains(rules, c.rule) {
				t.Errorf("vCPU %d, want %d; %s", vcpu, c.vcpu, rules)
			}
			if got := charges(s.Charges(processes, []Sandbox{c.box})); got != c.charges {
				t.Errorf("%s\nwant %s", got, c.charges)
			}
		})
	}
}

// vhost-device-vsock, which QEMU's script starts, is where the thread that forked it was.
func TestWhatAVMMStartedIsItsOwnInEveryGroup(t *testing.T) {
	t.Parallel()
	pod := "/kubepods/burstable/pod" + podUIDs + "/kata_" + hex
	for _, where := range []string{pod, "/default/kata_" + hex, "/default/" + hex, "/docker/" + hex, "/system.slice/docker-" + hex + ".scope"} {
		for _, outside := range []string{where, "/kata_overhead/" + hex} {
			_, s := snapshot(t, tree(t, proc{pid: 1, args: "/sbin/init", cgroup: root1},
				proc{pid: 10, ppid: 1, args: "/opt/kata/bin/containerd-shim-kata-v2 -namespace k8s.io -address a -id " + hex, cgroup: v1(outside)},
				proc{pid: 11, ppid: 10, args: "/usr/bin/qemu-system-x86_64 -name sandbox-" + hex, cgroup: v1(outside), threads: []thread{{comm: "CPU 0/KVM", cgroup: v1(where), ns: 5}}},
				proc{pid: 14, ppid: 11, args: "/usr/bin/vhost-device-vsock --vm guest-cid=3,uds-path=/tmp/vu.hvsock", cgroup: v1(where)}))
			boxes := map[string]Sandbox{"by its id": {IDs: []string{hex}}, "by its first process": {IDs: []string{hex}, Workload: 11}, "by its group": {IDs: []string{hex}, Group: where}}
			if found := s.Sandboxes(); len(found) == 1 {
				boxes["by nothing at all"] = found[0].Box
			}
			for name, box := range boxes {
				var problems record.Problems
				if short, long := roles(s.Members([]Sandbox{box}, nil, &problems)); short != "10=shim@0 11=vmm@0 14=vmm@0" || len(boxes) != 4 {
					t.Errorf("%s, VMM in %s, %s: %s%s", where, outside, name, short, long)
				}
			}
		}
	}
}
