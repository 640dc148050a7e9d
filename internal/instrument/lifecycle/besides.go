package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/beside"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

// page draws it: the two sides, the tables that hold something of ours, and
// what was timed and is to be mistrusted of ours.
func (b *besides) page(o page.Options) *page.Page {
	p := &page.Page{Title: beside.Title(b.theirs), Command: "tare " + Name, Head: []string{beside.NoVerdict + "."}}
	var recs []*record.Record
	for _, one := range b.ours {
		recs = append(recs, one.Record)
	}
	p.Add(beside.Sides(b.theirs, recs))
	var without []string
	for i := range b.tables {
		if t := &b.tables[i]; t.hasOurs() {
			p.Add(b.section(t))
		} else {
			without = append(without, t.Title)
		}
	}
	if without != nil {
		p.Add(&page.Section{Title: "tables of theirs without a figure of ours: " + strings.Join(without, "; ")})
	}
	p.Add(beside.Claims(b.theirs), beside.Method(b.theirs))
	for _, one := range b.ours {
		name := "run " + page.Heading(page.Known(one.Record.Header.RunID)) + ": "
		for _, s := range []*page.Section{failed(one), timed(one), page.Findings(one.Found, page.Lanes, o)} {
			s.Title = name + s.Title
			p.Add(s)
		}
	}
	return p
}

// section is one table of theirs with ours.
func (b *besides) section(t *besideTable) *page.Section {
	machine := b.theirs.Machine(t.Machine)
	s := &page.Section{Title: t.Title + "; theirs on " + machine.Name + ", ours here", Style: term.Bold}
	s.Table = b.table(t)
	statistic := "theirs: " + b.theirs.Statistic + "; ours: " + ourStatistic + ourRounds(t)
	if b.theirs.Statistic == ourStatistic+ourRounds(t) {
		statistic = "theirs and ours: " + b.theirs.Statistic
	}
	s.Notes = append([]string{statistic}, b.notes(t)...)
	return s
}

const ourStatistic = "mean without the largest and the smallest of "

// ourRounds are the numbers of rounds of ours in the table.
func ourRounds(t *besideTable) string {
	var numbers []int
	for _, c := range t.columns {
		for _, table := range c.tables {
			if !slices.Contains(numbers, table.Rounds) {
				numbers = append(numbers, table.Rounds)
			}
		}
	}
	slices.Sort(numbers)
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	if len(numbers) == 1 {
		return page.Amount(numbers[0], "round")
	}
	return strings.Join(texts, ", ") + " rounds"
}

func (b *besides) table(t *besideTable) *page.Table {
	table := page.Names("operation (ms)")
	for i := range t.columns {
		table.Columns = append(table.Columns, page.Column{Title: b.title(t, i), Right: true, Group: i + 1})
	}
	for _, row := range t.rows {
		cells := []page.Cell{page.Words(row.label())}
		for i := range t.columns {
			cells = append(cells, b.cell(t, &row, i))
		}
		table.Row(cells...)
	}
	return table
}

func (r *besideRow) label() string {
	if r.theirs != nil {
		return page.Short(term.Clean(r.theirs.Label), page.LongestName)
	}
	return fmt.Sprintf("%d * %s", r.lanes, r.op)
}

// title says whose figures are below it, and of which run where a target was
// weighed in several.
func (b *besides) title(t *besideTable, i int) string {
	c := &t.columns[i]
	if c.theirs >= 0 {
		return "theirs: " + page.Heading(b.theirs.Column(c.akin).Title)
	}
	same := 0
	for _, other := range t.columns {
		if other.target != nil && other.target.Name == c.target.Name {
			same++
		}
	}
	name := "ours: " + page.Heading(c.target.Name)
	if same > 1 {
		name += " (" + page.Heading(c.run.Record.Header.RunID) + ")"
	}
	return name
}

func (b *besides) cell(t *besideTable, row *besideRow, i int) page.Cell {
	if c := t.columns[i]; c.theirs >= 0 {
		if row.theirs == nil {
			return page.Words(page.None)
		}
		return page.Words(b.printed(row.theirs.Values[c.theirs]))
	}
	ours := row.ours[i]
	if ours == nil {
		return page.Words(page.None)
	}
	out := page.Value(&ours.Trimmed, milliseconds)
	if ours.Time.Failed > 0 {
		out.Head, out.Style = fmt.Sprintf("%d/%d failed, %s", ours.Time.Failed, ours.Time.Total, out.Head), term.Red
	}
	return out
}

// printed is a value of theirs as it stands there, if that is in milliseconds.
func (b *besides) printed(f published.Figure) string {
	ms, ok := b.theirs.Milliseconds(f)
	switch {
	case !ok:
		return page.None
	case b.theirs.Unit == "ms":
		return string(f)
	}
	return strconv.FormatFloat(ms, 'f', -1, 64)
}

// notes are what keeps the columns of a table apart.
func (b *besides) notes(t *besideTable) []string {
	var out []string
	var lanes, akin []string
	for _, c := range t.columns {
		if c.theirs >= 0 {
			continue
		}
		if !c.exact {
			for _, table := range c.tables {
				if n := strconv.Itoa(table.Lanes); !slices.Contains(lanes, n) {
					lanes = append(lanes, n)
				}
			}
		}
		if note := b.theirs.Column(c.akin).Note; note != "" && !slices.Contains(akin, note) {
			akin = append(akin, note)
			out = append(out, b.theirs.Column(c.akin).Title+": "+note)
		}
	}
	if lanes != nil {
		out = append(out, fmt.Sprintf("the lanes differ: theirs are %d at once; %s at once, of ours, are rows of their own", t.Lanes, strings.Join(lanes, ", ")))
	}
	for _, note := range t.Notes {
		out = append(out, "theirs: "+note)
	}
	for _, row := range t.Rows {
		if row.Note != "" {
			out = append(out, "theirs, "+row.Label+": "+row.Note)
		}
	}
	for _, row := range t.rows {
		for i, c := range row.ours {
			if c != nil && c.Time.Estimate.N < roundsAt(t.columns[i].tables, row.lanes) {
				out = append(out, fmt.Sprintf("%s %s: of %s, those without a failure", page.Heading(c.Target), row.label(), page.Amount(c.Time.Estimate.N, "round")))
			}
		}
	}
	return out
}

func roundsAt(tables []*Table, lanes int) int {
	for _, t := range tables {
		if t.Lanes == lanes {
			return t.Rounds
		}
	}
	return 0
}
