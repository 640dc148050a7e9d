package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// inShort returns the summary table in the form of the published report. It has a row per
// target, a column per job, and below each figure its ratio to the host's. A figure that
// is not of the device has the verdict before it, so that it is not mistaken for one.
func inShort(j *Judgement) *page.Section {
	if len(j.Tables) == 0 {
		return nil
	}
	varied, bases := variedOf(j.Tables), basesOf(j)
	s := &page.Section{Title: varied.title("in short"), Style: term.Bold, Table: page.Names("target")}
	s.Table.Sparse = true                  // targets may lack ratios
	type row struct{ target, base string } // base is set in rows with the ratios to it
	var rows []row
	for _, target := range j.Targets {
		name := page.Heading(target.Name)
		rows = append(rows, row{target: target.Name})
		s.Table.Row(page.Words(name))
		for _, base := range bases {
			if slices.ContainsFunc(j.Tables, func(t *Table) bool { return t.Base == base && t.cellOf(target.Name).compared() }) {
				rows = append(rows, row{target.Name, base})
				s.Table.Row(page.Cell{Head: "  × " + page.Heading(base), Label: name + " × " + page.Heading(base)})
			}
		}
	}
	for _, t := range j.Tables {
		s.Table.Add(varied.name(t), page.Each(rows, func(r *row) page.Cell {
			c := t.cellOf(r.target)
			switch {
			case r.base == "":
				return shortFigure(t, c)
			case t.Base != r.base || !c.compared():
				return page.Cell{}
			}
			out := c.times()
			if r := c.ratio(); r.Bounded {
				out.Head += " " + page.HalfWidth(r.Estimate)
			}
			return out
		}))
	}
	if missing := missingFigures(j, &varied); missing != nil {
		s.Lists = []page.List{{Items: missing}}
	}
	s.Notes = shortNotes(j, bases)
	for _, base := range bases {
		s.Draw(ratiosChart(j, &varied, base))
	}
	s.Draw(speedCharts(j, &varied)...)
	return s
}

// basesOf returns the base targets in the order of the tables.
func basesOf(j *Judgement) (all []string) {
	for _, c := range j.measured() {
		if c.compared() && !slices.Contains(all, c.table.Base) {
			all = append(all, c.table.Base)
		}
	}
	return all
}

// timesEach returns the title of ratios to the bases.
func timesEach(bases []string) string {
	all := make([]string, len(bases))
	for i, base := range bases {
		all[i] = "× " + page.Heading(base)
	}
	return strings.Join(all, ", ")
}

// shortFigure returns the figures that each tool's report shows. For dd that is bandwidth,
// for sysbench bandwidth and total time, for fio IOPS and bandwidth.
func shortFigure(t *Table, c *Cell) page.Cell {
	if c == nil || c.Rounds == 0 {
		return page.Words(page.None)
	}
	bandwidth, iops := c.Of("bandwidth"), c.Of("iops")
	out := page.Value(bandwidth, func(v float64) string { return page.Megabytes(v) + " MB/s" })
	switch {
	case t.Tool == ToolDD && bandwidth.Known():
	case t.Tool == ToolSysbench && bandwidth.Known():
		if took := c.Of("run-time"); took.Known() {
			out.Tail = "in " + page.Duration(took.Value)
		}
	case iops.Known() && bandwidth.Known():
		tail := "(" + out.Head + ")"
		out = page.Value(iops, page.Significant)
		out.Tail = tail
	case iops.Known():
		out = page.Value(iops, func(v float64) string { return page.Significant(v) + " IOPS" })
	}
	if !c.ofDevice() {
		out.Head, out.Style = c.says()+" "+out.Head, term.Yellow
	}
	if c.Failed > 0 {
		out.Head, out.Style = fmt.Sprintf("%d/%d failed, ", c.Failed, c.Failed+c.Rounds)+out.Head, term.Red
	}
	return out
}

func shortNotes(j *Judgement, bases []string) (notes []string) {
	measured := j.measured()
	compared := slices.DeleteFunc(j.measured(), func(c *Cell) bool { return !c.compared() })
	var parts []string
	for _, m := range meanings {
		if slices.ContainsFunc(measured, func(c *Cell) bool { return c.Verdict == m.verdict }) {
			parts = append(parts, m.verdict.text()+": "+m.means)
		}
	}
	if parts != nil {
		notes = append(notes, "a word before a figure is the reason why it is not the device's: "+strings.Join(parts, "; "))
	}
	if len(compared) > 0 {
		note := timesEach(bases) + ": ratio in the same round, of IOPS for blocks of up to 64 KiB, else of MB/s; = the same, ~ no difference shown"
		for _, x := range []struct {
			of   func(*Cell) bool
			note string
		}{
			{func(c *Cell) bool { return !c.ofDevice() || !c.table.base.ofDevice() }, "; (…) one of both is not the device's"},
			{func(c *Cell) bool { return c.ratio().Bounded }, "; ± half of the 95 % interval"},
			{func(c *Cell) bool { return !c.ratio().Bounded }, "; no ±: too few rounds"},
		} {
			if slices.ContainsFunc(compared, x.of) {
				note += x.note
			}
		}
		notes = append(notes, note)
	}
	if slices.ContainsFunc(measured, (*Cell).mixed) {
		notes = append(notes, "of a job that reads and writes both are added up")
	}
	return notes
}

// missingFigures explains every dash. It merges equal reasons.
func missingFigures(j *Judgement, varied *varied) (items []page.Item) {
	for _, target := range j.Targets {
		var where grouped // by the reason
		for _, t := range j.Tables {
			switch c := t.cellOf(target.Name); {
			case c == nil:
				where.add("no figures", varied.name(t))
			case c.Absent != "":
				where.add(page.Short(term.Clean(c.Absent), longestReason), page.Heading(t.Volume))
			case c.Rounds == 0 && c.Failure != nil:
				where.add("failed, the first: "+page.Short(term.Clean(c.Failure.Detail), longestReason), varied.name(t))
			case c.Rounds == 0:
				where.add(c.says(), varied.name(t))
			}
		}
		key := page.Heading(target.Name)
		for _, reason := range where.keys {
			items = append(items, page.Item{Key: key, Text: page.None + " " + strings.Join(where.of[reason], "; ") + ": " + reason})
			key = ""
		}
	}
	return items
}

// longestReason is the maximum length of a reason in the summary. The job's table shows the full
// reason.
const longestReason = 160

// varied lists the parts of the tables' names that differ. Equal parts are in the title only.
type varied struct {
	first               *Table
	tool, volume, cache bool
}

func variedOf(tables []*Table) varied {
	out := varied{first: tables[0]}
	for _, t := range tables {
		out.tool = out.tool || t.Tool != out.first.Tool
		out.volume = out.volume || t.Volume != out.first.Volume
		out.cache = out.cache || t.Cache != out.first.Cache
	}
	return out
}

func (d *varied) name(t *Table) string {
	tool := d.tool && !strings.Contains(t.Job, t.Tool)
	return strings.Join(slices.Concat(heading(t.Tool, tool), heading(t.Job, true), heading(t.Volume, d.volume), heading(t.Cache, d.cache)), " ")
}

func (d *varied) title(text string) string {
	parts := slices.Concat(heading(d.first.Tool, !d.tool), heading(d.first.Volume, !d.volume), heading(d.first.Cache, !d.cache))
	if parts == nil {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}

// heading returns part of a name, or nil if it is hidden or unknown.
func heading(text string, shown bool) []string {
	if !shown || text == "" {
		return nil
	}
	return []string{page.Heading(text)}
}
