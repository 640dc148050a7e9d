package overhead

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// perSandbox lists the quantities with a slope, their column titles, and their values in a ledger.
// Memory covers all roles except others, without page cache. Total is memory plus uncharged. The
// memory of others is that of all processes without a row; the number of others counts only those
// that share something with a sandbox.
var perSandbox = []struct {
	of, title string // without a title it is in no table
	unit      figure.Unit
	value     func(*ledger.Ledger) (v float64, known bool)
}{
	{"memory", "memory MiB", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Sum })},
	{"cache", "cache MiB", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Cache.Charged })},
	{"uncharged", "uncharged MiB", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Uncharged })},
	{"total", "total MiB", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Sum + l.Uncharged })},
	{"daemon memory", "daemon MiB", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return rowOf(l, record.RoleDaemon).Memory.Sum() })},
	{"daemon CPU", "daemon CPU m", figure.CPUs, func(l *ledger.Ledger) (float64, bool) {
		r := rowOf(l, record.RoleDaemon)
		return r.CPU, r.CPUKnown || r.Processes == 0
	}},
	{"others' memory", "", figure.Bytes, bytesOf(func(l *ledger.Ledger) int64 { return l.Others })},
	{"others' processes", "", figure.Count, bytesOf(func(l *ledger.Ledger) int64 { return int64(l.Related) })},
}

// onNoLine is the verdict of a slope through points that are not linear.
const onNoLine = "on no line"

func bytesOf(of func(*ledger.Ledger) int64) func(*ledger.Ledger) (float64, bool) {
	return func(l *ledger.Ledger) (float64, bool) { return float64(of(l)), true }
}

// scaling fits a line to the idle phases of all rounds over the number of sandboxes.
func (j *Judgement) scaling() {
	for i := range j.Targets {
		if s, ok := j.scalingOf(j.Targets[i].Name); ok {
			j.Scaling = append(j.Scaling, s)
		}
	}
}

func (j *Judgement) scalingOf(target string) (Scaling, bool) {
	s := Scaling{Target: target}
	byVisit := map[*ledger.Visit][]*ledger.Phase{}
	for _, p := range j.booked(target) {
		if !p.Ledger.Complete || kindOf(p.Name) != PhaseIdle {
			continue
		}
		byVisit[p.Visit] = append(byVisit[p.Visit], p)
		if !slices.Contains(s.Counts, p.Sandboxes) {
			s.Counts = append(s.Counts, p.Sandboxes)
		}
	}
	slices.Sort(s.Counts)
	if len(s.Counts) < 2 {
		return s, false
	}
	rounds := 0 // with a slope of total memory
	for _, of := range perSandbox {
		var points [][]stat.Point
		for _, v := range j.visits { // in chronological order
			var round []stat.Point
			for _, p := range byVisit[v] {
				if y, ok := of.value(&p.Ledger); ok {
					round = append(round, stat.Point{X: float64(p.Sandboxes), Y: y})
				}
			}
			if round != nil {
				points = append(points, round)
			}
		}
		fit := stat.LineOfRounds(points, figure.Confidence)
		if of.of == "total" {
			rounds = fit.Rounds
		}
		slope := Quantities.New("per-sandbox", figure.Slope(fit), figure.Of("target", target, "of", of.of))
		slope.Unit, slope.Reasons = of.unit, fit.Warnings
		if fit.Disagree {
			slope.Verdict = onNoLine
		}
		if s.Slopes = append(s.Slopes, slope); slope.Known() {
			fixed := Quantities.New("fixed", figure.Exactly(fit.Intercept), slope.Labels)
			fixed.Unit = of.unit
			s.Slopes = append(s.Slopes, fixed)
		}
	}
	s.Fit = Quantities.New("more-fit", figure.Estimate{}, figure.Of("target", target))
	if rounds < roomRounds {
		s.Fit.Reasons = []string{fmt.Sprintf("needs at least %d rounds", roomRounds)}
		return s, true
	}
	s.fit(byVisit)
	return s, true
}

// fit sets how many more sandboxes fit, from the readings before each visit. One limit is the
// memory that was available before the sandboxes, less the fixed part of the line. The other is
// the node's process limit. Memory includes uncharged kernel memory. If the slope may be 0, the
// result is unknown.
func (s *Scaling) fit(byVisit map[*ledger.Visit][]*ledger.Phase) {
	m := s.slope("total")
	if !m.Bounded || m.Lo <= 0 {
		s.Fit.Reasons = []string{"not shown: with uncharged kernel memory, the usage of a sandbox may be zero"}
		return
	}
	var free, slots []float64
	limited, tasks := true, 0.0
	for v, phases := range byVisit {
		h := &v.Before.Host
		free, slots = append(free, float64(h.Available)), append(slots, float64(h.MaxTasks-h.Tasks))
		limited = limited && h.MaxTasks > 0
		for _, p := range phases {
			tasks = max(tasks, tasksOf(p))
		}
	}
	if !limited {
		slots = []float64{leastTasks}
	}
	left := max(figure.MedianOf(free).Value-max(s.Slopes.Of("fixed", "of", "total").Value, 0), 0)
	byMemory := figure.Estimate{N: m.N, Value: math.Trunc(left / m.Value), Lo: math.Trunc(left / m.Hi), Hi: math.Trunc(left / m.Lo), Bounded: true}
	byTasks := math.Trunc(max(figure.MedianOf(slots).Value/tasks, 0))
	switch {
	case byMemory.Value <= byTasks:
		s.Fit.Estimate, s.Fit.Reasons = byMemory, []string{boundByMemory}
		s.Fit.Hi = min(s.Fit.Hi, byTasks)
	case !limited:
		s.Fit.Reasons = []string{"not shown: the record lacks the process limit of this node"}
	default:
		s.Fit.Estimate = figure.Estimate{N: m.N, Value: byTasks, Lo: min(byMemory.Lo, byTasks), Hi: byTasks, Bounded: true}
		s.Fit.Reasons = []string{boundByTasks}
	}
}

// tasksOf returns the number of processes and threads per sandbox on the node.
func tasksOf(p *ledger.Phase) float64 {
	n := 0
	for q := range ledger.Each(p.End.Processes) {
		if q.Lane >= 0 {
			n += max(q.Threads, 1)
		}
	}
	return max(float64(n)/float64(max(p.Sandboxes, 1)), 1)
}

// roomRounds is the minimum of rounds for Fit. With fewer, the interval is far too
// narrow: it treats values of one round as independent, although they share a start.
const roomRounds = 3

// leastTasks is PID_MAX_DEFAULT of the kernel's linux/threads.h: the process limit of a
// node that was not configured for fewer.
const leastTasks = 32768

// Limits on the number of additional sandboxes.
const (
	boundByMemory = "memory"
	boundByTasks  = "processes"
)
