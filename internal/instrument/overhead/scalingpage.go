package overhead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// calibrations shows the phases with a requested usage.
func calibrations(v *Judgement) *page.Section {
	type load struct {
		cell *Cell
		cpu  bool
	}
	m := &page.Table{Columns: []page.Column{{}, {Title: "target"}}}
	var rows []load
	for i := range v.Tables {
		t := &v.Tables[i]
		phase := page.Heading(t.Phase)
		if t.Sandboxes != 1 {
			phase += fmt.Sprintf(" × %d", t.Sandboxes)
		}
		above := phase
		for j := range t.Cells {
			c := &t.Cells[j]
			if c.Expected <= 0 || c.Rounds == 0 {
				continue
			}
			m.Row(page.Cell{Head: above, Label: phase}, targetCell(c))
			rows = append(rows, load{c, kindOf(t.Phase) == PhaseSpin})
			above = ""
		}
	}
	if rows == nil {
		return nil
	}
	show := func(t *load, v float64) string {
		if t.cpu {
			return ratio(1000*v, "%.1f m")
		}
		return page.Memory(v)
	}
	s := &page.Section{Title: "told and found", Style: term.Bold}
	m.Add("told", page.Each(rows, func(t *load) page.Cell { return page.Words(show(t, t.cell.Expected)) }))
	m.Add("found", page.Each(rows, func(t *load) page.Cell { return page.Words(show(t, t.cell.Measured)) }))
	m.AddIf("it says", page.Each(rows, func(t *load) page.Cell {
		if _, short := t.cell.used(); !short {
			return page.Words(page.Dot)
		}
		return page.Words(show(t, t.cell.Spun))
	}))
	m.Add("error", page.Each(rows, func(t *load) page.Cell {
		off := page.Growth
		if t.cpu {
			off = func(v float64) string { return ratio(1000*v, "%+.1f m") }
		}
		used, _ := t.cell.used()
		return difference(t.cell.Measured, used, 0, off)
	}))
	s.Table = m
	s.Notes = []string{"what each sandbox was told to hold or to use, and what was found above idle, per sandbox"}
	if slices.ContainsFunc(rows, func(t load) bool { _, short := t.cell.used(); return short }) {
		s.Notes = append(s.Notes, "it says: what a load that came short says that it used, by which the error is told")
	}
	return s
}

// oneMore shows what one more sandbox costs, and how many fit.
func oneMore(v *Judgement) *page.Section {
	if len(v.Scaling) == 0 {
		return nil
	}
	s := &page.Section{Title: "one more sandbox costs", Style: term.Bold}
	m := &page.Table{Columns: []page.Column{{Title: "target"}, {Title: "counts"}}}
	for i := range v.Scaling {
		c := &v.Scaling[i]
		m.Row(page.Words(page.Heading(c.Target)), page.Words(numbers(c.Counts, ", ")))
	}
	for i, title := range []string{"memory MiB", "cache MiB", "uncharged MiB", "total MiB", "daemon MiB", "daemon CPU m"} {
		show := page.MiB[float64]
		if perSandbox[i].unit == figure.CPUs {
			show = page.Milli
		}
		cells := page.Each(v.Scaling, func(c *Scaling) page.Cell {
			l := &c.Slopes[i]
			if l.Value == 0 && l.Lo == 0 && l.Hi == 0 {
				return page.Words(page.Dot)
			}
			return page.Cell{Head: page.Rounded(l.Estimate, show), Tail: page.Between(l.Estimate, show), Figure: &l.Figure}
		})
		if i == ofMemory {
			m.Add(title, cells)
		} else {
			m.AddIf(title, cells)
		}
	}
	m.Add("more fit", page.Each(v.Scaling, func(c *Scaling) page.Cell {
		if !c.Fit.Known() {
			return page.Words(page.Dot)
		}
		return page.Cell{Head: page.Rounded(c.Fit.Estimate, page.Count), Tail: page.Between(c.Fit.Estimate, page.Count), Figure: &c.Fit}
	}))
	byTasks := func(c *Scaling) bool { return c.Fit.Known() && c.Fit.Reasons[0] == boundByTasks }
	m.AddIf("bound by", page.Each(v.Scaling, func(c *Scaling) page.Cell {
		return orDot(byTasks(c), boundByTasks)
	}))
	s.Table = m
	s.Notes = []string{"the slope of a line through the idle phases of all rounds and counts, with its 95 % interval; more fit: into the memory that the node has available, and the processes that it allows"}
	if slices.ContainsFunc(v.Scaling, func(c Scaling) bool { return c.Slopes[ofTotal].Value != 0 }) {
		s.Notes = append(s.Notes, "total: memory and uncharged as one line")
	}
	for i := range v.Scaling {
		if c := &v.Scaling[i]; !c.Fit.Known() && c.Fit.Reasons != nil && strings.HasPrefix(c.Fit.Reasons[0], "not shown") {
			s.Notes = append(s.Notes, page.Heading(c.Target)+", more fit: "+c.Fit.Reasons[0])
		}
	}
	s.Notes = append(s.Notes, warnings(v.Scaling)...)
	return s
}

// warnings returns what the intervals of slopes do not cover: one note per target and
// warning, with its slopes.
func warnings(scaling []Scaling) (notes []string) {
	for i := range scaling {
		c := &scaling[i]
		of := map[string][]string{}
		var order []string
		for k := range c.Slopes[:ofOthers] { // those in the table
			for _, text := range c.Slopes[k].Reasons {
				if of[text] == nil {
					order = append(order, text)
				}
				of[text] = append(of[text], perSandbox[k].of)
			}
		}
		for _, text := range order {
			notes = append(notes, page.Heading(c.Target)+", "+strings.Join(of[text], ", ")+": "+page.Short(term.Clean(text), page.LongestMessage))
		}
	}
	return notes
}
