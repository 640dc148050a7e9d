package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Page shows the tables, then the findings and the differences between the records.
func (c *Comparison) Page() *page.Page {
	p := page.New("", "compare")
	p.Head, p.Answer = c.head(), c.answer()
	for _, t := range c.Tables {
		s := t.section(c.how)
		s.Detail = t.quantity() != c.Tables[0].quantity()
		p.Add(s)
	}
	p.Add(c.recorded(false))
	p.AddDetails(c.unlikeTable(), c.onlyTable())
	return p
}

// quantity returns the quantity of the table's figures.
func (t *Table) quantity() string {
	for _, row := range t.Rows {
		for _, f := range row.Of {
			if f != nil {
				return f.Quantity
			}
		}
	}
	return ""
}

// head describes the sides and the limits of their comparison.
func (c *Comparison) head() (lines []string) {
	for _, s := range c.Sides {
		names := make([]string, len(s.Runs))
		for i, run := range s.Runs {
			names[i] = page.Known(run.Header.RunID)
		}
		first := &s.Runs[0].Header
		env, line := &first.Environment, page.Heading(s.Name)+": "
		if !first.Started.IsZero() {
			line += page.Heading(first.Experiment) + " of " + first.Started.UTC().Format("2006-01-02 15:04") + ", "
		}
		line += page.Amount(len(s.Runs), "run") + " " + page.Listed(names)
		if env.Kernel != "" {
			line = page.Dotted(line, "Linux "+env.Kernel, env.Arch, page.Processor(env))
		}
		lines = append(lines, line)
	}
	lines = append(lines, page.Filled(c.unknown())...)
	if c.returned {
		lines = append(lines, "times until the call returned are compared where some rounds of one side lack the first instruction")
	}
	for _, p := range c.pairs {
		for _, reason := range p.figure.Reasons {
			if strings.HasPrefix(reason, "on ") {
				lines = page.Union(lines, "verdicts are "+reason)
			} else if strings.HasPrefix(reason, noVerdict) && reason != isControl {
				lines = page.Union(lines, reason)
			}
		}
	}
	return append(lines, page.Filled(c.advice())...)
}

func (c *Comparison) unlikeTable() *page.Section {
	if len(c.Differences) == 0 {
		return nil
	}
	table := page.Names("", "field", "", "", "", "")
	for _, d := range c.Differences {
		table.Row(page.Texts(string(d.Kind), page.Short(d.Field, page.LongestName), page.Heading(d.sides[0]), shortly(d.A), page.Heading(d.sides[1]), shortly(d.B))...)
	}
	return &page.Section{Title: "unlike records", Style: term.Yellow, Table: table}
}

func shortly(s string) string { return page.Middle(page.Known(term.Clean(s)), 2*page.LongestName) }

// shifts describe the kinds of comparisons.
var shifts = map[string]string{
	figure.OfPairs:   page.WithinRound,
	figure.OfRounds:  "shift between the rounds of two runs (Hodges–Lehmann)",
	figure.OfControl: "shift of target ÷ control between two runs (Hodges–Lehmann), including the spread between runs,",
	figure.OfRuns:    "shift between the values of runs, one per run (Student's t),",
}

func (t *Table) section(how figure.Comparing) *page.Section {
	table := page.Names(t.Fields...)
	if len(t.Fields) == 0 {
		table = page.Names("")
	}
	table.Columns = append(table.Columns, page.Column{Title: page.Heading(t.Columns[0]), Right: true})
	for i, name := range t.Columns[1:] {
		name = page.Heading(name)
		table.Columns = append(table.Columns, page.Column{Title: name, Right: true, Group: i + 1}, page.Column{Title: "vs " + page.Heading(t.Columns[0]), Right: true, Group: i + 1, Beside: page.Changes}, page.Column{Title: "", Group: i + 1})
	}
	comparisons, of, bounds := 0, "", false
	for _, row := range t.Rows {
		cells := page.Texts(row.Names...)
		if len(cells) == 0 {
			cells = page.Texts("all")
		}
		cells = append(cells, page.Median(row.Of[0]))
		for _, f := range row.Of[1:] {
			if f == nil {
				cells = append(cells, page.Words(page.None), page.Words(page.None), page.Words(""))
				continue
			}
			if f.Versus != nil {
				comparisons++
				if of == "" || !strings.HasPrefix(f.Versus.Why, noVerdict) {
					of = f.Versus.Of
				}
			}
			bounds = bounds || f.AtMost || row.Of[0].AtMost
			cells = append(cells, page.Median(f), page.Change(f), word(f))
		}
		table.Row(cells...)
	}
	t.mean(table)
	rows := figure.Rows{Names: t.Columns}
	for _, row := range t.Rows {
		rows.Rows = append(rows.Rows, figure.Row{Name: cmp.Or(strings.Join(row.Names, " "), "all"), Of: row.Of})
	}
	s := &page.Section{Title: t.Title, Style: term.Bold, Table: table}
	if comparisons > 0 {
		s.Draw(page.Against("compared", rows))
		s.Notes = []string{page.Compared(t.Columns[0], shifts[of], how, comparisons) + table.Dependent()}
	}
	s.Notes = append(s.Notes, page.Filled(page.Opposed(rows.Pairs()))...)
	if bounds {
		s.Notes = append(s.Notes, page.Bounds)
	}
	return s
}

// mean appends the row of geometric means over the rows with values on both sides.
func (t *Table) mean(table *page.Table) {
	if len(t.Rows) < 2 || !slices.ContainsFunc(t.Means, func(m Mean) bool { return m.Rows > 1 }) {
		return
	}
	names := slices.Repeat([]string{""}, max(len(t.Fields), 1))
	names[0] = "geomean"
	cells := append(page.Texts(names...), page.Words(""))
	for _, m := range t.Means[1:] {
		if m.Rows == 0 {
			cells = append(cells, page.Words(page.None), page.Words(page.None), page.Words(""))
			continue
		}
		cells = append(cells, page.Words(page.Text(m.Value, t.Unit)), page.Words(page.Percent(100*(m.Ratio-1))), page.Words("of "+page.Amount(m.Rows, "row")))
	}
	if i := slices.IndexFunc(t.Means, func(m Mean) bool { return m.Rows == len(t.Rows) }); i >= 0 {
		cells[len(names)] = page.Words(page.Text(t.Means[i].Base, t.Unit))
	}
	table.Row(cells...)
}

// word returns the verdict in the figure's direction, with its p-value.
func word(f *figure.Figure) page.Cell {
	v := f.Versus
	if v == nil {
		return page.Words("")
	}
	out := page.Cell{Head: string(v.Verdict), Tail: stat.P(v.Adjusted)}
	switch {
	case strings.HasPrefix(v.Why, noVerdict):
		return page.Words("no verdict")
	case v.Different() && f.Better != "" && v.Shift.Known():
		out.Head = "better"
		if v.Shift.Value > 0 == (f.Better == figure.Less) {
			out.Head, out.Style = "worse", term.Red
		}
	}
	return out
}

func (c *Comparison) onlyTable() *page.Section {
	if len(c.Only) == 0 {
		return nil
	}
	table := page.Names("figure", "", "of", "value")
	for i := range c.Only {
		f := &c.Only[i].Figure
		table.Row(page.Words(f.Reasons[0]), page.Words(f.Quantity), page.Words(page.Middle(f.Labels.String(), 2*page.LongestName)), page.Median(f))
	}
	return &page.Section{Title: "on one side only, not compared", Style: term.Bold, Table: table}
}

// Page shows the decision for each figure.
func (g *Gate) Page() *page.Page {
	p := page.New("", "gate")
	p.Head = append(g.head(), fmt.Sprintf("gate: %s; margin %s", g.Decision, page.Share(g.Margin)))
	p.Answer = g.answer()
	p.Add(g.recorded(false))
	p.AddDetails(g.unlikeTable())
	table := page.Names("figure", "of")
	for i := range g.Figures {
		table.Row(page.Words(g.Figures[i].Quantity), page.Words(g.Figures[i].Labels.String()))
	}
	table.Add("value", page.Each(g.Figures, page.Median))
	table.Add("shift", page.Each(g.Figures, page.Change))
	table.AddText("decision", page.Each(g.Figures, func(f *figure.Figure) page.Cell {
		c := page.Cell{Head: f.Verdict, Figure: f}
		if f.Verdict == string(stat.Regressed) {
			c.Style = term.Red
		}
		return c
	}))
	if reasons := g.reasons(); len(reasons) > 1 || g.Decision != stat.NotDecided { // otherwise the answer has the reason
		table.AddText("why", page.Each(g.Figures, func(f *figure.Figure) page.Cell { return page.Words(page.Listed(f.Reasons)) }))
	}
	p.Add(&page.Section{Title: "figures", Style: term.Bold, Table: table})
	return p
}
