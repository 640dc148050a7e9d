package overhead

import (
	"math"
	"slices"
)

// check says of an existing overhead whether it is enough, phase by phase and
// without a margin. A phase that was left out, that failed or that could not be
// read whole proves nothing to be enough. The CPU of a phase that was too short
// is not judged, but that of one phase at least must be.
func (j *judging) check() {
	asked := j.Plan.Check
	if asked == nil {
		return
	}
	for i := range j.Targets {
		t := &j.Targets[i]
		if t.Kind == "host" || t.Kind == "floor" {
			continue
		}
		c := Check{Target: t.Name, Memory: asked.Memory, CPU: asked.CPU, Enough: true}
		judged := false // its CPU, in any phase
		for _, s := range j.steps() {
			table, cell := j.table(s), j.at(t.Name, s)
			if s.n == 0 || cell == nil && !slices.Contains(j.planned(), s) {
				continue
			}
			p := CheckPhase{Phase: s.name, Sandboxes: s.n}
			if cell == nil || !cell.Ledger.Complete { // too small to be a proof of anything
				c.Enough = false
				c.Phases = append(c.Phases, p)
				continue
			}
			judged = p.measure(j.needs(table, cell), &c) || judged
			c.Enough = c.Enough && p.MemoryEnough && p.CPUEnough
			c.Phases = append(c.Phases, p)
		}
		c.Enough = c.Enough && judged
		j.Check = append(j.Check, c)
	}
}

// measure sets what was needed beside what is asked about, and tells whether its CPU
// could be judged.
func (p *CheckPhase) measure(n needs, c *Check) (judged bool) {
	p.Measured, p.Memory, p.CPU = true, int64(math.Ceil(n.memory)), n.cpu
	p.MemoryEnough = p.Memory <= c.Memory
	p.CPUUnknown = n.brief || !n.cpuKnown
	judged = !p.CPUUnknown
	// Kubernetes counts in whole thousandths. Of a VMM with the guest's work
	// in it only the sum is known, which must then be enough as well.
	p.CPUEnough = n.brief || n.cpuKnown && math.Round(n.cpu+n.guest) <= float64(c.CPU)
	if n.guest > 0 && !p.CPUEnough && math.Round(n.cpu) <= float64(c.CPU) {
		p.CPUUnknown = true
	}
	return judged
}
