package ledger_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	sec = int64(1e9)
)

// node returns a host with 8 GiB of memory. The used memory has no breakdown by kind.
func node(used int64) record.Host {
	return record.Host{Total: 8 << 30, Free: 8<<30 - used, Available: 8<<30 - used, Refreshed: true}
}

func at(t int64, moment record.Moment, h record.Host) *record.Reading {
	r := &record.Reading{Type: record.TypeReading, Time: t, Target: "t", Moment: moment, Settled: true, Host: h}
	if moment == record.MomentBegin || moment == record.MomentEnd {
		r.Phase, r.Sandboxes = "idle", 1
	}
	return r
}

func process(pid, lane int, role record.Role, group string, anon, shmem, file int64) record.Process {
	return record.Process{Pid: pid, Start: uint64(pid), Name: "p", Role: role, Rule: "made up", Lane: lane, Threads: 1, Read: true,
		Groups: []record.Membership{{Paths: map[string]string{"memory": group, "cpuacct": group}}}, PSSAnon: anon, PSSShmem: shmem, PSSFile: file}
}

func group(path string, charge record.Charge, m record.GroupMemory, cpu int64) record.Group {
	return record.Group{Path: path, Charge: charge, Memory: &m, CPU: &cpu}
}

// kata returns the readings of a sandbox in shared/fixtures/kata. Everything is charged
// to the overhead group, except the CPU time of the vCPU thread, which is charged to the
// pod's group.
func kata() (before, begin, end *record.Reading) {
	all := func(cpu int64) []record.Process {
		over := "/kata_overhead/kk"
		shim := process(26365, 0, record.RoleShim, over, 9184*kib, 0, 38149*kib)
		fs := process(26376, 0, record.RoleVirtiofs, over, 244*kib, 0, 2145*kib)
		vmm := process(26377, 0, record.RoleVMM, over, 127948*kib, 231753*kib, 53007*kib)
		vsock := process(26379, 0, record.RoleVirtiofs, over, 364*kib, 137*kib, 2327*kib)
		fs2 := process(26387, 0, record.RoleVirtiofs, over, 376*kib, 1033*kib, 1759*kib)
		vmm.Groups = append(vmm.Groups, record.Membership{Paths: map[string]string{"memory": "/default/kk", "cpuacct": "/default/kk"}, Threads: []int{26381}, Names: []string{"CPU 0/TCG"}})
		vmm.CPU, vmm.VCPU = 4*sec+cpu, 3*sec+cpu
		return []record.Process{shim, fs, vmm, vsock, fs2}
	}
	before = at(3000*sec, record.MomentBefore, node(1<<30))
	begin = at(4000*sec, record.MomentBegin, node(1<<30+380*mib))
	begin.Processes = all(0)
	end = at(4010*sec, record.MomentEnd, node(1<<30+380*mib))
	end.Processes = all(5 * sec)
	end.Host.Slab = 6 * mib
	for _, r := range []*record.Reading{begin, end} {
		cpu := int64(0)
		if r == end {
			cpu = 5 * sec
		}
		r.Groups = []record.Group{
			group("/default/kk", record.ChargePod, record.GroupMemory{}, cpu),
			group("/kata_overhead/kk", record.ChargeOverhead, record.GroupMemory{Usage: 372 * mib, Anon: 138116 * kib, Shmem: 232923 * kib, File: 90000 * kib, Kernel: 4 * mib}, sec),
		}
	}
	end.Engine = []record.Statistic{{Lane: 0, Source: "ctr task metrics", Memory: 2 * mib, CPU: -1}}
	return before, begin, end
}

// books is a ledger with correct sums.
type books struct{ ledger.Ledger }

func closed(t *testing.T, before, begin, end *record.Reading) books {
	t.Helper()
	l := must.Get(ledger.Close(before, begin, end))(t)
	sum, uncharged := int64(0), int64(0)
	for _, r := range l.Rows {
		switch r.Role {
		case record.RoleKernelNode:
			uncharged = r.Memory.Kernel
		case record.RoleOthers, record.RoleCache:
		default:
			sum += r.Memory.Sum()
		}
	}
	check.That(t, sum == l.Sum && l.Residual == l.Node-l.Others-l.Uncharged-l.Sum && l.Uncharged == uncharged,
		"the rows add up to %d, the sum is %d; node %d − others %d has the residual %d", sum, l.Sum, l.Node, l.Others, l.Residual)
	return books{l}
}

// says lists expected figures of the ledger by name, see [books.all]. A string must be
// contained, or absent if it begins with "!". A nil figure is in no row.
type says map[string]any

func (b books) tell(t *testing.T, wanted says) {
	t.Helper()
	all := b.all()
	for name, want := range wanted {
		got, there := all[name]
		part, text := want.(string)
		part, not := strings.CutPrefix(part, "!")
		switch {
		case want == nil && !there:
		case text && there && strings.Contains(fmt.Sprint(got), part) != not:
		case !text && fmt.Sprint(got) == fmt.Sprint(want):
		default:
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// all returns the figures of rows by role, of groups by charge, and of the node.
func (b books) all() says {
	clock := func(cpu float64, known bool) any {
		if !known {
			return "?"
		}
		return math.Round(cpu*1e9) / 1e9
	}
	p := &b.Problems
	out := says{"complete": b.Complete, "gone": p.Gone, "reused": p.Reused, "backwards": p.Backwards, "node": b.Node, "others": b.Others,
		"cache charged": b.Cache.Charged, "cache mapped": b.Cache.Mapped}
	for _, r := range b.Rows {
		m := r.Memory
		maps.Copy(out, under(r.Role, says{"anon": m.Anon, "shmem": m.Shmem, "kernel": m.Kernel, "huge": m.Huge, "cache": m.Cache, "sum": m.Sum(),
			"cpu": clock(r.CPU, r.CPUKnown), "guest": r.GuestCPU, "why": strings.Join(r.Rules, "; "), "rules": len(r.Rules)}))
	}
	for _, g := range b.Groups {
		cpu := g.Over.Of("group-cpu")
		maps.Copy(out, under(g.Charge, says{"usage": g.Usage, "count": g.Count, "cpu": clock(cpu.Value, cpu.Known()), "roles": fmt.Sprint(g.Roles)}))
	}
	for _, p := range b.Places {
		maps.Copy(out, under(string(p.Role)+" place", says{"path": p.Path, "count": p.Count, "processes": p.Processes, "memory": p.Memory}))
	}
	for _, f := range slices.Concat(b.Engine, b.Host) {
		out[strings.TrimSpace(f.Quantity+" "+f.Labels.String())] = f.Value
	}
	return out
}

func under[T ~string](name T, all says) says {
	out := says{}
	for key, v := range all {
		out[string(name)+" "+key] = v
	}
	return out
}

func TestGuestTimeIsVCPUAndPodGroupTime(t *testing.T) {
	b, g, e := kata()
	closed(t, b, g, e).tell(t, says{
		"vcpu cpu": 0.5, "vcpu sum": 0, "vcpu cache": 0, "vmm cpu": 0,
		"pod cpu": 0.5, "pod roles": "[vcpu]", "overhead cpu": 0, "overhead roles": "[shim vmm virtiofs]",
	})
}

func TestReportedGuestThreadsHaveARow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *record.Process)
		says   says
	}{
		"threads that used time": {func(p *record.Process) { p.Groups = p.Groups[:1] },
			says{"vcpu cpu": 0.5, "vmm cpu": 0, "vmm guest": false, "vmm why": "!guest's own work"}},
		"threads in a group apart that used none yet": {func(p *record.Process) { p.VCPU = 0 },
			says{"vcpu cpu": 0, "vmm cpu": 0.5, "vmm guest": false, "vmm why": "!guest's own work"}},
		"vCPU threads unknown: all CPU time is the VMM's": {func(p *record.Process) { p.VCPU, p.Groups = 0, p.Groups[:1] },
			says{"vcpu cpu": nil, "vmm cpu": 0.5, "vmm guest": true, "vmm why": "guest's own work"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, g, e := kata()
			for _, r := range []*record.Reading{g, e} {
				c.change(&r.Processes[2])
				worker := process(26390, 0, record.RoleVMM, "/kata_overhead/kk", 0, 0, 0) // kvm-nx-lpage-recovery
				r.Processes = append(r.Processes, worker)
			}
			closed(t, b, g, e).tell(t, c.says)
		})
	}
}

// runc returns the readings of a container. The workload has its own cgroup, and the shim
// is in the daemon's.
func runc() (before, begin, end *record.Reading) {
	daemon := process(100, -1, record.RoleDaemon, "/sys/d", 50*mib, 0, 9*mib)
	before = at(10*sec, record.MomentBefore, node(1<<30))
	before.Host.Others = 100 * mib
	before.Processes = []record.Process{daemon}
	make := func(t int64, m record.Moment, cpu int64) *record.Reading {
		r := at(t, m, node(1<<30+80*mib))
		r.Host.Others = 102 * mib
		d := daemon
		d.PSSAnon, d.CPU = 53*mib, cpu/10
		work := process(200, 0, record.RoleWorkload, "/c", 64*mib, 0, mib)
		work.CPU = cpu / 5 // the rest is used by commands that have exited
		shim := process(201, 0, record.RoleShim, "/sys/d", 5*mib, 0, 2*mib)
		r.Processes = []record.Process{d, work, shim}
		r.Groups = []record.Group{group("/c", record.ChargePod, record.GroupMemory{Usage: 70 * mib, Anon: 64 * mib, Shmem: mib, Kernel: mib, File: 3 * mib}, cpu),
			group("/sys/d", record.ChargeShared, record.GroupMemory{Usage: 200 * mib}, 7*cpu)}
		return r
	}
	return before, make(20*sec, record.MomentBegin, 0), make(30*sec, record.MomentEnd, 5*sec)
}

func TestContainerLedger(t *testing.T) {
	incomplete := says{"complete": false}
	for _, tt := range []struct {
		name   string
		change func(before, begin, end *record.Reading)
		says   says
	}{
		{"growth of a daemon", nil, says{"daemon anon": 3 * mib, "daemon cache": 0}},
		{"replaced daemon is subtracted from the new one", func(_, _, e *record.Reading) { e.Processes[0].Start++ },
			says{"daemon anon": 3 * mib, "daemon cache": 0, "daemon cpu": "?"}},
		{"growth of others is not the sandbox's", nil, says{"node": 80 * mib, "others": 2 * mib}},
		{"unmapped shared memory is the workload's", nil, says{"workload anon": 64 * mib, "workload shmem": mib, "workload why": "not mapped by any process"}},
		{"unmapped shared memory of two sandboxes names the first cgroup", func(_, _, e *record.Reading) {
			e.Sandboxes, e.Processes[1].Role = 2, record.RoleSentry
			e.Processes = append(e.Processes, process(300, 1, record.RoleSentry, "/d", 0, 0, 0))
			d := group("/d", record.ChargePod, record.GroupMemory{Shmem: 2 * mib}, 0)
			d.Lane = 1
			e.Groups = append(e.Groups, d)
		}, says{"workload place path": "/c", "workload place count": 2, "workload place processes": 0, "workload place memory": 3 * mib}},
		{"unmapped shared memory next to a sentry is the workload's", func(_, _, e *record.Reading) { e.Processes[1].Role = record.RoleSentry }, says{"workload shmem": mib}},
		{"mapped shared memory is counted once", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Shmem = 30 * mib
			e.Processes[1].PSSShmem = 10 * mib
			e.Processes[2].PSSShmem = 20 * mib // a helper outside the group maps the same memory
		}, says{"workload shmem": 10 * mib, "shim shmem": 20 * mib}},
		{"nested cgroup is not summed again", func(_, g, e *record.Reading) {
			for _, r := range []*record.Reading{g, e} {
				r.Groups = append(r.Groups, group("/c/inner", record.ChargePod, record.GroupMemory{Usage: 70 * mib, Anon: 64 * mib, Kernel: mib, Shmem: mib}, 99))
			}
		}, says{"pod usage": 70 * mib, "pod count": 1, "workload shmem": mib}},
		{"own cgroup below a shared one is counted once", func(_, g, e *record.Reading) {
			for _, r := range []*record.Reading{g, e} {
				r.Groups[0].Nested = true
				r.Groups[1].Path = "/"
			}
		}, says{"pod usage": 70 * mib, "shared roles": "!workload"}},
		{"kernel memory is the charge of own cgroups and the use of members elsewhere", func(_, _, e *record.Reading) {
			e.Processes[2].Threads, e.Processes[2].PageTables = 10, 100*kib
			e.Processes[0].Threads = 3 // two more threads than before
		}, says{"kernel kernel": mib + 100*kib + 10*ledger.ThreadStack + 2*ledger.ThreadStack}},
		{"cgroup.memory=nokmem uses the members' kernel memory with a reason", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Kernel = 0
			e.Processes[1].Threads, e.Processes[1].PageTables = 4, 200*kib
			e.Processes[2].Threads = 0
		}, says{"kernel kernel": 200*kib + 4*ledger.ThreadStack, "kernel why": "nokmem"}},
		{"cgroup.memory=nokmem does not mention the charge", func(_, _, e *record.Reading) { e.Groups[0].Memory.Kernel = 0 }, says{"kernel why": "!are charged for"}},
		{"socket memory is charged but not in the node's figures", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Sock = 512 * kib
			e.Processes[2].Threads = 0
			e.Host.Slab = 3 * mib
		}, says{"kernel kernel": mib + 512*kib, "kernel, uncharged kernel": 2 * mib}},
		{"kernel memory of unknown kind in v2 is not subtracted from the node's", func(_, _, e *record.Reading) {
			m := e.Groups[0].Memory
			m.Slab, m.Stacks = 512*kib, 128*kib
			e.Processes[2].Threads = 0
			e.Host.Slab = 3 * mib
		}, says{"kernel kernel": mib, "kernel, uncharged kernel": 3*mib - 640*kib}},
		{"uncharged kernel memory keeps its sign", func(b, _, _ *record.Reading) { b.Host.Slab = 9 * mib }, says{"kernel, uncharged kernel": -10*mib - ledger.ThreadStack}},
		{"page cache has its own row", nil, says{"cache cache": 2 * mib, "cache sum": 0, "cache charged": 3 * mib, "cache mapped": 3 * mib}},
		{"exited commands are in the workload's CPU time", nil, says{"workload cpu": 0.5, "workload why": "cgroups less", "daemon cpu": 0.05}},
		{"CPU time of other members is subtracted from the cgroups'", func(_, _, e *record.Reading) {
			e.Processes[2].Groups = e.Processes[1].Groups
			e.Processes[2].CPU = sec
		}, says{"workload cpu": 0.4, "shim cpu": 0.1}},
		{"missing cgroup CPU time is replaced by the processes' with a reason", func(_, g, _ *record.Reading) { g.Groups[0].CPU = nil },
			says{"workload cpu": 0.1, "workload why": "CPU: its processes' own clocks"}},
		{"decreased process CPU time is counted and has no figure", func(_, g, _ *record.Reading) { g.Processes[0].CPU = 99 * sec }, says{"daemon cpu": "?", "backwards": 1}},
		{"decreased cgroup CPU time is not used", func(_, g, _ *record.Reading) { *g.Groups[0].CPU = 99 * sec }, says{"workload cpu": 0.1, "backwards": 2}},
		{"process born in the phase counts in full", func(_, _, e *record.Reading) {
			p := process(900, -1, record.RoleDaemon, "/sys/d", 0, 0, 0)
			p.Start, p.CPU = 2500, sec
			e.Processes = append(e.Processes, p)
		}, says{"daemon cpu": 0.15}},
		{"older process not read at the begin has no figure", func(_, g, _ *record.Reading) { g.Processes = g.Processes[1:] }, says{"daemon cpu": "?"}},
		{"missing begin leaves memory without CPU time", func(_, g, _ *record.Reading) { *g = record.Reading{} }, says{"daemon cpu": "?", "daemon anon": 3 * mib}},
		{"process without PSS makes the ledger incomplete", func(_, _, e *record.Reading) { e.Processes[2].Read = false }, incomplete},
		{"daemon without PSS before makes the ledger incomplete", func(b, _, _ *record.Reading) { b.Processes[0].Read = false }, incomplete},
		{"sandbox without processes and cgroups makes the ledger incomplete", func(_, _, e *record.Reading) { e.Sandboxes = 2 }, incomplete},
		{"new daemon after one vanished makes the ledger incomplete", func(b, _, e *record.Reading) { b.Problems.Gone, b.Processes = 1, nil }, incomplete},
		{"processes that exited during the reading are counted", func(_, _, e *record.Reading) { e.Problems.Gone, e.Problems.Reused = 2, 1 },
			says{"complete": true, "gone": 2, "reused": 1}},
		{"others use the remaining CPU time", func(_, _, e *record.Reading) { e.Host.Busy = 8 * sec }, says{"others cpu": 0.25}},
		{"denied file makes the ledger incomplete", func(_, _, e *record.Reading) { e.Problems.Denied = 1 }, incomplete},
		{"cgroup without memory makes the ledger incomplete", func(_, _, e *record.Reading) { e.Groups[0].Memory = nil }, incomplete},
		{"hugetlb pages mapped by virtiofsd are the guest's", func(_, _, e *record.Reading) {
			e.Processes[1].Role, e.Processes[1].Huge = record.RoleVMM, 512*mib
			e.Processes[2].Role, e.Processes[2].Huge = record.RoleVirtiofs, 512*mib
		}, says{"vmm huge": 512 * mib, "virtiofs huge": 0}},
		{"huge pages shared with a fork are counted once", huge(64 * mib), says{"workload huge": 64 * mib, "shim huge": 0}},
		{"separate huge pages of two processes are counted twice", huge(128 * mib), says{"workload huge": 64 * mib, "shim huge": 64 * mib}},
		{"shared memory also mapped by a daemon is counted once", mapped(40 * mib), says{"workload shmem": 20 * mib, "daemon shmem": 20 * mib}},
		{"unmapped part of shared memory is the workload's", mapped(50 * mib), says{"workload shmem": 30 * mib}},
		{"shared memory of two sandboxes is the workloads'", func(_, _, e *record.Reading) {
			e.Sandboxes = 2
			e.Groups[0].Memory.Shmem, e.Groups[0].Memory.Mapped, e.Groups[0].Memory.File = 40*mib, 40*mib, 0
			other := process(77, 1, record.RoleWorkload, "/d", 0, 20*mib, 0)
			e.Processes[1].PSSShmem, e.Processes = 20*mib, append(e.Processes, other)
		}, says{"workload shmem": 40 * mib}},
		// 5 of the additional 9 MiB may be the shim's, which is charged to the same cgroup.
		{"charged memory without a process has its row", func(_, _, e *record.Reading) { e.Groups[0].Memory.Anon += 9 * mib }, says{"unseen anon": 4 * mib, "unseen rules": 1}},
		{"little charged memory without a process is the kernel's delay", func(_, _, e *record.Reading) { e.Groups[0].Memory.Anon += 6 * mib }, says{"unseen anon": nil}},
		{"charged memory without a process may be of an exited process", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Anon += 9 * mib
			e.Problems.Gone = 1
		}, says{"unseen anon": nil}},
		{"engine statistics without a sandbox have no sum", func(_, _, e *record.Reading) {
			e.Sandboxes = 2
			e.Engine = []record.Statistic{{Lane: 0, Source: "docker stats", Memory: mib, CPU: -1}}
		}, says{"engine-memory source=docker stats of=reported": nil, "engine-cpu source=docker stats of=reported": nil}},
		{"node counters are rates", func(_, g, e *record.Reading) {
			e.Host.Busy, e.Host.WriteBytes, e.Host.Steal = 5*sec, 1000, sec
			g.Host.HavePSI, e.Host.HavePSI, e.Host.PSIIO = true, true, 5*sec
		}, says{"node-busy": 0.5, "node-steal": 0.1, "node-io of=written": 100, "node-pressure resource=cpu": 0, "node-pressure resource=io": 0.5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, g, e := runc()
			if tt.change != nil {
				tt.change(b, g, e)
			}
			if g.Host.Total == 0 {
				g = nil
			}
			closed(t, b, g, e).tell(t, tt.says)
		})
	}
}

// huge returns readings in which the workload and the shim map 64 MiB of huge pages each.
func huge(node int64) func(_, _, end *record.Reading) {
	return func(_, _, e *record.Reading) {
		e.Processes[1].Huge, e.Processes[2].Huge, e.Host.Huge = 64*mib, 64*mib, node
	}
}

// mapped returns readings in which the daemon and the workload share memory. charged is
// the part charged to the workload's group.
func mapped(charged int64) func(_, _, end *record.Reading) {
	return func(_, _, e *record.Reading) {
		m := e.Groups[0].Memory
		m.Shmem, m.Mapped, m.File = charged, 40*mib, 0
		e.Processes[0].PSSShmem, e.Processes[1].PSSShmem = 20*mib, 20*mib
	}
}

func TestLedgerNeedsBothReadings(t *testing.T) {
	b, g, e := runc()
	failed, empty := *e, *e
	failed.Failure = &record.Failure{Kind: record.FailExit, Detail: "it broke"}
	empty.Host = record.Host{}
	for name, x := range map[string][2]*record.Reading{"no end": {b, nil}, "no before": {nil, e}, "a failure": {b, &failed}, "no node": {b, &empty}, "an end before the begin": {e, b}} {
		_, err := ledger.Close(x[0], g, x[1])
		check.That(t, err != nil, "%s: closed", name)
	}
}
