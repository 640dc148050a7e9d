package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/published"
)

// page draws it: the two sides, the tables that hold something of ours, and
// what was timed and is to be mistrusted of ours.
func (b *beside) page(o Options) *page {
	p := &page{title: "Beside " + source(b.theirs), head: []string{noVerdict + "."}}
	p.sections = append(p.sections, b.sides())
	var without []string
	for i := range b.tables {
		if t := &b.tables[i]; t.hasOurs() {
			p.sections = append(p.sections, b.section(t))
		} else {
			without = append(without, t.Title)
		}
	}
	if without != nil {
		p.sections = append(p.sections, section{title: "tables of theirs without a figure of ours: " + strings.Join(without, "; ")})
	}
	p.sections = append(p.sections, b.theirMethod())
	for _, one := range b.ours {
		name := "run " + heading(known(one.Record.Header.RunID)) + ": "
		for _, s := range []section{failed(one.Lifecycle), timed(one.Lifecycle), found(one.Lifecycle, o)} {
			s.title = name + s.title
			p.sections = append(p.sections, s)
		}
	}
	return p
}

// source names a publication.
func source(p *published.Report) string {
	title := p.Title
	if p.OriginalTitle != "" {
		title += " (" + p.OriginalTitle + ")"
	}
	return short(term.Clean(strings.Join([]string{title, p.Author, p.Date}, ", ")), longestTitle)
}

// sides are the machines and the versions of both.
func (b *beside) sides() section {
	s := section{title: "whose figures are of what", style: term.Bold}
	theirs := list{heading: "theirs"}
	for _, m := range b.theirs.Machines {
		theirs.items = append(theirs.items, item{key: heading(m.Name), text: dotted(m.OS, m.Kernel, m.CPU, m.Memory)})
	}
	for _, e := range b.theirs.Engines {
		version := e.Version
		if version == "" {
			version = "version not stated"
		}
		theirs.items = append(theirs.items, item{key: heading(e.Name), text: dotted(slices.Concat([]string{version}, e.Parts, e.Notes)...)})
	}
	s.lists = []list{theirs}
	for _, one := range b.ours {
		env := &one.Record.Header.Environment
		ours := list{heading: "ours, run " + heading(known(one.Record.Header.RunID)), items: []item{
			{key: "machine", text: dotted(env.OS, "Linux "+known(env.Kernel), processor(env), "memory "+size(float64(env.Memory)), cgroups(env.Cgroup))},
		}}
		for _, t := range one.Lifecycle.Targets {
			version := t.Version
			if version == "" {
				version = "no version of its own"
			}
			ours.items = append(ours.items, item{key: heading(t.Name), text: dotted(version, t.Config["runtime"], t.Config["runtime version"])})
		}
		s.lists = append(s.lists, ours)
	}
	return s
}

// section is one table of theirs with ours.
func (b *beside) section(t *besideTable) section {
	machine := b.theirs.Machine(t.Machine)
	s := section{title: t.Title + "; theirs on " + machine.Name + ", ours here", style: term.Bold}
	s.table = &spread{pivot: -1, build: func(of []int) *grid { return b.grid(t, of) }}
	for i := range t.columns {
		s.table.order = append(s.table.order, i)
	}
	statistic := "theirs: " + b.theirs.Statistic + "; ours: " + ourStatistic + ourRounds(t)
	if b.theirs.Statistic == ourStatistic+ourRounds(t) {
		statistic = "theirs and ours: " + b.theirs.Statistic
	}
	s.notes = append([]string{statistic}, b.notes(t)...)
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
		return roundsOf(numbers[0])
	}
	return strings.Join(texts, ", ") + " rounds"
}

func (b *beside) grid(t *besideTable, of []int) *grid {
	g := &grid{columns: []term.Column{{Title: "operation (ms)"}}}
	for _, i := range of {
		g.columns = append(g.columns, term.Column{Title: b.title(t, i), Right: true})
	}
	for _, row := range t.rows {
		cells := []cell{plain(row.label())}
		for _, i := range of {
			cells = append(cells, b.cell(t, &row, i))
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

func (r *besideRow) label() string {
	if r.theirs != nil {
		return short(term.Clean(r.theirs.Label), longestName)
	}
	return fmt.Sprintf("%d * %s", r.lanes, r.op)
}

// title says whose figures are below it, and of which run where a target was
// weighed in several.
func (b *beside) title(t *besideTable, i int) string {
	c := &t.columns[i]
	if c.theirs >= 0 {
		return "theirs: " + heading(b.theirs.Column(c.akin).Title)
	}
	same := 0
	for _, other := range t.columns {
		if other.target != nil && other.target.Name == c.target.Name {
			same++
		}
	}
	name := "ours: " + heading(c.target.Name)
	if same > 1 {
		name += " (" + heading(c.run.Record.Header.RunID) + ")"
	}
	return name
}

func (b *beside) cell(t *besideTable, row *besideRow, i int) cell {
	if c := t.columns[i]; c.theirs >= 0 {
		if row.theirs == nil {
			return plain(none)
		}
		return plain(b.printed(row.theirs.Values[c.theirs]))
	}
	ours := row.ours[i]
	if ours == nil {
		return plain(none)
	}
	out := plain(milliseconds(ours.Trimmed))
	if ours.Failed > 0 {
		out = cell{head: fmt.Sprintf("%d/%d failed, %s", ours.Failed, ours.Total, out.head), style: term.Red}
	}
	return out
}

// printed is a value of theirs as it stands there, if that is in milliseconds.
func (b *beside) printed(f published.Figure) string {
	ms, ok := b.theirs.Milliseconds(f)
	switch {
	case !ok:
		return none
	case b.theirs.Unit == "ms":
		return string(f)
	}
	return strconv.FormatFloat(ms, 'f', -1, 64)
}

// notes are what keeps the columns of a table apart.
func (b *beside) notes(t *besideTable) []string {
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
			if c != nil && c.Summary.N < roundsAt(t.columns[i].tables, row.lanes) {
				out = append(out, fmt.Sprintf("%s %s: of %s, those without a failure", heading(c.Target), row.label(), roundsOf(c.Summary.N)))
			}
		}
	}
	return out
}

func roundsAt(tables []*judge.Table, lanes int) int {
	for _, t := range tables {
		if t.Lanes == lanes {
			return t.Rounds
		}
	}
	return 0
}

// theirMethod is what the publication says of how it measured, and what it
// does not say.
func (b *beside) theirMethod() section {
	s := section{title: "how they measured", style: term.Bold}
	var items []item
	for _, text := range slices.Concat(b.theirs.Method, b.theirs.Notes) {
		items = append(items, item{key: "theirs", text: text})
	}
	if items == nil {
		s.title += ": not said"
		return s
	}
	s.lists = []list{{items: items}}
	return s
}
