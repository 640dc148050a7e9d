package overhead

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
)

// calibrations shows the phases with a requested usage.
func calibrations(v *Judgement) *page.Section {
	m := page.Names("", "target")
	var rows []Cell
	for _, c := range v.cells() {
		if c.load("expected") <= 0 {
			continue
		}
		phase := page.Heading(c.Phase)
		if c.Sandboxes != 1 {
			phase += fmt.Sprintf(" × %d", c.Sandboxes)
		}
		name := page.Cell{Head: phase, Label: phase}
		if n := len(rows); n > 0 && rows[n-1].Step == c.Step {
			name.Head = ""
		}
		m.Row(name, targetCell(c))
		rows = append(rows, *c)
	}
	if rows == nil {
		return nil
	}
	show := func(c *Cell, v float64) string {
		if kindOf(c.Phase) == PhaseSpin {
			return ratio(1000*v, "%.1f m")
		}
		return page.Memory(v)
	}
	s := &page.Section{Title: "calibration: requested vs. measured", Style: term.Bold}
	m.Add("requested", page.Each(rows, func(c *Cell) page.Cell { return page.Words(show(c, c.load("expected"))) }))
	m.Add("measured", page.Each(rows, func(c *Cell) page.Cell { return page.Words(show(c, c.load("measured"))) }))
	m.AddIf("reported", page.Each(rows, func(c *Cell) page.Cell {
		if _, short := c.used(); !short {
			return page.Words(page.Dot)
		}
		return page.Words(show(c, c.load("reported")))
	}))
	m.Add("error", page.Each(rows, func(c *Cell) page.Cell {
		off := page.Growth
		if kindOf(c.Phase) == PhaseSpin {
			off = func(v float64) string { return ratio(1000*v, "%+.1f m") }
		}
		used, _ := c.used()
		return difference(c.load("measured"), used, 0, off)
	}))
	notes := lines{"requested memory or CPU of each sandbox, and measured usage above idle, per sandbox"}
	notes.addIf(slices.ContainsFunc(rows, func(c Cell) bool { _, short := c.used(); return short }),
		"reported: usage that a load below its request reports; the error is relative to it")
	s.Table, s.Notes = m, notes
	return s
}

// oneMore shows the cost of one more sandbox, and how many more fit on the node.
func oneMore(v *Judgement) *page.Section {
	if len(v.Scaling) == 0 {
		return nil
	}
	s := &page.Section{Title: "cost of one more sandbox", Style: term.Bold}
	m := page.Names("target", "counts")
	for c := range ledger.Each(v.Scaling) {
		m.Row(page.Words(page.Heading(c.Target)), page.Words(numbers(c.Counts, ", ")))
	}
	for i, of := range perSandbox {
		show := page.MiB[float64]
		if of.unit == figure.CPUs {
			show = page.Milli
		}
		cells := page.Each(v.Scaling, func(c *Scaling) page.Cell {
			l := c.slope(of.of)
			if l.Value == 0 && l.Lo == 0 && l.Hi == 0 {
				return page.Words(page.Dot)
			}
			return page.Cell{Head: page.Rounded(l.Estimate, show), Tail: page.Between(l.Estimate, show), Figure: l}
		})
		switch {
		case i == 0:
			m.Add(of.title, cells)
		case of.title != "":
			m.AddIf(of.title, cells)
		}
	}
	m.Add("additional sandboxes", page.Each(v.Scaling, func(c *Scaling) page.Cell {
		if !c.Fit.Known() {
			return page.Words(page.Dot)
		}
		return page.Cell{Head: page.Rounded(c.Fit.Estimate, page.Count), Tail: page.Between(c.Fit.Estimate, page.Count), Figure: &c.Fit}
	}))
	m.AddIf("bound by", page.Each(v.Scaling, func(c *Scaling) page.Cell {
		return orDot(c.Fit.Known() && c.Fit.Reasons[0] == boundByTasks, boundByTasks)
	}))
	notes := lines{"slope of a line through the idle phases of all rounds and counts, with its 95 % interval; additional sandboxes: limited by the node's available memory and process limit"}
	notes.addIf(slices.ContainsFunc(v.Scaling, func(c Scaling) bool { return c.slope("total").Value != 0 }), "total: one line through memory plus uncharged")
	for c := range ledger.Each(v.Scaling) {
		why := strings.Join(c.Fit.Reasons, "; ")
		notes.addIf(!c.Fit.Known() && strings.HasPrefix(why, "not shown"), page.Heading(c.Target)+", additional sandboxes: "+why)
	}
	s.Table, s.Notes = m, append(notes, warnings(v.Scaling)...)
	return s
}

// warnings returns what the intervals of slopes do not cover: one note per target and
// warning, with the slopes concerned.
func warnings(scaling []Scaling) (notes []string) {
	for c := range ledger.Each(scaling) {
		of := map[string][]string{}
		var order []string
		for _, q := range perSandbox {
			for _, text := range c.slope(q.of).Reasons {
				if q.title == "" {
					continue
				}
				if of[text] == nil {
					order = append(order, text)
				}
				of[text] = append(of[text], q.of)
			}
		}
		for _, text := range order {
			notes = append(notes, page.Heading(c.Target)+", "+strings.Join(of[text], ", ")+": "+page.Short(term.Clean(text), page.LongestMessage))
		}
	}
	return notes
}

// asked shows the results of the request load, or nil if there was none.
func asked(j *Judgement) *page.Section {
	m := page.Names("target")
	var rows []Cell
	for _, c := range j.cells() {
		if kindOf(c.Phase) == PhaseLoad {
			m.Row(targetCell(c))
			rows = append(rows, *c)
		}
	}
	if rows == nil {
		return nil
	}
	m.AddUnless("requests/s", page.Each(rows, func(c *Cell) page.Cell { return page.WithHalf(c.All.Of("requests"), page.Significant, page.None) }))
	m.AddIf("failed", page.Each(rows, func(c *Cell) page.Cell {
		if c.Errors == 0 {
			return page.Words(page.Dot)
		}
		return page.Cell{Head: strconv.FormatInt(c.Errors, 10), Style: term.Red}
	}))
	m.Add("memory above idle", page.Each(rows, func(c *Cell) page.Cell { return page.WithHalf(c.All.Of("memory-above-idle"), page.Memory, page.None) }))
	return &page.Section{Title: "under load " + page.Heading(j.Plan.URL), Style: term.Bold, Table: m,
		Notes: []string{"memory above idle: anonymous, shared and huge pages per sandbox of the roles that a load inside affects (workload, pause, VMM, vCPU, virtiofsd, sentry, gofer), read after the load; the tables of the phase show all roles and charges"}}
}
