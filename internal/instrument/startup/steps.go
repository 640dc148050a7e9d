package startup

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Limits of steps and gaps in a report. JSON and CSV have all of them.
const (
	maxStepsShown = 40
	maxGapsShown  = 10
	longestStep   = 40 // columns; both milestones of a phase must be readable
)

// inOrder shows a start in the form of a published report on Kata's boot: the runtime
// calls and the times between them, their sum, the wall time and the engine time.
func inOrder(t *Target, o page.Options) *page.Section {
	if !has(t.Table, record.KindCall) {
		return nil
	}
	s := ofTarget(t, "step by step")
	s.Table, s.Notes = stepTable(t.Table, o)
	s.Lists = []page.List{{Items: sums(t)}}
	if t.Same < t.Starts {
		s.Notes = append(s.Notes, fmt.Sprintf("for the %d of %s with this sequence of steps", t.Same, page.Amount(t.Starts, "start")))
	}
	return s
}

// has reports whether there is a step of a kind.
func has(steps []Step, kind string) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.Kind == kind })
}

// sums returns the summary lines of the published form.
func sums(t *Target) []page.Item {
	var parts []string
	for i := range t.Table {
		if i == maxStepsShown {
			parts = append(parts, fmt.Sprintf("… %d more", len(t.Table)-i))
			break
		}
		step := &t.Table[i]
		parts = append(parts, page.Cut(page.Known(step.Name), longestStep)+" "+tookCell(&step.Took).Head)
	}
	items := []page.Item{{Key: "in order", Text: strings.Join(parts, " → ")}}
	if sum, ok := fromFirstCall(t.Table); ok {
		text := page.Duration(sum) + ", from the first call to the end of the last"
		if t.Starts > 1 {
			text += ", a sum of medians"
		}
		items = append(items, page.Item{Key: "sum", Text: text})
	}
	if t.Wall.Known() {
		items = append(items, page.Item{Key: "wall", Text: joined(boundedCell(&t.Wall))})
	}
	if t.EngineTime.Known() && t.Wall.Known() && t.Calls.Known() {
		items = append(items, page.Item{Key: "engine time of " + page.Heading(page.Known(t.Engine)), Text: credits(t)})
	}
	return items
}

// credits returns the time used by the engine. Medians cannot be subtracted, so the
// breakdown is of the drawn start.
func credits(t *Target) string {
	d := t.Drawn
	if d == nil || d.Start == nil || d.Start.Ended == 0 || lacksCall(d.Start) {
		return joined(boundedCell(&t.EngineTime))
	}
	wall := float64(since(d.Start.Began, d.Start.Ended))
	text, left := "wall "+page.Duration(wall), wall
	for _, o := range []struct{ kind, name string }{{record.KindCall, "calls"}, {record.KindWorkload, "workload"}, {record.KindVMM, "VMM alone"}} {
		if took := float64(d.Took[o.kind]); took > 0 || o.kind == record.KindCall {
			text += " − " + o.name + " " + page.Duration(took)
			left -= took
		}
	}
	text += " = " + page.Duration(left)
	if t.Starts > 1 {
		return "median " + joined(boundedCell(&t.EngineTime)) + "; drawn start: " + text
	}
	return text
}

// fromFirstCall returns the sum of the medians from the first call to the end of the
// last, as in the published report.
func fromFirstCall(steps []Step) (sum float64, ok bool) {
	isCall := func(s Step) bool { return s.Kind == record.KindCall }
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
		if !s.Took.Known() {
			return 0, false
		}
		sum += s.Took.Value
	}
	return sum, stat.Finite(sum)
}

// byWork returns the time of a start by component. It returns nil if the calls already
// show the same.
func byWork(t *Target, o page.Options) *page.Section {
	same := func(a, b Step) bool {
		return a.Name == b.Name && a.Kind == b.Kind && a.Took.Estimate == b.Took.Estimate
	}
	if len(t.Phases) == 0 || has(t.Table, record.KindCall) && slices.EqualFunc(t.Table, t.Phases, same) {
		return nil
	}
	s := ofTarget(t, "time by component")
	s.Table, s.Notes = stepTable(t.Phases, o)
	return s
}

// stepTable returns a table with a row per step, and a note if steps are left out.
func stepTable(steps []Step, o page.Options) (m *page.Table, notes []string) {
	if more := len(steps) - maxStepsShown; more > 0 && !o.Verbose {
		steps, notes = steps[:maxStepsShown], []string{fmt.Sprintf("%d more in JSON and CSV", more)}
	}
	m = &page.Table{Columns: []page.Column{{Title: "step"}, {Title: "kind"}}}
	for i := range steps {
		name := page.Cut(page.Known(steps[i].Name), longestStep)
		m.Row(page.Cell{Head: name, Label: name}, page.Words(page.Heading(steps[i].Kind)))
	}
	m.Add("median", page.Each(steps, func(s *Step) page.Cell { return boundedCell(&s.Took) }))
	m.Add("share", page.Each(steps, func(s *Step) page.Cell {
		if !s.Took.Known() {
			return page.Words(page.None)
		}
		return page.Words(page.Share(s.Share))
	}))
	m.Add("CPU", page.Each(steps, func(s *Step) page.Cell { return page.Words(tookCell(&s.CPU).Head) }))
	m.AddIf("times", page.Each(steps, func(s *Step) page.Cell {
		if !stat.Finite(s.Times) || s.Times == 1 || s.Times == 0 {
			return page.Words("")
		}
		if s.Times == math.Trunc(s.Times) {
			return page.Words(fmt.Sprintf("%.0f×", s.Times))
		}
		return page.Words(fmt.Sprintf("%.1f×", s.Times))
	}))
	return m, notes
}
