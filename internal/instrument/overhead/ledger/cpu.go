package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/record"
)

// tick is the unit of the clocks in /proc/PID/stat: USER_HZ is 100 on every
// supported architecture.
const tick = int64(10 * time.Millisecond)

const ownClocks = "CPU: its processes' own clocks"

// took returns the duration of the phase in ns, or 0 if its begin was not read.
func (b *books) took() int64 { return max(b.end.Time-b.begin.Time, 0) }

// used is the CPU time of a process in the phase, in ns.
type used struct {
	all, vcpu int64
	known     bool
}

// cpu adds CPU time. The source is the clock of each process, with one exception.
// Processes inside sandboxes may exit before the phase ends, such as commands of a
// workload or gVisor's address spaces. Their time would be lost. If the sandboxes have
// their own groups, the workload's time is that of the groups less their other members.
// Otherwise it is in the clocks of the parents that waited.
func (b *books) cpu() {
	took := b.took()
	if took == 0 {
		return
	}
	spent := map[*record.Process]used{}
	ns, unknown := map[record.Role]int64{}, map[record.Role]bool{}
	for p := range Each(b.end.Processes) {
		u := b.spent(p, b.began[idOf(p)])
		if p.Role == record.RoleRuntime && p.Lane < 0 && b.was[idOf(p)] != nil {
			u = used{known: true} // left over from earlier sandboxes, possibly of another target
		}
		spent[p] = u
		ns[p.Role] += u.all - u.vcpu
		unknown[p.Role] = unknown[p.Role] || !u.known
		if vcpusOf(p) {
			ns[record.RoleVCPU] += u.vcpu
			unknown[record.RoleVCPU] = unknown[record.RoleVCPU] || !u.known
			b.row(record.RoleVCPU).rule("the clocks of the threads that run guests")
		}
	}
	for role := range ns {
		if role != record.RoleVCPU {
			b.row(role).rule(ownClocks)
		}
	}
	b.guestsInside()
	b.lost(unknown)
	if !b.byGroups(spent, ns, unknown) {
		b.waited(ns)
	}
	b.ended(ns, unknown)
	for role, n := range ns {
		if r := b.row(role); !unknown[role] {
			r.CPU, r.CPUKnown = float64(n)/float64(took), true
		}
	}
}

// vcpusOf reports whether the vCPU threads of a process are known. Either they used CPU
// time, or those of a VMM are in a separate cgroup.
func vcpusOf(p *record.Process) bool {
	return p.VCPU > 0 || p.Role == record.RoleVMM && len(p.Groups) > 1
}

// guestsInside marks the VMM row if a sandbox has a VMM without known vCPU threads. The
// guest's work is then part of the VMM's time. The check is per sandbox, because kernel
// workers of a VMM have its role and no vCPU.
func (b *books) guestsInside() {
	vmm, told := map[int]bool{}, map[int]bool{}
	for p := range Each(b.end.Processes) {
		vmm[p.Lane] = vmm[p.Lane] || p.Role == record.RoleVMM
		told[p.Lane] = told[p.Lane] || vcpusOf(p)
	}
	for lane := range vmm {
		if vmm[lane] && !told[lane] {
			r := b.row(record.RoleVMM)
			r.GuestCPU = true
			r.rule("CPU: includes the guest's own work, because its vCPU threads could not be identified")
		}
	}
}

// spent returns the CPU time of a process in the phase. A new process counts in full
// if it began in the phase. If it merely was not read at the begin, its time is
// unknown: some of it may be older.
func (b *books) spent(p, old *record.Process) used {
	u := used{p.CPU, p.VCPU, true}
	if old != nil {
		u = used{p.CPU - old.CPU, p.VCPU - old.VCPU, true}
		if u.all < 0 || u.vcpu < 0 {
			b.backwards(fmt.Sprintf("the CPU time of %s (%d)", p.Name, p.Pid))
			return used{}
		}
	} else if p.Start < uint64(max(b.begin.Time, 0)/tick) { // CLOCK_BOOTTIME is never behind CLOCK_MONOTONIC
		return used{}
	}
	if u.vcpu > u.all {
		// Thread clocks may be finer than the clock of the process: allow a tick each.
		if u.vcpu-u.all > 2*tick*int64(max(p.Threads, 1)) {
			return used{}
		}
		u.all = u.vcpu
	}
	return u
}

// lost records the roles of processes that exited in the phase.
func (b *books) lost(unknown map[record.Role]bool) {
	ended := map[record.Role]int{}
	for p := range Each(b.begin.Processes) {
		if b.is[idOf(p)] == nil {
			ended[p.Role]++
		}
	}
	for role, n := range ended {
		r := b.row(role)
		r.rule(fmt.Sprintf("%d processes that exited in the phase are not included", n))
		if role == record.RoleVMM || role == record.RoleDaemon {
			unknown[role] = true // the main process of the role has exited, and the remaining ones do not replace it
		}
	}
}

// byGroups sets the workload's CPU time from the sandboxes' groups. It returns false
// unless all of the workload is in groups that were read at both ends.
func (b *books) byGroups(spent map[*record.Process]used, ns map[record.Role]int64, unknown map[record.Role]bool) bool {
	const role = record.RoleWorkload
	if b.owner(-1) != role {
		return false
	}
	inside, others, members := 0, int64(0), int64(0)
	for p := range Each(b.end.Processes) {
		main, guest := b.chargedTo(p)
		u := spent[p]
		switch {
		case p.Role == role && !main:
			return false // some are elsewhere: two clocks would be mixed
		case p.Role == role:
			inside++
			continue
		case !main && !guest:
			continue
		case !u.known:
			return false
		}
		members++
		if main {
			others += u.all - u.vcpu
		}
		if guest {
			others += u.vcpu
		}
	}
	if inside == 0 {
		return false
	}
	total, known := b.groupTime(b.cpuTops)
	if !known {
		return false
	}
	r, rest := b.row(role), total-others
	if rest < -2*tick*(members+1) {
		unknown[role] = true
		r.rule("CPU: unknown, the other members of its cgroups used more than the cgroups did")
		return true
	}
	ns[role], unknown[role] = max(rest, 0), false
	if i := slices.Index(r.Rules, ownClocks); i >= 0 {
		r.Rules[i] = "CPU: the clocks of the sandboxes' cgroups less those of their other members"
	}
	return true
}

// waited adds the time of children that exited in the phase and that a process still
// running has waited for. Children without a wait (SIGCHLD ignored) are in no clock,
// see times(2).
func (b *books) waited(ns map[record.Role]int64) {
	sum := int64(0)
	for p := range Each(b.end.Processes) {
		if p.Role == record.RoleWorkload {
			sum += p.Waited
			if old := b.began[idOf(p)]; old != nil {
				sum -= old.Waited
			}
		}
	}
	if sum <= 0 {
		return
	}
	parents := map[int]*record.Process{}
	for p := range Each(b.begin.Processes) {
		parents[p.Pid] = p
	}
	gone := func(p *record.Process) bool { return b.is[idOf(p)] == nil }
	for p := range Each(b.begin.Processes) {
		if p.Role != record.RoleWorkload || !gone(p) {
			continue
		}
		up := parents[p.PPid]
		for n := 0; up != nil && gone(up) && n < len(parents); n++ {
			up = parents[up.PPid]
		}
		if up != nil { // the clock of up also contains p's time before the phase
			sum -= p.CPU + p.Waited
		}
	}
	ns[record.RoleWorkload] += max(sum, 0)
	b.row(record.RoleWorkload).rule("CPU: plus children that exited in the phase, by the clocks of the processes that waited for them")
}

// ended adds the time of commands that exited in the phase, if no cgroup of the
// sandboxes accounts it. The kernel reports that time at wait; without it the time
// is unknown.
func (b *books) ended(ns map[record.Role]int64, unknown map[record.Role]bool) {
	w := b.end.Work
	if w == nil || w.Ended == 0 || len(b.cpuTops) > 0 {
		return
	}
	r := b.row(record.RoleWorkload)
	if w.CPU == 0 {
		unknown[record.RoleWorkload] = true
		r.rule("CPU: unknown, the commands have exited and no own cgroup accounts it")
		return
	}
	ns[record.RoleWorkload] += w.CPU
	r.rule("CPU: plus the time that the kernel reported for commands at their exit")
}

// chargedTo reports whether the time of a process, and of its vCPU threads, is
// charged to the sandboxes' own groups.
func (b *books) chargedTo(p *record.Process) (main, guest bool) {
	for i := range p.Groups {
		guest = holder(b.cpuTops, cpuPath(&p.Groups[i])) != nil
		main = main || i == 0 && guest
	}
	return main, guest
}

// othersCPU sets the CPU time of the node beyond the target's rows, if all of these
// are known. Its resolution is that of the node's clock: one tick per CPU.
func (b *books) othersCPU(others *Row) {
	if b.took() == 0 || b.end.Host.Busy < b.begin.Host.Busy {
		return
	}
	rest := b.l.Host.Of("node-busy").Value
	for _, role := range Order(b.rows) { // a fixed order gives the same rounding every time
		r := b.rows[role]
		if r.Processes > 0 && !r.CPUKnown && r != others {
			return
		}
		rest -= r.CPU
	}
	others.CPU, others.CPUKnown = max(rest, 0), true
	others.rule("CPU: the node's busy time less the target's")
}

// node sets the figures of the whole node over the phase.
func (b *books) node() {
	host, g, h, took := &b.l.Host, &b.begin.Host, &b.end.Host, b.took()
	rate := func(what string, from, to int64) float64 {
		switch {
		case took == 0:
			return 0
		case to < from:
			b.backwards(what)
			return 0
		}
		return float64(to-from) / float64(took)
	}
	put(host, "node-available", float64(h.Available))
	put(host, "node-busy", rate("the node's CPU time", g.Busy, h.Busy))
	put(host, "node-steal", rate("the node's stolen time", g.Steal, h.Steal))
	put(host, "node-iowait", rate("the node's time of waiting for I/O", g.IOWait, h.IOWait))
	put(host, "node-io", 1e9*rate("the disks' bytes read", g.ReadBytes, h.ReadBytes), "of", "read")
	put(host, "node-io", 1e9*rate("the disks' bytes written", g.WriteBytes, h.WriteBytes), "of", "written")
	put(host, "node-load", h.Load1)
	if took > 0 && g.HavePSI && h.HavePSI {
		put(host, "node-pressure", min(rate("cpu pressure", g.PSICPU, h.PSICPU), 1), "resource", "cpu")
		put(host, "node-pressure", min(rate("memory pressure", g.PSIMemory, h.PSIMemory), 1), "resource", "memory")
		put(host, "node-pressure", min(rate("io pressure", g.PSIIO, h.PSIIO), 1), "resource", "io")
	}
}

// CPU returns the known CPU time of a target's roles between two readings, without
// other processes. whole is true if it is known for every role with processes.
func CPU(begin, end *record.Reading) (all []record.RoleTime, whole bool) {
	l, err := Close(begin, begin, end)
	took := end.Time - begin.Time
	if err != nil || took <= 0 {
		return nil, false
	}
	rows, least := l.using()
	for _, r := range rows {
		all = append(all, record.RoleTime{Role: r.Role, NS: int64(r.CPU*float64(took) + 0.5)})
	}
	return all, !least
}

// CPU returns the sum of all roles except others, in CPUs. least is true if the time
// of some role is unknown, so that the sum is a minimum.
func (l *Ledger) CPU() (cpus float64, least bool) {
	rows, least := l.using()
	for _, row := range rows {
		cpus += row.CPU
	}
	return cpus, least
}

// using returns the rows with known CPU time, without others. least is true if the
// time of another row is unknown.
func (l *Ledger) using() (rows []Row, least bool) {
	for _, row := range l.Rows {
		switch {
		case row.Role == record.RoleOthers:
		case row.CPUKnown:
			rows = append(rows, row)
		case row.Processes > 0:
			least = true
		}
	}
	return rows, least
}
