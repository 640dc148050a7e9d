package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// How many steps of a start and how many gaps a page shows. JSON and CSV have all.
const (
	mostStepsShown = 40
	mostGapsShown  = 10
	longestStep    = 40 // columns; of a phase both milestones are to be read
)

// inOrder is a start as a published report on Kata's boot has it: the runtime's
// calls and what lies between them, their sum, the wall time, and what of it the
// engine is credited with.
func inOrder(t *judge.StartupTarget, o Options) *section {
	if !hasCalls(t.Table) {
		return nil
	}
	s := ofTarget(t, "step by step")
	s.table = stepTable(t.Table, o)
	s.lists = []list{{items: sums(t)}}
	s.notes = append(s.notes, stepsLeftOut(t.Table, o)...)
	if t.Same < t.Starts {
		s.notes = append(s.notes, fmt.Sprintf("of the %d of %s that went this way", t.Same, startsOf(t.Starts)))
	}
	return s
}

func hasCalls(steps []judge.StartupStep) bool {
	return slices.ContainsFunc(steps, func(s judge.StartupStep) bool { return s.Kind == record.KindCall })
}

// sums are the lines of the published form.
func sums(t *judge.StartupTarget) []item {
	var parts []string
	for i := range t.Table {
		if i == mostStepsShown {
			parts = append(parts, fmt.Sprintf("… %d more", len(t.Table)-i))
			break
		}
		step := &t.Table[i]
		parts = append(parts, cut(known(step.Name), longestStep)+" "+tookCell(step.Took).head)
	}
	items := []item{{key: "in order", text: strings.Join(parts, " → ")}}
	if sum, ok := fromFirstCall(t.Table); ok {
		items = append(items, item{key: "sum", text: duration(sum) + ", from the first call to the end of the last" + ofMedians(t)})
	}
	if t.Wall.Known {
		items = append(items, item{key: "wall", text: boundedCell(t.Wall).joined(0)})
	}
	if t.Credits.Known && t.Wall.Known && t.Calls.Known {
		items = append(items, item{key: "credits to " + heading(known(t.Engine)), text: credits(t)})
	}
	return items
}

// credits is what is left to the engine. Medians do not subtract, so that the sum is
// shown of the start that is drawn.
func credits(t *judge.StartupTarget) string {
	d := t.Drawn
	if d == nil || d.Start == nil || d.Start.Ended == 0 {
		return boundedCell(t.Credits).joined(0)
	}
	wall := float64(since(d.Start.Began, d.Start.Ended))
	text := fmt.Sprintf("wall %s − calls %s", duration(wall), duration(float64(d.Calls)))
	left := wall - float64(d.Calls)
	if d.Workload > 0 {
		text += " − workload " + duration(float64(d.Workload))
		left -= float64(d.Workload)
	}
	text += " = " + duration(left)
	if t.Starts > 1 {
		return "median " + boundedCell(t.Credits).joined(0) + "; of the one that is drawn " + text
	}
	return text
}

func ofMedians(t *judge.StartupTarget) string {
	if t.Starts > 1 {
		return ", a sum of medians"
	}
	return ""
}

// fromFirstCall adds up the medians of what lies between the beginning of the first
// call and the end of the last, as the published report does.
func fromFirstCall(steps []judge.StartupStep) (sum float64, ok bool) {
	isCall := func(s judge.StartupStep) bool { return s.Kind == record.KindCall }
	first := slices.IndexFunc(steps, isCall)
	if first < 0 {
		return 0, false
	}
	last := first
	for i := range steps {
		if isCall(steps[i]) {
			last = i
		}
	}
	for _, s := range steps[first : last+1] {
		if !s.Took.Known {
			return 0, false
		}
		sum += s.Took.Value
	}
	return sum, finite(sum)
}

// byWork is the start's time by what was at work, unless that is the same.
func byWork(t *judge.StartupTarget, o Options) *section {
	same := func(a, b judge.StartupStep) bool { return a.Name == b.Name && a.Kind == b.Kind && a.Took == b.Took }
	if len(t.Phases) == 0 || hasCalls(t.Table) && slices.EqualFunc(t.Table, t.Phases, same) {
		return nil
	}
	s := ofTarget(t, "by what was at work")
	s.table = stepTable(t.Phases, o)
	s.notes = stepsLeftOut(t.Phases, o)
	return s
}

func stepsLeftOut(steps []judge.StartupStep, o Options) []string {
	if more := len(steps) - len(stepsShown(steps, o)); more > 0 {
		return []string{fmt.Sprintf("%d more in JSON and CSV", more)}
	}
	return nil
}

func stepsShown(steps []judge.StartupStep, o Options) []judge.StartupStep {
	if o.Verbose {
		return steps
	}
	return steps[:min(len(steps), mostStepsShown)]
}

// stepTable has a row for each step.
func stepTable(steps []judge.StartupStep, o Options) *spread {
	steps = stepsShown(steps, o)
	m := &matrix{lead: []term.Column{{Title: "step"}, {Title: "kind"}}}
	for i := range steps {
		name := cut(known(steps[i].Name), longestStep)
		m.rows = append(m.rows, matrixRow{lead: []cell{{head: name, label: name}, plain(heading(steps[i].Kind))}})
	}
	m.column("median", each(steps, func(s *judge.StartupStep) cell { return boundedCell(s.Took) }))
	m.column("share", each(steps, func(s *judge.StartupStep) cell {
		if !s.Took.Known {
			return plain(none)
		}
		return plain(shareText(s.Share))
	}))
	m.column("CPU", each(steps, func(s *judge.StartupStep) cell { return plain(tookCell(s.CPU).head) }))
	m.onlyIf("times", each(steps, func(s *judge.StartupStep) cell {
		if !finite(s.Times) || s.Times == 1 || s.Times == 0 {
			return plain("")
		}
		return plain(significantTimes(s.Times))
	}))
	return m.spread()
}

// significantTimes is how often a step comes in a start, on average.
func significantTimes(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d×", int64(v))
	}
	return fmt.Sprintf("%.1f×", v)
}
