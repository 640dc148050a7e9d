package overhead

import (
	"math"
	"slices"

	"github.com/tare-bench/tare/record"
)

// check says of an existing overhead whether it is enough, phase by phase and
// without a margin. A phase that was left out, that failed or that could not be
// read whole shows nothing, and of one that was too short its CPU is not known.
func (j *judging) check() {
	for i := range j.Targets {
		t := &j.Targets[i]
		asked := j.Plan.Asked(t)
		if asked == nil || t.Kind == "host" || t.Kind == "floor" {
			continue
		}
		c := Check{Target: t.Name, Memory: asked.Memory, CPU: asked.CPU, Answer: Enough}
		for _, s := range j.steps() {
			table, cell := j.table(s), j.at(t.Name, s)
			if s.n == 0 || cell == nil && !slices.Contains(j.planned(), s) {
				continue
			}
			p := CheckPhase{Phase: s.name, Sandboxes: s.n, MemoryAnswer: NotShown, CPUAnswer: NotShown}
			if cell != nil && cell.Ledger.Complete { // else too small to be a proof of anything
				p.measure(j.needs(table, cell), &c)
			}
			c.Answer = c.Answer.and(p.MemoryAnswer).and(p.CPUAnswer)
			c.Phases = append(c.Phases, p)
		}
		if len(c.Phases) == 0 {
			c.Answer = NotShown
		}
		j.Check = append(j.Check, c)
	}
}

// Asked is the overhead of a target that is to be checked: nil for none, nothing at all
// for that of a RuntimeClass that declares none.
func (o *Options) Asked(t *record.Target) *PodFixed {
	switch {
	case o.Check == nil || !o.Check.Declared:
		return o.Check
	case t.Kubernetes == nil || t.Kubernetes.RuntimeClass == "":
		return nil
	case t.Kubernetes.Overhead == nil:
		return new(PodFixed)
	}
	return &PodFixed{CPU: t.Kubernetes.Overhead.CPU, Memory: t.Kubernetes.Overhead.Memory}
}

// measure sets what was needed beside what is asked about.
func (p *CheckPhase) measure(n needs, c *Check) {
	p.Rounds, p.Memory, p.CPU = n.rounds, int64(math.Ceil(n.memory)), n.cpu
	fits := p.Memory <= c.Memory
	if fits && n.memory+n.open.most() > float64(c.Memory) {
		p.Open = n.open.String()
	}
	p.MemoryAnswer = enough(p.Open == "" && (fits || !n.kept), fits)
	// Kubernetes counts in whole thousandths. Of a VMM with the guest's work in it
	// only the sum is known: where that is enough, so is its part. What is too much
	// already is so whatever could not be read.
	own, all := math.Round(n.cpu) <= float64(c.CPU), math.Round(n.cpu+n.guest) <= float64(c.CPU)
	p.CPUAnswer = enough(!n.brief && (!own || n.cpuKnown && all), own)
}
