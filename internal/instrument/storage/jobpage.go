package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// flowRow is a row of a job's table: a target, or one direction of it.
type flowRow struct {
	*Cell
	way  string // "both", "read", "write"; "" if there is only one direction
	main bool   // the row that shows the figures of the whole cell
}

// figure returns the figure of the row's direction.
func (r *flowRow) figure(quantity string, labels ...string) *figure.Figure {
	if !r.main {
		labels = append(labels, "direction", r.way)
	}
	return r.Of(quantity, labels...)
}

// flowRows returns the rows of a table. A job that reads and writes has three rows per
// target. Latencies are per direction; CPU and verdict are of both.
func flowRows(t *Table) (rows []flowRow, mixed bool) {
	mixed = slices.ContainsFunc(t.Cells, (*Cell).mixed)
	for _, c := range t.Cells {
		if !mixed || c.Rounds == 0 {
			rows = append(rows, flowRow{c, "", true})
			continue
		}
		for _, way := range []string{"both", "read", "write"} {
			rows = append(rows, flowRow{c, way, way == "both"})
		}
	}
	return rows, mixed
}

// jobTable shows one job on one volume with one cache mode. Below it are the reasons of
// verdicts and the failures.
func jobTable(j *Judgement, t *Table, first bool, o page.Options) *page.Section {
	s := &page.Section{Title: t.name() + ": " + page.Dotted(page.Heading(t.Tool), roundsWithFigures(t)), Style: term.Bold, Table: jobColumns(t, o)}
	items := append(commands(t), movedBy(t)...)
	if items = append(items, reasons(j, t)...); items != nil {
		s.Lists = []page.List{{Items: items}}
	}
	if first {
		s.Notes = jobNotes(j)
	}
	return s
}

// commands returns the commands that ran: the most common one first, the others with
// their targets. The host's command has the host's paths.
func commands(t *Table) (items []page.Item) {
	var all grouped
	for _, c := range t.Cells {
		if c.Command != "" {
			all.add(c.Command, page.Heading(c.Target))
		}
	}
	slices.SortStableFunc(all.keys, func(a, b string) int { return len(all.of[b]) - len(all.of[a]) })
	for i, command := range all.keys {
		key := "command"
		if i > 0 {
			key = "on " + strings.Join(all.of[command], ", ")
		}
		items = append(items, page.Item{Key: key, Text: command, Code: true})
	}
	return items
}

// movedBy returns the bytes and the duration per round of each target, as tools print them.
func movedBy(t *Table) []page.Item {
	var all []string
	for _, c := range t.Cells {
		took, bytes := c.Of("run-time"), c.Of("transferred")
		if !took.Known() {
			continue
		}
		text := page.Heading(c.Target)
		if bytes.Known() {
			text += " " + page.Size(bytes.Value)
		}
		all = append(all, text+" in "+page.Duration(took.Value))
	}
	if all == nil {
		return nil
	}
	return []page.Item{{Key: "moved", Text: page.Dotted(all...)}}
}

// roundsWithFigures returns the number of rounds in the table: "3 rounds", "2–3 rounds".
func roundsWithFigures(t *Table) string {
	var all []int
	for _, c := range t.Cells {
		if c.Absent == "" {
			all = append(all, c.Rounds)
		}
	}
	switch {
	case all == nil:
		return ""
	case slices.Min(all) == slices.Max(all):
		return page.Amount(all[0], "round")
	}
	return fmt.Sprintf("%d–%s", slices.Min(all), page.Amount(slices.Max(all), "round"))
}

// jobColumns puts the verdict among the columns that every part of a split table repeats:
// no figure should be read without it.
func jobColumns(t *Table, o page.Options) *page.Table {
	rows, mixed := flowRows(t)
	p := &jobPage{page.Names("target", "verdict"), rows}
	if mixed {
		p.Columns = append(p.Columns, page.Column{})
	}
	for i := range rows {
		names := rows[i].names()
		if mixed {
			names = append(names, page.Words(rows[i].way))
		}
		p.Row(names...)
	}
	p.add("MB/s", func(r *flowRow) page.Cell { return page.WithHalf(r.figure("bandwidth"), page.Megabytes, page.Dot) })
	p.Draw(page.Estimates)
	p.add("IOPS", func(r *flowRow) page.Cell {
		out := page.WithHalf(r.figure("iops"), page.Significant, page.Dot)
		if r.figure("bandwidth").Known() && !o.Verbose {
			out.Tail = "" // the same as that of the bandwidth: all blocks have one size
		}
		return out
	})
	for _, l := range latencies {
		p.add(l.name, func(r *flowRow) page.Cell {
			latency := func(quantile string) *figure.Figure { return r.figure("latency", "quantile", quantile) }
			switch {
			case o.Verbose:
				return page.WithHalf(latency(l.name), page.Duration, page.Dot)
			case t.Tool != ToolSysbench && !latency("max").Known() && l.unless != "" && latency(l.unless).Known():
				return page.Words(page.Dot)
			}
			return alone(latency(l.name), page.Duration)
		})
	}
	if t.Tool == ToolSysbench || o.Verbose { // sysbench reports include its prepare step
		p.ofCells("laid out MB/s", func(c *Cell) page.Cell {
			out := alone(c.Of("layout-bandwidth"), page.Megabytes)
			if took := c.Of("layout-time"); took.Known() {
				out.Tail = "in " + page.Duration(took.Value)
			}
			return out
		})
	}
	p.ofCells("workload CPU m", func(c *Cell) page.Cell { return alone(c.Of("cpu", "role", "workload"), page.Milli) })
	p.ofCells("runtime CPU m", func(c *Cell) page.Cell { return alone(c.Of("cpu", "role", "runtime"), page.Milli) })
	p.ofCells("CPU s/GiB", func(c *Cell) page.Cell {
		return alone(c.Of("cpu-per-byte"), func(v float64) string { return page.Significant(v * (1 << 30) / 1e9) })
	})
	p.ofCells("× "+page.Heading(page.Known(t.Base)), func(c *Cell) page.Cell {
		switch {
		case c.Target == t.Base:
			return page.Cell{Head: "1", Figure: c.ratio()}
		case !c.compared():
			return page.Words(page.Dot)
		}
		out := c.times()
		out.Tail = page.Between(c.ratio().Estimate, page.Significant)
		return out
	})
	p.ofCells("failed", func(c *Cell) page.Cell {
		if c.Failed == 0 {
			return page.Words(page.Dot)
		}
		return page.Cell{Head: fmt.Sprintf("%d/%d", c.Failed, c.Failed+c.Rounds), Style: term.Red}
	})
	return p.Table
}

// names returns the first cells of a row. Every row has the verdict. Only the first row of
// a target has its name, except in Markdown, where tables are sorted and copied.
func (r *flowRow) names() []page.Cell {
	name := page.Heading(r.Target)
	target, says := page.Cell{Head: name, Label: name}, page.Words(r.says())
	switch {
	case !r.main:
		target.Head = ""
	case r.Rounds == 0 || r.Failed > 0:
		target.Style = term.Red
	}
	switch {
	case r.Rounds == 0:
		says.Style = term.Red
	case !r.ofDevice():
		says.Style = term.Yellow
	}
	return []page.Cell{target, says}
}

// alone shows a figure without its interval, to keep wide tables narrow. CSV and JSON
// have the interval.
func alone(f *figure.Figure, show func(float64) string) page.Cell {
	c := page.WithHalf(f, show, page.Dot)
	c.Tail = ""
	return c
}

// jobPage is a job's table with the rows that it shows.
type jobPage struct {
	*page.Table
	rows []flowRow
}

// add adds a column unless all its values are unknown. Rows without figures get a dash.
func (p *jobPage) add(title string, show func(*flowRow) page.Cell) {
	cells := page.Each(p.rows, func(r *flowRow) page.Cell {
		if r.Rounds == 0 && title != "failed" {
			return page.Words(page.None)
		}
		return show(r)
	})
	known := func(c page.Cell) bool { return c.Head != "" && c.Head != page.Dot && c.Head != page.None }
	if title == "MB/s" || slices.ContainsFunc(cells, known) {
		p.Add(title, cells)
	}
}

// ofCells adds a column with values of the whole cell, not of a direction.
func (p *jobPage) ofCells(title string, show func(*Cell) page.Cell) {
	p.add(title, func(r *flowRow) page.Cell {
		if !r.main {
			return page.Words("")
		}
		return show(r.Cell)
	})
}

// reasons returns the reasons of verdicts, the failures, and what is unavailable.
func reasons(j *Judgement, t *Table) (items []page.Item) {
	for _, c := range t.Cells {
		name := page.Heading(c.Target)
		if c.Rounds > 0 && !c.ofDevice() && len(c.Because) > 0 {
			items = page.Merge(items, page.Item{Key: name, Text: c.says() + ": " + clipped(c.Because[0]), Style: term.Yellow})
		}
		if c.Absent != "" {
			items = append(items, page.Item{Key: name, Text: page.None + " " + clipped(c.Absent)})
			if c.place.Advice != "" {
				items = append(items, page.Item{Text: "→ " + clipped(c.place.Advice)})
			}
		}
		if c.Failed > 0 {
			items = append(items, page.FailureItems(name, fmt.Sprintf("%d/%d rounds failed", c.Failed, c.Failed+c.Rounds), c.Failure)...)
		}
	}
	var missing []string
	for _, target := range j.Targets {
		if t.cellOf(target.Name) == nil {
			missing = append(missing, page.Heading(target.Name))
		}
	}
	if missing != nil {
		items = append(items, page.Item{Key: "no figures", Text: strings.Join(missing, ", ")})
	}
	return items
}

// jobNotes explains the columns that occur in the report.
func jobNotes(j *Judgement) (notes []string) {
	latency, cpu := false, false
	for _, c := range j.measured() {
		for _, f := range c.Set {
			quantile, both := f.Labels.Get("quantile"), f.Labels.Get("direction") == "both"
			latency = latency || f.Known() && (quantile == "p50" || quantile == "mean" && !both)
			cpu = cpu || f.Known() && f.Quantity == "cpu"
		}
	}
	note := "medians over the rounds, ± the larger half of the 95 % interval; " + page.Dot + " not reported by the tool or unknown"
	if latency {
		note += "; latency: of one I/O, per round"
	}
	notes = append(notes, note)
	if cpu {
		notes = append(notes, "CPU m: milli-CPUs on average while the job ran, of the workload inside, and of everything else of the target: runtime, sentry, gofer, shim, VMM, virtiofsd, monitor, daemon; CPU s/GiB: both, in seconds for each GiB moved")
	}
	if bases := basesOf(j); bases != nil {
		notes = append(notes, timesEach(bases)+": with its 95 % interval; = the same within the margin, ~ not decided; in parentheses if one of the two is not shown to be the device's figure")
	}
	return notes
}
