package overhead

import (
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// check reports whether an existing overhead is sufficient, per phase and without a margin.
// A phase that was skipped, failed or read incompletely shows nothing. If it was too
// short, its CPU usage is unknown.
func (j *Judgement) check() {
	for t := range ledger.Each(j.Targets) {
		asked := j.Plan.Asked(t)
		if asked == nil || t.Kind == "host" || t.Kind == "floor" {
			continue
		}
		c := Check{Target: t.Name, Memory: asked.Memory, CPU: asked.CPU, Answer: Enough}
		for _, s := range j.steps() {
			cell := j.at(t.Name, s)
			if s.Sandboxes == 0 || cell == nil && !slices.Contains(j.planned(), s) {
				continue
			}
			p := CheckPhase{Step: s, MemoryAnswer: NotShown, CPUAnswer: NotShown}
			if cell != nil && cell.Ledger.Complete { // an incomplete value is too small to prove anything
				p.measure(j.needs(cell), &c)
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

// Asked returns the overhead to check for a target, or nil if there is none. It is zero if
// the RuntimeClass declares no overhead.
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

// measure compares what the phase needed with the checked overhead.
func (p *CheckPhase) measure(n needs, c *Check) {
	p.Rounds, p.Memory, p.CPU = n.rounds, int64(math.Ceil(n.memory)), n.cpu
	fits := p.Memory <= c.Memory
	if fits && n.held() > float64(c.Memory) {
		p.Open = n.open.String()
	}
	p.MemoryAnswer = enough(p.Open == "" && (fits || !n.kept), fits)
	// If the CPU time of a VMM includes the guest's work, only the sum is known. If the
	// sum fits, the VMM's part fits, too. If the known values already exceed the limit,
	// unread values do not matter.
	own, all := math.Round(n.cpu) <= float64(c.CPU), math.Round(n.cpu+n.guest) <= float64(c.CPU)
	p.CPUAnswer = enough(!n.brief && (!own || n.cpuKnown && all), own)
}
