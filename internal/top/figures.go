package top

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/record"
)

// view puts together what a tick has read.
func (c *Collector) view(v *View) {
	v.Sandboxes = make([]Sandbox, 0, len(c.boxes))
	var all totals
	for _, b := range c.boxes {
		if b.ended() {
			continue
		}
		s := c.sandbox(b)
		all.add(&s.Figures)
		v.Sandboxes = append(v.Sandboxes, s)
	}
	v.Count, v.Sum = len(v.Sandboxes), all.figures()
	if v.Count == 0 {
		v.Sum = nothing()
	}
	for _, p := range []*record.Problems{&c.survey.problems, &c.survey.members, &c.lost} {
		v.Problems.Gone += p.Gone
		v.Problems.Reused += p.Reused
		v.Problems.Denied += p.Denied
		v.Problems.Backwards += p.Backwards
		v.Problems.Broken += p.Broken
		for _, text := range p.Examples {
			example(&v.Problems, "%s", text)
		}
	}
}

// ended tells whether nothing of a sandbox is there any more.
func (b *box) ended() bool {
	here := false
	for _, k := range b.charged {
		here = here || !k.gone
	}
	for i := range b.members {
		m := &b.members[i]
		here = here || m.w != nil && !m.w.gone || m.w == nil && len(b.charged) == 0
	}
	return !here
}

// sandbox is what one uses.
func (c *Collector) sandbox(b *box) Sandbox {
	s := b.Sandbox
	s.charges(b)
	s.processes(b)
	if c.cfg.Full || c.expanded[b.key] {
		s.Roles = roles(b)
	}
	return s
}

// charges adds up what the sandbox's own cgroups are charged for.
func (s *Sandbox) charges(b *box) {
	var memory, cache, outside, cacheOutside, pod, limit sum[int64]
	var cpu, cpuOutside, read, write sum[float64]
	limited := true
	s.Groups = make([]Group, 0, len(b.charged))
	for _, k := range b.charged {
		if k.gone {
			continue
		}
		s.Groups = append(s.Groups, Group{Path: k.path, Charge: k.charge, Nested: k.nested, CPU: k.cpu.cpus(), Memory: k.memory(), Cache: k.cache()})
		if k.nested {
			continue
		}
		if k.charge == record.ChargePod {
			pod.add(k.memory())
			if k.full && k.limit > 0 {
				limit.add(known(k.limit))
			} else {
				limited = false
			}
		}
		if k.within {
			continue
		}
		memory.add(k.memory())
		cache.add(k.cache())
		k.cpu.into(&cpu)
		if k.haveIO {
			read.add(k.read.rate)
			write.add(k.write.rate)
			read.wrong, write.wrong = read.wrong || k.read.wrong, write.wrong || k.write.wrong
		}
		if k.charge == record.ChargeOverhead {
			outside.add(k.memory())
			cacheOutside.add(k.cache())
			k.cpu.into(&cpuOutside)
		}
	}
	for _, k := range b.charged {
		if k.within && !k.nested && !k.gone { // it is in the figures of a group outside
			outside.v, cacheOutside.v = max(0, outside.v-k.memory().V), max(0, cacheOutside.v-k.cache().V)
			cpuOutside.v = max(0, cpuOutside.v-k.cpu.cpus().V)
		}
	}
	s.Memory, s.Cache = memory.maybe(), cache.maybe()
	s.CPU = cpu.maybe()
	s.MemoryOutside, s.CacheOutside, s.CPUOutside = none(outside, s.Memory), none(cacheOutside, s.Cache), none(cpuOutside, s.CPU)
	s.Read, s.Write = read.maybe(), write.maybe()
	if limited {
		s.Limit = limit.maybe()
	}
	if m := pod.maybe(); s.Limit.OK && m.OK {
		s.Full = known(float64(m.V) / float64(s.Limit.V))
	}
}

// none is a sum, or 0 where nothing is there to be added up and of the whole
// something is known.
func none[T int64 | float64](s sum[T], whole Maybe[T]) Maybe[T] {
	if !s.any && !s.wrong && whole.OK {
		return known(T(0))
	}
	return s.maybe()
}

// processes adds up what is beside.
func (s *Sandbox) processes(b *box) {
	var rss, pss sum[int64]
	var cpu sum[float64]
	missing, there := false, false
	for i := range b.members {
		m := &b.members[i]
		w := m.w
		if w != nil && w.gone {
			continue
		}
		s.Processes++
		if w == nil {
			continue
		}
		if m.beside {
			rss.add(w.rss)
			pss.add(w.pss)
			missing = missing || !w.pss.OK
		}
		if m.billedBeside {
			there = true
			used, own := w.cpu.cpus(), w.part(func(g *guest) bool { return g.own })
			if own.OK {
				used.V = max(0, used.V-own.V)
			}
			cpu.add(used)
			cpu.wrong = cpu.wrong || w.cpu.wrong
		}
	}
	s.BesideRSS = none(rss, known(int64(0)))
	if !missing && pss.any {
		s.BesidePSS = pss.maybe()
	}
	s.CPUBeside = cpu.maybe()
	if !there {
		s.CPUBeside = none(cpu, s.CPU)
	}
	switch {
	case cpu.wrong:
		s.CPU = Maybe[float64]{}
	case s.CPU.OK:
		s.CPU = plus(s.CPU, s.CPUBeside)
	case len(s.Groups) == 0: // nothing of its own: all of it is beside
		s.CPU = s.CPUBeside
	}
}

// order is that in which roles are shown.
var order = []record.Role{
	record.RoleWorkload, record.RolePause, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVCPU,
	record.RoleVirtiofs, record.RoleSentry, record.RoleGofer, record.RoleRuntime,
}

// roles groups the processes of a sandbox.
func roles(b *box) []Role {
	at := map[record.Role]*Role{}
	add := func(role record.Role, p Process) {
		r := at[role]
		if r == nil {
			r = &Role{Role: role}
			at[role] = r
		}
		r.Processes = append(r.Processes, p)
	}
	for i := range b.members {
		m := &b.members[i]
		w := m.w
		if w != nil && w.gone {
			continue
		}
		p := Process{Pid: m.Pid, Start: m.Start, PPid: m.PPid, Name: m.Comm, Rule: m.Rule, Beside: m.beside, Groups: m.Sets}
		vcpu := Maybe[float64]{}
		if w != nil {
			p.CPU, p.RSS, p.PSS = w.cpu.cpus(), w.rss, w.pss
			vcpu = w.part(func(g *guest) bool { return slices.Contains(m.VCPUs, g.tid) })
		}
		if len(m.VCPUs) > 0 {
			if p.CPU.OK && vcpu.OK {
				p.CPU.V = max(0, p.CPU.V-vcpu.V)
			} else {
				p.CPU = Maybe[float64]{}
			}
			threads := Process{Pid: m.Pid, Start: m.Start, PPid: m.PPid, Name: m.Comm, Rule: m.VCPURule, Threads: m.VCPUs, CPU: vcpu, Groups: []record.Membership{}}
			for _, set := range m.Sets {
				if len(set.Threads) == 0 || slices.ContainsFunc(set.Threads, func(tid int) bool { return slices.Contains(m.VCPUs, tid) }) {
					threads.Groups = append(threads.Groups, set)
				}
			}
			add(record.RoleVCPU, threads)
		}
		add(m.Role, p)
	}
	out := make([]Role, 0, len(at))
	for _, r := range at {
		var cpu sum[float64]
		var rss, pss sum[int64]
		unread := false
		for _, p := range r.Processes {
			cpu.add(p.CPU)
			rss.add(p.RSS)
			pss.add(p.PSS)
			unread = unread || !p.PSS.OK
		}
		r.CPU, r.RSS = cpu.maybe(), rss.maybe()
		if !unread {
			r.PSS = pss.maybe()
		}
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Role) int {
		return cmp.Or(cmp.Compare(place(a.Role), place(b.Role)), cmp.Compare(a.Role, b.Role))
	})
	return out
}

func place(r record.Role) int {
	if i := slices.Index(order, r); i >= 0 {
		return i
	}
	return len(order)
}

// totals adds up sandboxes: what is known of them.
type totals struct {
	cpu, cpuOutside, cpuBeside, read, write                    sum[float64]
	memory, outside, cache, cacheOutside, besideRSS, besidePSS sum[int64]
	unread                                                     bool
	processes                                                  int
}

func (t *totals) add(f *Figures) {
	t.cpu.add(f.CPU)
	t.cpuOutside.add(f.CPUOutside)
	t.cpuBeside.add(f.CPUBeside)
	t.read.add(f.Read)
	t.write.add(f.Write)
	t.memory.add(f.Memory)
	t.outside.add(f.MemoryOutside)
	t.cache.add(f.Cache)
	t.cacheOutside.add(f.CacheOutside)
	t.besideRSS.add(f.BesideRSS)
	t.besidePSS.add(f.BesidePSS)
	t.unread = t.unread || !f.BesidePSS.OK && f.BesideRSS.V > 0
	t.processes += f.Processes
}

func (t *totals) figures() Figures {
	f := Figures{
		CPU: t.cpu.maybe(), CPUOutside: t.cpuOutside.maybe(), CPUBeside: t.cpuBeside.maybe(),
		Memory: t.memory.maybe(), MemoryOutside: t.outside.maybe(), Cache: t.cache.maybe(), CacheOutside: t.cacheOutside.maybe(),
		BesideRSS: t.besideRSS.maybe(), Read: t.read.maybe(), Write: t.write.maybe(), Processes: t.processes,
	}
	if !t.unread {
		f.BesidePSS = t.besidePSS.maybe()
	}
	return f
}

// nothing is the sum of no sandboxes.
func nothing() Figures {
	n, r := known(int64(0)), known(0.0)
	return Figures{CPU: r, CPUOutside: r, CPUBeside: r, Memory: n, MemoryOutside: n, Cache: n, CacheOutside: n, BesideRSS: n, BesidePSS: n, Read: r, Write: r}
}
