package report

import (
	"fmt"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// startsTable has all targets side by side, and below it why a target has no times
// and what watching cost.
func startsTable(v *judge.Startup) *section {
	if len(v.Targets) == 0 {
		return nil
	}
	s := &section{title: "starts", style: term.Bold}
	m := &matrix{lead: []term.Column{{Title: "target"}, {Title: "starts (failed)", Right: true}}}
	for i := range v.Targets {
		m.rows = append(m.rows, matrixRow{lead: startsLead(&v.Targets[i])})
	}
	for _, c := range []struct {
		title string
		show  func(*judge.StartupTarget) cell
	}{
		{"wall", func(t *judge.StartupTarget) cell { return boundedCell(t.Wall) }},
		{"to first instruction", func(t *judge.StartupTarget) cell { return tookCell(t.First) }},
		{"runtime calls", func(t *judge.StartupTarget) cell { return tookCell(t.Calls) }},
		{"engine", func(t *judge.StartupTarget) cell { return tookCell(t.Credits) }},
		{"CPU", func(t *judge.StartupTarget) cell { return plain(tookCell(t.CPU).head) }},
	} {
		m.column(c.title, each(v.Targets, c.show))
	}
	m.text("longest gap", each(v.Targets, longestGap))
	s.table = m.spread()
	var items []item
	for i := range v.Targets {
		t := &v.Targets[i]
		name := heading(known(t.Target))
		if t.Failed > 0 {
			items = append(items, failureItems(name, fmt.Sprintf("%d/%s failed", t.Failed, startsOf(t.Starts+t.NoEnd+t.Failed)), t.Failure)...)
		}
		if t.NoEnd > 0 {
			items = append(items, item{key: name, text: "without an end: " + startsOf(t.NoEnd), style: term.Yellow})
		}
		if text := watching(t); text != "" {
			key := item{key: name, text: text}
			if t.Different {
				key.style = term.Yellow
			}
			items = append(items, key)
		}
	}
	if items != nil {
		s.lists = []list{{items: items}}
	}
	s.notes = startsNotes(v)
	return s
}

func startsLead(t *judge.StartupTarget) []cell {
	name := heading(known(t.Target))
	lead := []cell{{head: name, label: name}, plain(fmt.Sprint(t.Starts))}
	if t.Failed > 0 {
		lead[0].style, lead[1].style = term.Red, term.Red
		lead[1].head += fmt.Sprintf(" (%d)", t.Failed)
	}
	return lead
}

// longestGap is the first of the ranked gaps, with the timer that it looks like.
func longestGap(t *judge.StartupTarget) cell {
	if len(t.Gaps) == 0 {
		return plain(none)
	}
	g := &t.Gaps[0]
	if !g.Took.Known {
		return plain(none)
	}
	text := duration(g.Took.Value)
	if g.Wait != nil {
		return plain(text + ", " + cut(g.Wait.Timer, longestName))
	}
	if g.In != "" {
		return plain(text + " in " + cut(g.In, longestName))
	}
	return plain(text)
}

// watching is what the watch itself costs, "" where that is not known.
func watching(t *judge.StartupTarget) string {
	cpu := ""
	if t.WatchingCPU.Known {
		cpu = "its CPU " + shareText(t.WatchingCPU.Value) + " of the start's"
	}
	if !t.Watching.Known {
		if cpu == "" {
			return ""
		}
		return "watching: " + cpu
	}
	text := "watching: " + significant(t.Watching.Value) + "×"
	if t.Watching.Bounded {
		text += " [" + significant(t.Watching.Lo) + ", " + significant(t.Watching.Hi) + "]"
	}
	switch {
	case !t.Different:
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

// startsNotes explain the columns that say something.
func startsNotes(v *judge.Startup) (notes []string) {
	bounded, calls, cpu := false, false, false
	for i := range v.Targets {
		t := &v.Targets[i]
		bounded = bounded || t.Wall.Bounded
		calls = calls || t.Calls.Known
		cpu = cpu || t.CPU.Known
	}
	if bounded {
		notes = append(notes, "medians over the starts with times; in brackets the 95 % interval, ± its larger half")
	}
	if calls {
		notes = append(notes, "engine: the credits to the engine, wall time less the runtime's calls; calls that overlap count once")
	}
	if cpu {
		notes = append(notes, "CPU: of all processes of the start, on all CPUs; a daemon's is that during the start")
	}
	return notes
}
