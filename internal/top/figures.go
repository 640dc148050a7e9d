package top

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/record"
)

// sandbox returns the figures of a sandbox.
func (b *box) sandbox() Sandbox {
	s := b.Sandbox
	s.charges(b.charged)
	s.processes(b.members)
	return s
}

// charges sets the figures of the sandbox's cgroups.
func (s *Sandbox) charges(list []charged) {
	var memory, cache, outside, cacheOutside, pod, limit, cpu, cpuOutside, read, write sum
	limited := true
	s.Groups = make([]Group, 0, len(list))
	for _, g := range list {
		if g.gone {
			continue
		}
		s.Groups = append(s.Groups, Group{Path: g.path, Charge: g.charge, Nested: g.nested, CPU: g.cpu.cpus(), Memory: g.memory(), Cache: g.cache()})
		if g.nested {
			continue
		}
		if g.charge == record.ChargePod {
			pod.add(g.memory())
			limit.add(known(g.limit))
			limited = limited && g.limit > 0
		}
		if g.within {
			continue
		}
		memory.add(g.memory())
		cache.add(g.cache())
		cpu.count(&g.cpu, 1e9)
		if g.haveIO {
			read.count(&g.read, 1)
			write.count(&g.write, 1)
		}
		if g.charge == record.ChargeOverhead {
			outside.add(g.memory())
			cacheOutside.add(g.cache())
			cpuOutside.count(&g.cpu, 1e9)
		}
	}
	for _, g := range list {
		if g.within && !g.nested && !g.gone { // the figures of an outside group include it
			outside.v, cacheOutside.v = max(0, outside.v-g.memory().V), max(0, cacheOutside.v-g.cache().V)
			cpuOutside.v = max(0, cpuOutside.v-g.cpu.cpus().V)
		}
	}
	s.Memory, s.Cache, s.CPU = memory.maybe(), cache.maybe(), cpu.maybe()
	s.MemoryOutside, s.CacheOutside, s.CPUOutside = outside.orNone(s.Memory), cacheOutside.orNone(s.Cache), cpuOutside.orNone(s.CPU)
	s.Read, s.Write = read.maybe(), write.maybe()
	if limited {
		s.Limit = limit.maybe()
	}
	if m := pod.maybe(); s.Limit.OK && m.OK {
		s.Full = known(m.V / s.Limit.V)
	}
}

// processes sets the figures of processes charged elsewhere.
func (s *Sandbox) processes(members []member) {
	var rss, pss, cpu sum
	found := false
	for i := range members {
		m := &members[i]
		if m.p != nil && m.p.gone {
			continue
		}
		s.Processes++
		if m.p == nil {
			continue
		}
		if m.memoryElsewhere {
			rss.add(m.p.rss)
			pss.need(m.p.pss)
		}
		if m.cpuElsewhere {
			found = true
			used := m.p.cpu.cpus()
			if m.vcpuInside {
				used.V = max(0, used.V-m.p.vcpu.cpus().V)
			}
			cpu.add(used)
			cpu.wrong = cpu.wrong || m.p.cpu.wrong
		}
	}
	s.BesideRSS, s.BesidePSS, s.CPUBeside = rss.orNone(known(0.0)), pss.maybe(), cpu.maybe()
	if !found {
		s.CPUBeside = cpu.orNone(s.CPU)
	}
	switch {
	case cpu.wrong:
		s.CPU = Maybe{}
	case s.CPU.OK:
		s.CPU = plus(s.CPU, s.CPUBeside)
	case len(s.Groups) == 0: // all of it is charged elsewhere
		s.CPU = s.CPUBeside
	}
}

// order is the order of roles.
var order = []record.Role{
	record.RoleWorkload, record.RolePause, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVCPU,
	record.RoleVirtiofs, record.RoleSentry, record.RoleGofer, record.RoleRuntime,
}

// roles groups the processes of a sandbox.
func (b *box) roles() []Role {
	at := map[record.Role]*Role{}
	add := func(role record.Role, p Process) {
		if at[role] == nil {
			at[role] = &Role{Role: role}
		}
		at[role].Processes = append(at[role].Processes, p)
	}
	for i := range b.members {
		m := &b.members[i]
		if m.p != nil && m.p.gone {
			continue
		}
		p := Process{Pid: m.Pid, Start: m.Start, PPid: m.PPid, Name: m.Comm, Rule: m.Rule, Beside: m.memoryElsewhere, Groups: m.Sets}
		guest := p
		if m.p != nil {
			p.CPU, p.RSS, p.PSS = m.p.cpu.cpus(), m.p.rss, m.p.pss
			guest.CPU = m.p.vcpu.cpus()
		}
		if len(m.VCPUs) > 0 {
			p.CPU = Maybe{max(0, p.CPU.V-guest.CPU.V), p.CPU.OK && guest.CPU.OK}
			guest.Rule, guest.Threads, guest.Beside, guest.Groups = m.VCPURule, m.VCPUs, false, []record.Membership{}
			for _, set := range m.Sets {
				if holds(set, m.VCPUs) {
					guest.Groups = append(guest.Groups, set)
				}
			}
			add(record.RoleVCPU, guest)
		}
		add(m.Role, p)
	}
	out := make([]Role, 0, len(at))
	for _, r := range at {
		r.sum()
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Role) int {
		// uint puts roles that are not in the list at the end
		return cmp.Or(cmp.Compare(uint(slices.Index(order, a.Role)), uint(slices.Index(order, b.Role))), cmp.Compare(a.Role, b.Role))
	})
	return out
}

// sum sets the figures of a role.
func (r *Role) sum() {
	var cpu, rss, pss sum
	for _, p := range r.Processes {
		cpu.add(p.CPU)
		rss.add(p.RSS)
		pss.need(p.PSS)
	}
	r.CPU, r.RSS, r.PSS = cpu.maybe(), rss.maybe(), pss.maybe()
}

// added returns the figures that can be added over sandboxes.
func (f *Figures) added() []*Maybe {
	return []*Maybe{&f.CPU, &f.CPUOutside, &f.CPUBeside, &f.Read, &f.Write, &f.Memory, &f.MemoryOutside, &f.Cache, &f.CacheOutside, &f.BesideRSS, &f.BesidePSS}
}

// together returns the sum of the known figures of sandboxes.
func together(list []Sandbox) (f Figures) {
	for i, to := range f.added() {
		to.OK = len(list) == 0 // the sum over no sandboxes is 0
		for j := range list {
			*to = plus(*to, *list[j].added()[i])
		}
	}
	for i := range list {
		f.Processes += list[i].Processes
		if !list[i].BesidePSS.OK && list[i].BesideRSS.V > 0 { // not read
			f.BesidePSS = Maybe{}
		}
	}
	return f
}
