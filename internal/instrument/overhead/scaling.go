package overhead

import (
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// The slopes of a [Scaling].
const (
	ofMemory    = iota // all roles but others, without page cache
	ofCache            // page cache, as charged
	ofUncharged        // kernel memory that no cgroup of the sandbox is charged for
	ofTotal            // memory and uncharged as one line
	ofDaemon
	ofDaemonCPU
)

// perSandbox is what lines are fitted of, and what of a ledger they go through.
var perSandbox = []struct {
	of    string
	unit  figure.Unit
	value func(*ledger.Ledger) (v float64, known bool)
}{
	ofMemory:    {"memory", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Sum })},
	ofCache:     {"cache", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Cache.Charged })},
	ofUncharged: {"uncharged", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Uncharged })},
	ofTotal:     {"total", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Sum + l.Uncharged })},
	ofDaemon:    {"daemon memory", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return rowOf(l, record.RoleDaemon).Memory.Sum() })},
	ofDaemonCPU: {"daemon CPU", figure.CPUs, func(l *ledger.Ledger) (float64, bool) {
		r := rowOf(l, record.RoleDaemon)
		return r.CPU, r.CPUKnown || r.Processes == 0
	}},
}

func bytesOf(of func(*ledger.Ledger) int64) func(*ledger.Ledger) (float64, bool) {
	return func(l *ledger.Ledger) (float64, bool) { return float64(of(l)), true }
}

// scaling fits the idle phases of all rounds over the counts.
func (j *judging) scaling() {
	for i := range j.Targets {
		if s, ok := j.scalingOf(j.Targets[i].Name); ok {
			j.Scaling = append(j.Scaling, s)
		}
	}
}

func (j *judging) scalingOf(target string) (Scaling, bool) {
	s := Scaling{Target: target}
	byVisit := map[*ledger.Visit][]*closedPhase{}
	for _, p := range j.phases {
		if p.visit.Target() != target || p.failure != nil || !p.ledger.Complete || kindOf(p.phase.Name) != PhaseIdle {
			continue
		}
		byVisit[p.visit] = append(byVisit[p.visit], p)
		if !slices.Contains(s.Counts, p.phase.Sandboxes) {
			s.Counts = append(s.Counts, p.phase.Sandboxes)
		}
	}
	slices.Sort(s.Counts)
	if len(s.Counts) < 2 {
		return s, false
	}
	rounds := 0 // that gave a slope of all memory
	for i, of := range perSandbox {
		var points [][]stat.Point
		for _, v := range j.visits { // in the order of time
			var round []stat.Point
			for _, p := range byVisit[v] {
				if y, ok := of.value(&p.ledger); ok {
					round = append(round, stat.Point{X: float64(p.phase.Sandboxes), Y: y})
				}
			}
			if round != nil {
				points = append(points, round)
			}
		}
		fit := stat.LineOfRounds(points, figure.Confidence)
		if i == ofTotal {
			rounds = fit.Rounds
		}
		slope := slopeOf(fit)
		slope.Figure = newFigure("per-sandbox", of.unit, figure.Of("target", target, "of", of.of), slope.Estimate)
		slope.Reasons = fit.Warnings
		s.Slopes = append(s.Slopes, slope)
	}
	s.Fit = newFigure("more-fit", figure.Count, figure.Of("target", target), figure.Estimate{})
	s.Fit.Better = figure.More
	var free []float64
	for v := range byVisit {
		free = append(free, float64(v.Before.Host.Available))
	}
	if rounds >= roomRounds {
		s.room(figure.MedianOf(free).Value)
	}
	return s, true
}

func slopeOf(f stat.Fit) Slope {
	if math.IsNaN(f.Slope) {
		return Slope{}
	}
	s := Slope{Fixed: f.Intercept, Bent: f.Disagree}
	s.Estimate = figure.Estimate{N: f.N, Value: f.Slope, Bounded: f.Known}
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
	for _, i := range []int{ofTotal, ofMemory} {
		m := &s.Slopes[i]
		left := max(available-max(m.Fixed, 0), 0)
		if !m.Bounded || m.Lo <= 0 || left/m.Lo > math.MaxInt32 {
			continue
		}
		s.Fit.Estimate = figure.Estimate{N: m.N, Value: math.Trunc(left / m.Value), Lo: math.Trunc(left / m.Hi), Hi: math.Trunc(left / m.Lo), Bounded: true}
		s.ChargedOnly = i == ofMemory
		return
	}
}
