package attribution

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// The recorded sandbox uses cgroup v1 and sandbox_cgroup_only=false. QEMU runs without KVM.
// Two virtiofsds and vhost-device-vsock run through the dynamic linker.
func TestLiveKataSandboxIsChargedToItsGroups(t *testing.T) {
	root := kata(t)
	for name, box := range map[string]func(*Snapshot) Sandbox{
		"ID only":                              func(*Snapshot) Sandbox { return Sandbox{IDs: []string{"kk"}} },
		"ID and group":                         func(*Snapshot) Sandbox { return Sandbox{IDs: []string{"kk"}, Group: "/default/kk"} },
		"first process reported by the engine": func(*Snapshot) Sandbox { return Sandbox{IDs: []string{"kk"}, Workload: 26377} },
		"discovered": func(s *Snapshot) Sandbox {
			found := s.Sandboxes()
			must.That(t, len(found) == 1 && found[0].Name == "kk" && found[0].Engine == "kata" && found[0].Rule != "", "%+v", found)
			return found[0].Box
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := snapshot(t, root)
			var problems record.Problems
			boxes := []Sandbox{box(s)}
			members := s.Members(boxes, []int{500}, &problems)
			short, long := roles(members)
			want := "500=daemon@-1 26365=shim@0 26376=virtiofs@0 26377=vmm@0 26379=vmm@0 26387=virtiofs@0"
			check.That(t, short == want, "%s%s", short, long)
			processes := full(t, r, members)
			var memory int64
			for _, p := range processes {
				if p.Role != record.RoleDaemon {
					memory += p.PSSAnon + p.PSSShmem
				}
			}
			check.Equal(t, "anonymous and shared memory", memory, int64(138_116+232_923)<<10)
			i := slices.IndexFunc(processes, func(p record.Process) bool { return p.Pid == 26377 })
			vmm := processes[i]
			must.That(t, len(vmm.Groups) == 2 && len(vmm.Groups[0].Threads) == 3 && vmm.Groups[0].Paths["memory"] == "/kata_overhead/kk",
				"%+v", vmm.Groups)
			vcpu := vmm.Groups[1]
			check.That(t, len(vcpu.Threads) == 1 && vcpu.Names[0] == "CPU 0/TCG" && vcpu.Paths["memory"] == "/default/kk" &&
				vcpu.Paths["cpu"] == "/default/kk" && vcpu.Paths["pids"] == "/default/kk", "%+v", vcpu)
			check.That(t, vmm.VCPU == 3_900_000_000 && vmm.CPU == 4_180_000_000 && vmm.Threads == 4 && vmm.PageTables == 1008<<10 && vmm.RSS == 416068<<10,
				"%+v", vmm)
			groups := s.Charges(members, boxes)
			check.Equal(t, "charges", charges(groups), "/=shared@-1 /default/kk=pod@0 /kata_overhead/kk=overhead@0")
			check.Equal(t, "problems", problems.Gone+problems.Broken+problems.Denied+problems.Reused, 0)
		})
	}
}

const (
	podUIDs = "12345678-1234-1234-1234-123456789abc"
	hex     = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	hex2    = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	user    = "/user.slice/user-1000.slice/user@1000.service"
)

// A result has the roles, the charges, the CPU time of vCPUs, and the rule of each role.
func TestVariantsOfKataHaveTheirRoles(t *testing.T) {
	others := []proc{{pid: 1, args: "/sbin/init", cgroup: root1}, {pid: 2, args: "containerd", ppid: 1, cgroup: root1},
		{pid: 3, ppid: 1, args: "/opt/kata/bin/containerd-shim-kata-v2 -namespace k8s.io -id " + hex2, cgroup: v1("/kata_overhead/" + hex2)},
		{pid: 4, ppid: 3, args: "/usr/bin/qemu-system-x86_64 -name sandbox-" + hex2, cgroup: v1("/kata_overhead/" + hex2)}}
	golden.Cases(t, "testdata/variants.txt", func(t *testing.T, input string) string {
		box, rows, _ := strings.Cut(numbered.Replace(input), "\n")
		of := Sandbox{Lane: 3}
		must.OK(t, json.Unmarshal([]byte(box), &of))
		r, s := snapshot(t, tree(t, append(slices.Clone(others), processesIn(t, rows)...)...))
		var problems record.Problems
		members := s.Members([]Sandbox{of}, nil, &problems)
		short, _ := roles(members)
		processes := full(t, r, members)
		var vcpu int64
		rules := ""
		for _, p := range processes {
			vcpu += p.VCPU
			rules += fmt.Sprintf("\n  %d: %s", p.Pid, p.Rule)
		}
		return shortened.Replace(fmt.Sprintf("%s\n%s\n%d ns%s", short, charges(s.Charges(members, []Sandbox{of})), vcpu, rules))
	})
}

// A script of QEMU starts vhost-device-vsock. The process is in the cgroup of the thread
// that forked it.
func TestDeviceOfAVMMHasItsRoleInEveryGroup(t *testing.T) {
	t.Parallel()
	pod := "/kubepods/burstable/pod" + podUIDs + "/kata_" + hex
	for _, where := range []string{pod, "/default/kata_" + hex, "/default/" + hex, "/docker/" + hex, "/system.slice/docker-" + hex + ".scope"} {
		for _, outside := range []string{where, "/kata_overhead/" + hex} {
			_, s := snapshot(t, tree(t, proc{pid: 1, args: "/sbin/init", cgroup: root1},
				proc{pid: 10, ppid: 1, args: "/opt/kata/bin/containerd-shim-kata-v2 -namespace k8s.io -address a -id " + hex, cgroup: v1(outside)},
				proc{pid: 11, ppid: 10, args: "/usr/bin/qemu-system-x86_64 -name sandbox-" + hex, cgroup: v1(outside), threads: []thread{{comm: "CPU 0/KVM", cgroup: v1(where), ns: 5}}},
				proc{pid: 14, ppid: 11, args: "/usr/bin/vhost-device-vsock --vm guest-cid=3,uds-path=/tmp/vu.hvsock", cgroup: v1(where)}))
			boxes := map[string]Sandbox{"ID": {IDs: []string{hex}}, "ID and first process": {IDs: []string{hex}, Workload: 11}, "ID and group of the container": {IDs: []string{hex}, Group: where}}
			if found := s.Sandboxes(); len(found) == 1 {
				boxes["discovered"] = found[0].Box
			}
			for name, box := range boxes {
				var problems record.Problems
				short, long := roles(s.Members([]Sandbox{box}, nil, &problems))
				check.That(t, short == "10=shim@0 11=vmm@0 14=vmm@0" && len(boxes) == 4, "%s, VMM in %s, %s: %s%s", where, outside, name, short, long)
			}
		}
	}
}
