package judge

import (
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// scaling fits the idle phases of all rounds over the counts.
func (j *overheadJudge) scaling() {
	for i := range j.Targets {
		if s, ok := j.scalingOf(j.Targets[i].Name); ok {
			j.Scaling = append(j.Scaling, s)
		}
	}
}

func (j *overheadJudge) scalingOf(target string) (Scaling, bool) {
	s := Scaling{Target: target}
	byVisit := map[*ledger.Visit][]*closedPhase{}
	for _, p := range j.phases {
		if p.visit.Target() != target || p.failure != nil || !p.ledger.Complete || kindOf(p.phase.Name) != plan.PhaseIdle {
			continue
		}
		byVisit[p.visit] = append(byVisit[p.visit], p)
		s.Points++
		if !slices.Contains(s.Counts, p.phase.Sandboxes) {
			s.Counts = append(s.Counts, p.phase.Sandboxes)
		}
	}
	slices.Sort(s.Counts)
	if len(s.Counts) < 2 {
		return s, false
	}
	fit := func(of func(l *ledger.Ledger) (float64, bool)) stat.Fit {
		var rounds [][]stat.Point
		for _, v := range j.visits { // in the order of time
			var points []stat.Point
			for _, p := range byVisit[v] {
				if y, ok := of(&p.ledger); ok {
					points = append(points, stat.Point{X: float64(p.phase.Sandboxes), Y: y})
				}
			}
			if points != nil {
				rounds = append(rounds, points)
			}
		}
		return stat.LineOfRounds(rounds, Confidence)
	}
	memory := fit(func(l *ledger.Ledger) (float64, bool) { return float64(l.Sum), true })
	s.Memory = slope(memory)
	s.Memory.Bent = memory.Disagree
	s.Cache = slope(fit(func(l *ledger.Ledger) (float64, bool) { return float64(l.Cache.Charged), true }))
	s.Uncharged = slope(fit(func(l *ledger.Ledger) (float64, bool) { return float64(l.Uncharged), true }))
	total := fit(func(l *ledger.Ledger) (float64, bool) { return float64(l.Sum + l.Uncharged), true })
	s.Total = slope(total)
	s.DaemonMemory = slope(fit(func(l *ledger.Ledger) (float64, bool) {
		return float64(rowOf(l, record.RoleDaemon).Memory.Sum()), true
	}))
	s.DaemonCPU = slope(fit(func(l *ledger.Ledger) (float64, bool) {
		r := rowOf(l, record.RoleDaemon)
		return r.CPU, r.CPUKnown || r.Processes == 0
	}))
	var free []float64
	for v := range byVisit {
		free = append(free, float64(v.Before.Host.Available))
	}
	if total.Rounds >= roomRounds {
		s.room(median(free))
	}
	return s, true
}

func slope(f stat.Fit) Slope {
	if math.IsNaN(f.Slope) {
		return Slope{Warnings: f.Warnings}
	}
	s := Slope{Value: f.Slope, Fixed: f.Intercept, Known: f.Known, Warnings: f.Warnings}
	if f.Known {
		s.Lo, s.Hi = f.SlopeLo, f.SlopeHi
	}
	return s
}

// roomRounds is from how many rounds on room is told: below, the interval takes
// values that share a round's start for independent, and is far too narrow.
const roomRounds = 3

// room is how many sandboxes the memory that was available before them holds,
// the line's fixed part taken off. All of what a sandbox adds counts, also kernel
// memory that no cgroup is charged for; where that wavers so much that its slope
// may be 0, only what is charged by name. Where that slope's interval reaches
// down to 0 too the number has no upper bound, and is not known.
func (s *Scaling) room(available float64) {
	for _, m := range []*Slope{&s.Total, &s.Memory} {
		left := max(available-max(m.Fixed, 0), 0)
		if !m.Known || m.Lo <= 0 || left/m.Lo > math.MaxInt32 {
			continue
		}
		s.Fit, s.FitLo, s.FitHi, s.FitKnown = int(left/m.Value), int(left/m.Hi), int(left/m.Lo), true
		s.FitChargedOnly = m == &s.Memory
		return
	}
}
