package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// flowRow is a row of a job's table: a target, or one direction of it.
type flowRow struct {
	c    *judge.StorageCell
	flow *judge.StorageFlow
	way  string // "both", "read", "write"; "" where there is but one
	main bool   // what is of the cell, and not of a direction, stands here
}

// flowRows are the rows of a table. A job that reads and writes has three for
// each target: latencies are of one direction, CPU and the verdict of both.
func flowRows(t *judge.StorageTable) (rows []flowRow) {
	mixed := slices.ContainsFunc(t.Cells, func(c judge.StorageCell) bool { return flows(&c.Read) && flows(&c.Write) })
	for i := range t.Cells {
		c := &t.Cells[i]
		if !mixed || c.Rounds == 0 {
			rows = append(rows, flowRow{c: c, flow: &c.Total, main: true})
			continue
		}
		rows = append(rows, flowRow{c, &c.Total, "both", true}, flowRow{c, &c.Read, "read", false}, flowRow{c, &c.Write, "write", false})
	}
	return rows
}

func flows(f *judge.StorageFlow) bool { return f.Bytes > 0 || f.Bandwidth.Known || f.IOPS.Known }

// jobTable is one job on one volume with one cache, and below it why a figure is
// none of the device's and what failed.
func jobTable(v *judge.Storage, t *judge.StorageTable, first bool, o Options) *section {
	rows := flowRows(t)
	s := &section{title: jobName(t) + ": " + dotted(heading(t.Tool), roundsWithFigures(t)), style: term.Bold}
	s.table = jobMatrix(t, rows, o).spread()
	items := commands(t)
	if items = append(items, reasons(v, t)...); items != nil {
		s.lists = []list{{items: items}}
	}
	if first {
		s.notes = jobNotes(v)
	}
	return s
}

// commands are what was run: the one of most targets, and others with the targets
// that ran those. The host's has the host's paths.
func commands(t *judge.StorageTable) (items []item) {
	var all []string
	of := map[string][]string{}
	for i := range t.Cells {
		c := &t.Cells[i]
		if c.Command == "" {
			continue
		}
		if of[c.Command] == nil {
			all = append(all, c.Command)
		}
		of[c.Command] = append(of[c.Command], heading(c.Target))
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(of[b]) - len(of[a]) })
	for i, command := range all {
		key := "command"
		if i > 0 {
			key = "on " + strings.Join(of[command], ", ")
		}
		items = append(items, item{key: key, text: command, code: true})
	}
	return items
}

// roundsWithFigures are those of the table's cells: "3 rounds", "2–3 rounds".
func roundsWithFigures(t *judge.StorageTable) string {
	var all []int
	for i := range t.Cells {
		if t.Cells[i].Absent == "" {
			all = append(all, t.Cells[i].Rounds)
		}
	}
	switch {
	case all == nil:
		return ""
	case slices.Min(all) == slices.Max(all):
		return roundsOf(all[0])
	}
	return fmt.Sprintf("%d–%s", slices.Min(all), roundsOf(slices.Max(all)))
}

// jobMatrix has the verdict among the columns that stand in every part of a
// table that is too wide: no figure is to be read without it.
func jobMatrix(t *judge.StorageTable, rows []flowRow, o Options) *matrix {
	m := &matrix{lead: []term.Column{{Title: "target"}, {Title: "verdict"}}}
	mixed := slices.ContainsFunc(rows, func(r flowRow) bool { return r.way != "" })
	if mixed {
		m.lead = append(m.lead, term.Column{})
	}
	for i := range rows {
		lead := leadOf(&rows[i])
		if mixed {
			lead = append(lead, plain(rows[i].way))
		}
		m.rows = append(m.rows, matrixRow{lead: lead})
	}
	m.figures(rows, "MB/s", func(r *flowRow) cell { return estimate(r.flow.Bandwidth, megabytes) })
	m.figures(rows, "IOPS", func(r *flowRow) cell {
		out := estimate(r.flow.IOPS, significant)
		if r.flow.Bandwidth.Known && !o.Verbose {
			out.tail = "" // that of the bandwidth: all blocks are of one size
		}
		return out
	})
	for _, q := range quantiles {
		m.figures(rows, q.title, func(r *flowRow) cell {
			e := q.of(r.flow)
			if !o.Verbose && !r.flow.Max.Known && q.instead != nil && q.instead(r.flow).Known {
				return plain(dot)
			}
			e.Bounded = e.Bounded && o.Verbose
			return estimate(e, duration)
		})
	}
	ofCell := func(show func(*judge.StorageCell) cell) func(*flowRow) cell {
		return func(r *flowRow) cell {
			if !r.main {
				return plain("")
			}
			return show(r.c)
		}
	}
	m.figures(rows, "workload CPU m", ofCell(func(c *judge.StorageCell) cell { return estimate(unbounded(c.WorkloadCPU), milli) }))
	m.figures(rows, "runtime CPU m", ofCell(func(c *judge.StorageCell) cell { return estimate(unbounded(c.RuntimeCPU), milli) }))
	m.figures(rows, "CPU s/GiB", ofCell(func(c *judge.StorageCell) cell { return estimate(unbounded(c.CPUPerGiB), significant) }))
	m.figures(rows, "× "+heading(known(t.Base)), ofCell(func(c *judge.StorageCell) cell { return ratioCell(t, c) }))
	m.figures(rows, "failed", ofCell(func(c *judge.StorageCell) cell {
		if c.Failed == 0 {
			return plain(dot)
		}
		return cell{head: fmt.Sprintf("%d/%d", c.Failed, c.Failed+c.Rounds), style: term.Red}
	}))
	return m
}

// leadOf names a row. The verdict stands in every one, the target in the first of
// it, and in Markdown, whose tables are sorted and copied, everywhere.
func leadOf(r *flowRow) []cell {
	name := heading(r.c.Target)
	target := cell{head: name, label: name}
	says := plain(verdict(r.c))
	switch {
	case !r.main:
		target.head = ""
	case r.c.Rounds == 0 || r.c.Failed > 0:
		target.style = term.Red
	}
	switch {
	case r.c.Rounds == 0:
		says.style = term.Red
	case !ofDevice(r.c):
		says.style = term.Yellow
	}
	return []cell{target, says}
}

// quantiles are the columns of latency. What stands instead of another is shown
// where the tool does not say that one; sysbench has nothing but a mean and p95.
var quantiles = []struct {
	title   string
	of      func(*judge.StorageFlow) judge.Estimate
	instead func(*judge.StorageFlow) judge.Estimate
}{
	{"min", func(f *judge.StorageFlow) judge.Estimate { return f.Min }, nil},
	{"mean", func(f *judge.StorageFlow) judge.Estimate { return f.Mean }, func(f *judge.StorageFlow) judge.Estimate { return f.P50 }},
	{"p50", func(f *judge.StorageFlow) judge.Estimate { return f.P50 }, nil},
	{"p95", func(f *judge.StorageFlow) judge.Estimate { return f.P95 }, func(f *judge.StorageFlow) judge.Estimate { return f.P99 }},
	{"p99", func(f *judge.StorageFlow) judge.Estimate { return f.P99 }, nil},
	{"p99.9", func(f *judge.StorageFlow) judge.Estimate { return f.P999 }, nil},
	{"max", func(f *judge.StorageFlow) judge.Estimate { return f.Max }, nil},
}

// unbounded leaves out an interval that would make a table of many columns wide;
// CSV and JSON have it.
func unbounded(e judge.Estimate) judge.Estimate {
	e.Bounded = false
	return e
}

// figures adds a column with a dash for those without figures, unless nothing is
// known of it anywhere.
func (m *matrix) figures(rows []flowRow, title string, show func(*flowRow) cell) {
	cells, some := make([]cell, len(rows)), title == "MB/s"
	for i := range rows {
		if rows[i].c.Rounds == 0 && title != "failed" {
			cells[i] = plain(none)
			continue
		}
		cells[i] = show(&rows[i])
		some = some || cells[i].head != "" && cells[i].head != dot
	}
	if some {
		m.column(title, cells)
	}
}

func ratioCell(t *judge.StorageTable, c *judge.StorageCell) cell {
	switch {
	case c.Target == t.Base:
		return plain("1")
	case !c.Ratio.Known:
		return plain(dot)
	}
	out := cell{tail: between(c.Ratio.Lo, c.Ratio.Hi, c.Ratio.Bounded, significant)}
	out.head, out.style = times(t, c, c.Ratio, c.Different)
	return out
}

func failedOf(c *judge.StorageCell) string {
	return fmt.Sprintf("%d/%d failed", c.Failed, c.Failed+c.Rounds)
}

// reasons say why a figure is none of the device's, what failed, and what there
// is not.
func reasons(v *judge.Storage, t *judge.StorageTable) (items []item) {
	for i := range t.Cells {
		c := &t.Cells[i]
		name := heading(c.Target)
		if c.Rounds > 0 && !ofDevice(c) && len(c.Because) > 0 {
			items = merged(items, item{key: name, text: verdict(c) + ": " + short(term.Clean(c.Because[0]), longestMessage), style: term.Yellow})
		}
		if c.Absent != "" {
			items = append(items, item{key: name, text: none + " " + short(term.Clean(c.Absent), longestMessage)})
			for j := range v.Places {
				if p := &v.Places[j]; p.Target == c.Target && p.Volume == t.Volume && p.Advice != "" {
					items = append(items, item{text: "→ " + short(term.Clean(p.Advice), longestMessage)})
					break
				}
			}
		}
		if c.Failed > 0 {
			items = append(items, failureItems(name, fmt.Sprintf("%d/%d rounds failed", c.Failed, c.Failed+c.Rounds), c.Failure)...)
		}
	}
	var missing []string
	for _, target := range v.Targets {
		if cellOf(t, target.Name) == nil {
			missing = append(missing, heading(target.Name))
		}
	}
	if missing != nil {
		items = append(items, item{key: "no figures", text: strings.Join(missing, ", ")})
	}
	return items
}

// failureItems say what was tried and what came back.
func failureItems(name, count string, f *record.Failure) []item {
	if f == nil {
		return []item{{key: name, text: count, style: term.Red}}
	}
	text := short(term.Clean(f.Detail), longestMessage)
	if count != "" {
		text = count + "; the first: " + text
	}
	items := []item{{key: name, text: text, style: term.Red}}
	if f.Command != "" {
		items = append(items, item{text: f.Command, code: true})
	}
	if output := strings.TrimSpace(f.Output); output != "" && !strings.Contains(f.Detail, output) {
		items = append(items, item{text: "came back: " + short(term.Clean(output), longestMessage)})
	}
	return items
}

// jobNotes explain the columns that some table of the report has.
func jobNotes(v *judge.Storage) (notes []string) {
	latency, cpu, base := false, false, ""
	for i := range v.Tables {
		t := &v.Tables[i]
		for j := range t.Cells {
			c := &t.Cells[j]
			latency = latency || c.Total.P50.Known || c.Read.P50.Known || c.Write.P50.Known || c.Read.Mean.Known || c.Write.Mean.Known
			cpu = cpu || c.WorkloadCPU.Known || c.RuntimeCPU.Known
			if c.Ratio.Known && base == "" {
				base = t.Base
			}
		}
	}
	note := "medians over the rounds, ± the larger half of the 95 % interval; " + dot + " not said by the tool or not known"
	if latency {
		note += "; latency: of one I/O, each round's own"
	}
	notes = append(notes, note)
	if cpu {
		notes = append(notes, "CPU m: milli-CPUs on average while the job ran, of the workload inside, and of everything else of the target: runtime, sentry, gofer, shim, VMM, virtiofsd, monitor, daemon; CPU s/GiB: both, in seconds for each GiB moved")
	}
	if base != "" {
		notes = append(notes, "× "+heading(base)+": with its 95 % interval; ~ where no difference was shown; in parentheses where one of the two is not what the device gives")
	}
	return notes
}
