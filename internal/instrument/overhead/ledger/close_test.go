package ledger_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	sec = int64(1e9)
)

// node is a host of 8 GiB of which used is in use, all of it in no kind.
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

// kata are the readings of a sandbox as shared/fixtures/kata has it: everything
// in the overhead group but the vCPU thread, whose CPU the pod's group has.
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

func closed(t *testing.T, before, begin, end *record.Reading) ledger.Ledger {
	t.Helper()
	l, err := ledger.Close(before, begin, end)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, r := range l.Rows {
		if r.Role != record.RoleOthers && r.Role != record.RoleCache && r.Role != record.RoleKernelNode {
			sum += r.Memory.Sum()
		}
	}
	if sum != l.Sum || l.Residual != l.Node-l.Others-l.Uncharged-l.Sum || l.Uncharged != row(t, &l, record.RoleKernelNode).Memory.Kernel {
		t.Errorf("the rows add up to %d, the sum is %d; node %d − others %d leaves %d", sum, l.Sum, l.Node, l.Others, l.Residual)
	}
	return l
}

func row(t *testing.T, l *ledger.Ledger, role record.Role) ledger.Row {
	t.Helper()
	i := slices.IndexFunc(l.Rows, func(r ledger.Row) bool { return r.Role == role })
	if i < 0 {
		t.Fatalf("no row %q", role)
	}
	return l.Rows[i]
}

func TestTimeOfAGuestIsTheVCPUsAndThePodGroups(t *testing.T) {
	b, g, e := kata()
	l := closed(t, b, g, e)
	if r := row(t, &l, record.RoleVCPU); !r.CPUKnown || r.CPU != 0.5 || r.Memory != (ledger.Memory{}) {
		t.Errorf("vcpu %+v", r)
	}
	if r := row(t, &l, record.RoleVMM); !r.CPUKnown || r.CPU != 0 {
		t.Errorf("vmm %+v", r)
	}
	pod, over := l.Groups[0], l.Groups[1]
	if pod.Charge != record.ChargePod || pod.CPU != 0.5 || !slices.Equal(pod.Roles, []record.Role{record.RoleVCPU}) {
		t.Errorf("pod %+v", pod)
	}
	if over.CPU != 0 || !over.CPUKnown || slices.Contains(over.Roles, record.RoleVCPU) || !slices.Contains(over.Roles, record.RoleVMM) {
		t.Errorf("overhead %+v", over)
	}
}

func TestAGuestsThreadsHaveARowWhereTheyWereTold(t *testing.T) {
	tests := []struct {
		name   string
		change func(p *record.Process)
		vcpu   bool
		vmm    float64
	}{
		{"threads that used time", func(p *record.Process) { p.Groups = p.Groups[:1] }, true, 0},
		{"threads in a group apart that used none yet", func(p *record.Process) { p.VCPU = 0 }, true, 0.5},
		{"none was told: all is the VMM's", func(p *record.Process) { p.VCPU, p.Groups = 0, p.Groups[:1] }, false, 0.5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, g, e := kata()
			for _, r := range []*record.Reading{g, e} {
				tt.change(&r.Processes[2])
				worker := process(26390, 0, record.RoleVMM, "/kata_overhead/kk", 0, 0, 0) // kvm-nx-lpage-recovery
				r.Processes = append(r.Processes, worker)
			}
			l := closed(t, b, g, e)
			if has := slices.ContainsFunc(l.Rows, func(r ledger.Row) bool { return r.Role == record.RoleVCPU }); has != tt.vcpu {
				t.Errorf("a row of vCPUs: %v", has)
			}
			r := row(t, &l, record.RoleVMM)
			if !r.CPUKnown || math.Abs(r.CPU-tt.vmm) > 1e-9 || r.GuestCPU == tt.vcpu {
				t.Errorf("%+v", r)
			}
			if said := slices.ContainsFunc(r.Rules, func(s string) bool { return strings.Contains(s, "guest's own work") }); said == tt.vcpu {
				t.Errorf("%q", r.Rules)
			}
		})
	}
}

// A container of runc: a workload in a group of its own, a shim in the daemon's.
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
		work.CPU = cpu / 5 // the rest is of commands that have ended
		shim := process(201, 0, record.RoleShim, "/sys/d", 5*mib, 0, 2*mib)
		r.Processes = []record.Process{d, work, shim}
		r.Groups = []record.Group{group("/c", record.ChargePod, record.GroupMemory{Usage: 70 * mib, Anon: 64 * mib, Shmem: mib, Kernel: mib, File: 3 * mib}, cpu),
			group("/sys/d", record.ChargeShared, record.GroupMemory{Usage: 200 * mib}, 7*cpu)}
		return r
	}
	return before, make(20*sec, record.MomentBegin, 0), make(30*sec, record.MomentEnd, 5*sec)
}

func TestBooksOfAContainer(t *testing.T) {
	tests := []struct {
		name   string
		change func(before, begin, end *record.Reading)
		check  func(t *testing.T, l *ledger.Ledger)
	}{
		{"a daemon has what it grew by", nil, func(t *testing.T, l *ledger.Ledger) {
			if m := row(t, l, record.RoleDaemon).Memory; m.Anon != 3*mib || m.Cache != 0 {
				t.Errorf("%+v", m)
			}
		}},
		{"a daemon that is new counts whole, and the one that it replaced is taken off", func(_, _, e *record.Reading) { e.Processes[0].Start++ }, func(t *testing.T, l *ledger.Ledger) {
			if m := row(t, l, record.RoleDaemon).Memory; m.Anon != 3*mib || m.Cache != 0 {
				t.Errorf("%+v", m)
			}
			if row(t, l, record.RoleDaemon).CPUKnown {
				t.Error("the CPU of a daemon that was replaced is known")
			}
		}},
		{"others' growth is no cost of the sandbox", nil, func(t *testing.T, l *ledger.Ledger) {
			if l.Node != 80*mib || l.Others != 2*mib {
				t.Errorf("node %d, others %d", l.Node, l.Others)
			}
		}},
		{"shared memory that nobody maps is the workload's", nil, func(t *testing.T, l *ledger.Ledger) {
			r := row(t, l, record.RoleWorkload)
			if r.Memory.Anon != 64*mib || r.Memory.Shmem != mib || !slices.ContainsFunc(r.Rules, func(s string) bool { return strings.Contains(s, "no process maps") }) {
				t.Errorf("%+v", r)
			}
		}},
		{"in the group of each sandbox, of which the first is named", func(_, _, e *record.Reading) {
			e.Sandboxes, e.Processes[1].Role = 2, record.RoleSentry
			e.Processes = append(e.Processes, process(300, 1, record.RoleSentry, "/d", 0, 0, 0))
			d := group("/d", record.ChargePod, record.GroupMemory{Shmem: 2 * mib}, 0)
			d.Lane = 1
			e.Groups = append(e.Groups, d)
		}, func(t *testing.T, l *ledger.Ledger) {
			i := slices.IndexFunc(l.Places, func(p ledger.Place) bool { return p.Role == record.RoleWorkload })
			if p := l.Places[i]; p.Path != "/c" || p.Count != 2 || p.Processes != 0 || p.Memory != 3*mib {
				t.Errorf("%+v", p)
			}
		}},
		{"also beside a sentry, which keeps it", func(_, _, e *record.Reading) { e.Processes[1].Role = record.RoleSentry }, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleWorkload); r.Memory.Shmem != mib {
				t.Errorf("%+v", r)
			}
		}},
		{"what a process maps is not counted twice", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Shmem = 30 * mib
			e.Processes[1].PSSShmem = 10 * mib
			e.Processes[2].PSSShmem = 20 * mib // a helper outside the group maps the same memory
		}, func(t *testing.T, l *ledger.Ledger) {
			if w, s := row(t, l, record.RoleWorkload).Memory.Shmem, row(t, l, record.RoleShim).Memory.Shmem; w+s != 30*mib {
				t.Errorf("%d and %d", w, s)
			}
		}},
		{"a nested group is not summed again, flagged or not", func(_, g, e *record.Reading) {
			for _, r := range []*record.Reading{g, e} {
				r.Groups = append(r.Groups, group("/c/inner", record.ChargePod, record.GroupMemory{Usage: 70 * mib, Anon: 64 * mib, Kernel: mib, Shmem: mib}, 99))
			}
		}, func(t *testing.T, l *ledger.Ledger) {
			if l.Groups[0].Usage != 70*mib || l.Groups[0].Count != 1 || row(t, l, record.RoleWorkload).Memory.Shmem != mib {
				t.Errorf("%+v", l.Groups[0])
			}
		}},
		{"an own group below a shared one still counts", func(_, g, e *record.Reading) {
			for _, r := range []*record.Reading{g, e} {
				r.Groups[0].Nested = true
				r.Groups[1].Path = "/"
			}
		}, func(t *testing.T, l *ledger.Ledger) {
			if l.Groups[0].Usage != 70*mib {
				t.Errorf("%+v", l.Groups[0])
			}
			if slices.Contains(l.Groups[1].Roles, record.RoleWorkload) {
				t.Errorf("the workload is in the root too: %+v", l.Groups[1])
			}
		}},
		{"kernel memory is what own groups are charged and what members elsewhere need", func(_, _, e *record.Reading) {
			e.Processes[2].Threads, e.Processes[2].PageTables = 10, 100*kib
			e.Processes[0].Threads = 3 // two more than before
		}, func(t *testing.T, l *ledger.Ledger) {
			if k := row(t, l, record.RoleKernel).Memory.Kernel; k != mib+100*kib+10*ledger.ThreadStack+2*ledger.ThreadStack {
				t.Errorf("%d", k)
			}
		}},
		{"under cgroup.memory=nokmem what members need is taken, and that is said", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Kernel = 0
			e.Processes[1].Threads, e.Processes[1].PageTables = 4, 200*kib
			e.Processes[2].Threads = 0
		}, func(t *testing.T, l *ledger.Ledger) {
			r := row(t, l, record.RoleKernel)
			if r.Memory.Kernel != 200*kib+4*ledger.ThreadStack || !slices.ContainsFunc(r.Rules, func(s string) bool { return strings.Contains(s, "nokmem") }) {
				t.Errorf("%+v", r)
			}
			if slices.ContainsFunc(r.Rules, func(s string) bool { return strings.Contains(s, "are charged for") }) {
				t.Errorf("%q", r.Rules)
			}
		}},
		{"sockets are charged and are in no book of the node", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Sock = 512 * kib
			e.Processes[2].Threads = 0
			e.Host.Slab = 3 * mib
		}, func(t *testing.T, l *ledger.Ledger) {
			if k, n := row(t, l, record.RoleKernel).Memory.Kernel, row(t, l, record.RoleKernelNode).Memory.Kernel; k != mib+512*kib || n != 2*mib {
				t.Errorf("%d, uncharged %d", k, n)
			}
		}},
		{"v2's kernel memory of no kind is not taken off the node's", func(_, _, e *record.Reading) {
			m := e.Groups[0].Memory
			m.Slab, m.Stacks = 512*kib, 128*kib
			e.Processes[2].Threads = 0
			e.Host.Slab = 3 * mib
		}, func(t *testing.T, l *ledger.Ledger) {
			if k, n := row(t, l, record.RoleKernel).Memory.Kernel, row(t, l, record.RoleKernelNode).Memory.Kernel; k != mib || n != 3*mib-640*kib {
				t.Errorf("%d, uncharged %d", k, n)
			}
		}},
		{"uncharged kernel memory keeps its sign", func(b, _, _ *record.Reading) { b.Host.Slab = 9 * mib }, func(t *testing.T, l *ledger.Ledger) {
			if n := row(t, l, record.RoleKernelNode).Memory.Kernel; n >= -9*mib {
				t.Errorf("%d", n)
			}
		}},
		{"page cache is apart", nil, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleCache); r.Memory.Cache != 2*mib || r.Memory.Sum() != 0 || l.Cache.Charged != 3*mib || l.Cache.Mapped != 3*mib {
				t.Errorf("%+v %+v", r, l.Cache)
			}
		}},
		{"commands that have ended are in the workload's time", nil, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleWorkload); !r.CPUKnown || r.CPU != 0.5 || !slices.ContainsFunc(r.Rules, func(s string) bool { return strings.Contains(s, "cgroups less") }) {
				t.Errorf("%+v", r)
			}
			if r := row(t, l, record.RoleDaemon); !r.CPUKnown || math.Abs(r.CPU-0.05) > 1e-9 {
				t.Errorf("%+v", r)
			}
		}},
		{"other members' time is taken off the groups'", func(_, _, e *record.Reading) {
			e.Processes[2].Groups = e.Processes[1].Groups
			e.Processes[2].CPU = sec
		}, func(t *testing.T, l *ledger.Ledger) {
			if w, s := row(t, l, record.RoleWorkload), row(t, l, record.RoleShim); w.CPU != 0.4 || s.CPU != 0.1 {
				t.Errorf("%+v %+v", w, s)
			}
		}},
		{"without a group's clock the processes' are taken, and that is said", func(_, g, _ *record.Reading) { g.Groups[0].CPU = nil }, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleWorkload); !r.CPUKnown || r.CPU != 0.1 || !slices.Contains(r.Rules, "CPU: its processes' own clocks") {
				t.Errorf("%+v", r)
			}
		}},
		{"a clock that went back is counted and gives no figure", func(_, g, _ *record.Reading) { g.Processes[0].CPU = 99 * sec }, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleDaemon); r.CPUKnown || r.CPU != 0 || l.Problems.Backwards != 1 {
				t.Errorf("%+v %+v", r, l.Problems)
			}
		}},
		{"a group's clock that went back is not used", func(_, g, _ *record.Reading) { *g.Groups[0].CPU = 99 * sec }, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleWorkload); r.CPU != 0.1 || l.Problems.Backwards == 0 {
				t.Errorf("%+v %+v", r, l.Problems)
			}
		}},
		{"one that began in the phase counts whole", func(_, _, e *record.Reading) {
			p := process(900, -1, record.RoleDaemon, "/sys/d", 0, 0, 0)
			p.Start, p.CPU = 2500, sec
			e.Processes = append(e.Processes, p)
		}, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleDaemon); !r.CPUKnown || math.Abs(r.CPU-0.15) > 1e-9 {
				t.Errorf("%+v", r)
			}
		}},
		{"one that was older and not read at the begin gives no figure", func(_, g, _ *record.Reading) { g.Processes = g.Processes[1:] }, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleDaemon); r.CPUKnown {
				t.Errorf("%+v", r)
			}
		}},
		{"without a begin there is memory and no time", func(_, g, _ *record.Reading) { *g = record.Reading{} }, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleDaemon); r.CPUKnown || r.Memory.Anon != 3*mib {
				t.Errorf("%+v", r)
			}
		}},
		{"a process without PSS makes the books incomplete", func(_, _, e *record.Reading) { e.Processes[2].Read = false }, incomplete},
		{"so does a daemon that could not be read before", func(b, _, _ *record.Reading) { b.Processes[0].Read = false }, incomplete},
		{"a sandbox without a trace makes them incomplete too", func(_, _, e *record.Reading) { e.Sandboxes = 2 }, incomplete},
		{"and a new daemon where one vanished", func(b, _, e *record.Reading) { b.Problems.Gone, b.Processes = 1, nil }, incomplete},
		{"processes that ended while they were read do not, and are counted", func(_, _, e *record.Reading) { e.Problems.Gone, e.Problems.Reused = 2, 1 }, func(t *testing.T, l *ledger.Ledger) {
			if !l.Complete || l.Problems.Gone != 2 || l.Problems.Reused != 1 {
				t.Errorf("%+v", l.Problems)
			}
		}},
		{"others use what the target does not", func(_, _, e *record.Reading) { e.Host.Busy = 8 * sec }, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleOthers); !r.CPUKnown || math.Abs(r.CPU-0.25) > 1e-9 {
				t.Errorf("%+v", r)
			}
		}},
		{"and whatever could not be read", func(_, _, e *record.Reading) { e.Problems.Denied = 1 }, incomplete},
		{"and a group with members whose memory was not read", func(_, _, e *record.Reading) { e.Groups[0].Memory = nil }, incomplete},
		{"hugetlb pages that virtiofsd maps are the guest's", func(_, _, e *record.Reading) {
			e.Processes[1].Role, e.Processes[1].Huge = record.RoleVMM, 512*mib
			e.Processes[2].Role, e.Processes[2].Huge = record.RoleVirtiofs, 512*mib
		}, func(t *testing.T, l *ledger.Ledger) {
			if row(t, l, record.RoleVMM).Memory.Huge != 512*mib || row(t, l, record.RoleVirtiofs).Memory.Huge != 0 {
				t.Error("not counted once")
			}
		}},
		{"huge pages that a fork maps too are counted once, as the node has them", func(_, _, e *record.Reading) {
			e.Processes[1].Huge, e.Processes[2].Huge = 64*mib, 64*mib
			e.Host.Huge = 64 * mib
		}, func(t *testing.T, l *ledger.Ledger) {
			if w, s := row(t, l, record.RoleWorkload).Memory.Huge, row(t, l, record.RoleShim).Memory.Huge; w != 64*mib || s != 0 {
				t.Errorf("%d and %d", w, s)
			}
		}},
		{"those of two who have their own are counted twice", func(_, _, e *record.Reading) {
			e.Processes[1].Huge, e.Processes[2].Huge = 64*mib, 64*mib
			e.Host.Huge = 128 * mib
		}, func(t *testing.T, l *ledger.Ledger) {
			if w, s := row(t, l, record.RoleWorkload).Memory.Huge, row(t, l, record.RoleShim).Memory.Huge; w != 64*mib || s != 64*mib {
				t.Errorf("%d and %d", w, s)
			}
		}},
		{"shared memory that a daemon maps too is counted once", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Shmem, e.Groups[0].Memory.Mapped, e.Groups[0].Memory.File = 40*mib, 40*mib, 0
			e.Processes[0].PSSShmem, e.Processes[1].PSSShmem = 20*mib, 20*mib
		}, func(t *testing.T, l *ledger.Ledger) {
			if w, d := row(t, l, record.RoleWorkload).Memory.Shmem, row(t, l, record.RoleDaemon).Memory.Shmem; w != 20*mib || d != 20*mib {
				t.Errorf("%d and %d", w, d)
			}
		}},
		{"and what of it nobody maps is still the workload's", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Shmem, e.Groups[0].Memory.Mapped, e.Groups[0].Memory.File = 50*mib, 40*mib, 0
			e.Processes[0].PSSShmem, e.Processes[1].PSSShmem = 20*mib, 20*mib
		}, func(t *testing.T, l *ledger.Ledger) {
			if w := row(t, l, record.RoleWorkload).Memory.Shmem; w != 30*mib {
				t.Errorf("%d", w)
			}
		}},
		{"as is that of two sandboxes", func(_, _, e *record.Reading) {
			e.Sandboxes = 2
			e.Groups[0].Memory.Shmem, e.Groups[0].Memory.Mapped, e.Groups[0].Memory.File = 40*mib, 40*mib, 0
			other := process(77, 1, record.RoleWorkload, "/d", 0, 20*mib, 0)
			e.Processes[1].PSSShmem, e.Processes = 20*mib, append(e.Processes, other)
		}, func(t *testing.T, l *ledger.Ledger) {
			if w := row(t, l, record.RoleWorkload).Memory.Shmem; w != 40*mib {
				t.Errorf("%d", w)
			}
		}},
		// The shim's 5 MiB may be charged there too.
		{"memory that is charged and in no process has its row", func(_, _, e *record.Reading) { e.Groups[0].Memory.Anon += 9 * mib }, func(t *testing.T, l *ledger.Ledger) {
			if r := row(t, l, record.RoleUnseen); r.Memory.Anon != 4*mib || len(r.Rules) != 1 {
				t.Errorf("%+v", r)
			}
		}},
		{"a little of it may be the kernel's late adding up", func(_, _, e *record.Reading) { e.Groups[0].Memory.Anon += 6 * mib }, noUnseen},
		{"and it may have ended while it was read", func(_, _, e *record.Reading) {
			e.Groups[0].Memory.Anon += 9 * mib
			e.Problems.Gone = 1
		}, noUnseen},
		{"an engine that leaves a sandbox out reports no sum", func(_, _, e *record.Reading) {
			e.Sandboxes = 2
			e.Engine = []record.Statistic{{Lane: 0, Source: "docker stats", Memory: mib, CPU: -1}}
		}, func(t *testing.T, l *ledger.Ledger) {
			if l.Engine[0].Reported != -1 {
				t.Errorf("%+v", l.Engine[0])
			}
		}},
		{"the node's counters are rates", func(_, g, e *record.Reading) {
			e.Host.Busy, e.Host.WriteBytes, e.Host.Steal = 5*sec, 1000, sec
			g.Host.HavePSI, e.Host.HavePSI, e.Host.PSIIO = true, true, 5*sec
		}, func(t *testing.T, l *ledger.Ledger) {
			if l.NodeCPU != 0.5 || l.NodeSteal != 0.1 || l.NodeIO.Write != 100 || !l.PSI.Known || l.PSI.IO != 0.5 {
				t.Errorf("%+v", l)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, g, e := runc()
			if tt.change != nil {
				tt.change(b, g, e)
			}
			if g.Host.Total == 0 {
				g = nil
			}
			l := closed(t, b, g, e)
			tt.check(t, &l)
		})
	}
}

func noUnseen(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	if slices.ContainsFunc(l.Rows, func(r ledger.Row) bool { return r.Role == record.RoleUnseen }) {
		t.Errorf("%+v", l.Rows)
	}
}

func incomplete(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	if l.Complete {
		t.Error("complete")
	}
}

func TestThereAreNoBooksWithoutBothEnds(t *testing.T) {
	b, g, e := runc()
	failed, empty := *e, *e
	failed.Failure = &record.Failure{Kind: record.FailExit, Detail: "it broke"}
	empty.Host = record.Host{}
	for name, x := range map[string][2]*record.Reading{"no end": {b, nil}, "no before": {nil, e}, "a failure": {b, &failed}, "no node": {b, &empty}, "an end before the begin": {e, b}} {
		if _, err := ledger.Close(x[0], g, x[1]); err == nil {
			t.Errorf("%s: closed", name)
		}
	}
}
