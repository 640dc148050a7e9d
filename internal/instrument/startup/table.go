package startup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// startsTable returns the table that compares all targets. The notes below it explain
// missing times and the overhead of watching. Commands executed in containers have a
// separate table.
func startsTable(all *Judgement, execs bool) *page.Section {
	v := *all
	v.Targets = slices.DeleteFunc(slices.Clone(all.Targets), func(t Target) bool { return strings.HasSuffix(t.Target, " ExecSync") != execs })
	if len(v.Targets) == 0 {
		return nil
	}
	s := &page.Section{Title: "starts", Style: term.Bold}
	if execs {
		s.Title = "execs"
	}
	m := &page.Table{Columns: []page.Column{{Title: "target"}, {Title: "starts (failed)", Right: true}}}
	if !v.Live {
		m.Columns = []page.Column{{Title: "target"}, {Title: "ended", Right: true}, {Title: "without end", Right: true}, {Title: "failed", Right: true}}
	}
	for i := range v.Targets {
		m.Row(startsLead(&v.Targets[i], v.Live)...)
	}
	for _, c := range []struct {
		title string
		show  func(*Target) page.Cell
	}{
		{"wall", func(t *Target) page.Cell { return boundedCell(&t.Wall) }},
		{"to first instruction", firstCell},
		{"to ready", func(t *Target) page.Cell { return tookCell(&t.Ready) }},
		{"runtime calls", func(t *Target) page.Cell { return tookCell(&t.Calls) }},
		{"engine", func(t *Target) page.Cell { return tookCell(&t.EngineTime) }},
		{"CPU", func(t *Target) page.Cell { return page.Words(tookCell(&t.CPU).Head) }},
	} {
		if c.title == "to ready" && readyNote(v.Targets) == "" {
			continue
		}
		m.Add(c.title, page.Each(v.Targets, c.show))
		if c.title == "wall" {
			m.Draw(page.Estimates)
		}
	}
	m.AddText("longest gap", page.Each(v.Targets, longestGap))
	s.Table = m
	if !execs {
		s.Draw(timesChart(all), partsChart(all))
	}
	var items []page.Item
	for i := range v.Targets {
		t := &v.Targets[i]
		name := page.Heading(page.Known(t.Target))
		if t.Failed > 0 {
			items = append(items, page.FailureItems(name, fmt.Sprintf("%d/%s failed", t.Failed, page.Amount(t.Starts+t.NoEnd+t.Failed, "start")), t.Failure)...)
		}
		if text := watching(t); text != "" {
			key := page.Item{Key: name, Text: text}
			if t.Watching.Versus.Different() {
				key.Style = term.Yellow
			}
			items = append(items, key)
		}
	}
	if items != nil {
		s.Lists = []page.List{{Items: items}}
	}
	s.Notes = startsNotes(&v)
	return s
}

// firstCell formats the time to the first instruction, or its upper bound.
func firstCell(t *Target) page.Cell {
	if t.First.Known() || !t.FirstBy.Known() {
		return tookCell(&t.First)
	}
	c := tookCell(&t.FirstBy)
	c.Head = "≤ " + c.Head
	return c
}

func startsLead(t *Target, live bool) []page.Cell {
	name := page.Heading(page.Known(t.Target))
	lead := []page.Cell{{Head: name, Label: name}, page.Words(fmt.Sprint(t.Starts))}
	if !live {
		for _, n := range []int{t.NoEnd, t.Failed} {
			cell := page.Words(fmt.Sprint(n))
			if n > 0 {
				lead[0].Style, cell.Style = term.Red, term.Red
			}
			lead = append(lead, cell)
		}
		return lead
	}
	if t.Failed > 0 {
		lead[0].Style, lead[1].Style = term.Red, term.Red
		lead[1].Head += fmt.Sprintf(" (%d)", t.Failed)
	}
	return lead
}

// longestGap formats the highest-ranked gap and the timer it resembles.
func longestGap(t *Target) page.Cell {
	if len(t.Gaps) == 0 || !t.Gaps[0].Took.Known() {
		return page.Words(page.None)
	}
	g := &t.Gaps[0]
	text := page.Duration(g.Took.Value)
	switch {
	case g.Wait != nil:
		text += ", " + page.Cut(g.Wait.Timer, page.LongestName)
	case g.In != "":
		text += " in " + page.Cut(g.In, page.LongestName)
	}
	return page.Words(text)
}

// watching returns the overhead of watching, or "" if unknown.
func watching(t *Target) string {
	cpu := ""
	if t.WatchingCPU.Known() {
		cpu = "its CPU " + page.Share(t.WatchingCPU.Value) + " of the start's"
	}
	if !t.Watching.Known() {
		if cpu == "" {
			return ""
		}
		return "watching: " + cpu
	}
	text := "watching: " + page.Significant(t.Watching.Value) + "×"
	if t.Watching.Bounded {
		text += " [" + page.Significant(t.Watching.Lo) + ", " + page.Significant(t.Watching.Hi) + "]"
	}
	switch v := t.Watching.Versus; {
	case v != nil && v.Verdict == stat.Same:
		text += " the same"
	case !v.Different():
		text += " no difference shown"
	case t.Watching.Value > 1:
		text += " slower"
	default:
		text += " faster"
	}
	if cpu != "" {
		text += "; " + cpu
	}
	return text
}

// startsNotes returns the notes for the columns in use.
func startsNotes(v *Judgement) (notes []string) {
	ready := readyNote(v.Targets)
	for _, n := range []struct {
		note string
		of   func(t Target) bool
	}{
		{"medians of the starts with times; brackets: 95 % interval; ±: its larger half", func(t Target) bool { return t.Wall.Bounded }},
		{"engine: engine time, which is wall time without runtime calls; overlapping calls count once", func(t Target) bool { return t.Calls.Known() }},
		{"≤: upper bound; the workload runs in a guest with its own clock, and its output had been read by then",
			func(t Target) bool { return !t.First.Known() && t.FirstBy.Known() }},
		{ready, func(Target) bool { return ready != "" }},
		{"CPU: time of all processes of the start, on all CPUs; for daemons, only during the start", func(t Target) bool { return t.CPU.Known() }},
	} {
		if slices.ContainsFunc(v.Targets, n.of) {
			notes = append(notes, n.note)
		}
	}
	return notes
}
