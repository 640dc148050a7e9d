// Package compare compares records: for each figure that two sides have, it estimates the
// difference and decides which verdict the records allow.
//
// It works on figures and the headers of their records, independently of the instrument. The
// projections of rows, columns and tables use the syntax of benchstat; see docs/compare.md.
// The caller judges one record after the other and keeps only a [Run] of each, so that a
// side can have many records.
package compare

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchproc"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Run is the part of a judged record that a comparison needs: its header and its figures.
type Run struct {
	Header  record.Header
	Targets []record.Target
	Labels  figure.Labels // added after the run
	Figures []figure.Figure
	Found   []record.Finding // warnings and errors
	Missing string           // see [finding.Missing]
}

// Judged is the judgement of a record.
type Judged interface {
	Figures() []figure.Figure
	Result() (failed, total int, findings []record.Finding)
}

// NewRun returns the part of a judged record that is compared.
func NewRun(rec *record.Record, j Judged) Run {
	figures := slices.Clone(j.Figures()) // clipped, since there may be thousands of runs
	for i := range figures {
		figures[i].Series, figures[i].Versus = nil, nil
	}
	run := Run{Header: rec.Header, Targets: rec.Targets, Figures: figures, Missing: finding.Missing(rec)}
	_, _, found := j.Result()
	for i := range found {
		if f := found[i]; f.Level != finding.Note {
			run.Found = append(run.Found, f)
		}
	}
	for _, l := range rec.Labelled() {
		run.Labels = append(run.Labels, figure.Label{Key: l.Key, Value: l.Value})
	}
	return run
}

// Share makes equal labels of many runs share memory.
func (r *Run) Share(labels map[string]figure.Labels) {
	for i := range r.Figures {
		own := &r.Figures[i].Labels
		key := own.String()
		if _, met := labels[key]; !met {
			labels[key] = *own
		}
		*own = labels[key]
	}
}

// Side is a named group of runs.
type Side struct {
	Name string
	Runs []Run
}

// SideName returns the side name of a file or folder: the base name, or a letter if the name is
// too long.
func SideName(path string, sides int) string {
	name := record.Stem(filepath.Base(filepath.Clean(path)))
	if len(name) > page.LongestName && sides < 26 {
		return string(rune('A' + sides))
	}
	return name
}

// Options select what is compared. Without projections there is a table for each quantity, a
// row for each combination of labels and a column for each side.
type Options struct {
	Table, Row, Col, Filter string
	Unlike                  bool   // also compare records of different circumstances
	Versions                bool   // allow different target versions, because the versions are compared
	Control                 string // target by which single runs are divided; "": floor or host
	Earlier                 []Run  // earlier runs on this machine, to estimate the spread between runs
	figure.Comparing
}

// Comparison is the result of comparing sides.
type Comparison struct {
	Sides       []Side
	Differences []Difference // between compared records
	Tables      []*Table
	Only        []Single // figures without a counterpart

	how      figure.Comparing
	control  string
	earlier  []sided
	runs     []sided
	pairs    []pair
	unlike   map[[2]int][]Difference
	memories []int64 // distinct memory sizes, see [SameMemory]
	returned bool    // some rows use the time until the call returned, see alike
}

// Table has the figures of one quantity.
type Table struct {
	Title   string
	Fields  []string // keys that differ between rows
	Columns []string
	Rows    []Row
	Means   []Mean // geometric, one per column
	Unit    figure.Unit
	Better  figure.Direction
}

// Single is a figure without a counterpart. Its Reasons say why.
type Single struct {
	figure.Figure
	Base bool // the figure is in the first column
}

// Row has one figure per column, nil if absent.
type Row struct {
	Names []string
	Of    []*figure.Figure
}

// Mean has the geometric means of a column, of the first column in the same rows, and of the
// ratios 1 + shift of these rows.
type Mean struct {
	Base, Value, Ratio float64
	Rows               int // number of rows in the mean
}

// sided is a run with the name of its side.
type sided struct {
	*Run
	side string
	like int // the first run of the side with the same circumstances
}

// pair is a figure and its counterpart in the first column.
type pair struct {
	base, cell *cell
	table      *Table
	figure     *figure.Figure
}

// New compares sides.
func New(sides []Side, o Options) (*Comparison, error) {
	c := &Comparison{Sides: sides, how: o.Comparing, control: o.Control, unlike: map[[2]int][]Difference{}}
	c.how.Margin = cmp.Or(c.how.Margin, stat.DefaultMargin)
	for i := range o.Earlier {
		c.earlier = append(c.earlier, sided{Run: &o.Earlier[i], side: "earlier"})
	}
	if err := c.take(); err != nil {
		return nil, err
	}
	g, err := c.project(o)
	if err != nil {
		return nil, err
	}
	for _, key := range g.tables {
		c.build(g, key)
	}
	if len(c.pairs) == 0 {
		return nil, errors.New("nothing to compare: no figure has a value in two columns; the keys for --row, --col and --filter are " + strings.Join(g.known, ", "))
	}
	if err := c.check(o); err != nil {
		return nil, err
	}
	c.judge()
	return c, nil
}

// take lists the runs. It rejects duplicates, which would count twice.
func (c *Comparison) take() error {
	seen, like := map[string]string{}, map[string]int{}
	for i := range c.Sides {
		s := &c.Sides[i]
		for k := range s.Runs {
			run := &s.Runs[k]
			if other, twice := seen[run.Header.RunID]; twice {
				return fmt.Errorf("%s and %s have the same run, %s: give it once", other, s.Name, run.Header.RunID)
			}
			seen[run.Header.RunID] = s.Name
			key := s.Name + "\x00" + c.circumstances(run)
			if _, met := like[key]; !met {
				like[key] = len(c.runs)
			}
			c.runs = append(c.runs, sided{run, s.Name, like[key]})
		}
	}
	return nil
}

// build adds a table. It has the rows with a figure in the first column and in at least one
// other.
func (c *Comparison) build(g *grid, key benchproc.Key) {
	t, rows, columns := &Table{}, g.rows[key], g.columns(key)
	for _, col := range columns {
		t.Columns = append(t.Columns, col.StringValues())
	}
	fields := benchproc.NonSingularFields(rows)
	for _, f := range fields {
		t.Fields = append(t.Fields, f.Name)
	}
	for _, row := range rows {
		cells := make([]*cell, len(columns))
		having := 0
		for i, col := range columns {
			cells[i] = g.cells[place{key, row, col}]
		}
		c.alike(cells)
		for i, col := range columns {
			if cells[i] != nil {
				cells[i].finish(col)
				having++
			}
		}
		if cells[0] == nil || having < 2 {
			c.alone(cells, t.Columns)
			continue
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = row.Get(f)
		}
		c.row(t, names, cells)
	}
	if len(t.Rows) == 0 {
		return
	}
	t.Title = strings.Join(append([]string{key.StringValues()}, constant(rows[0], fields)...), " ")
	c.Tables = append(c.Tables, t)
}

// alike makes a row comparable if only some of its times end with the first instruction. It
// replaces all times of the row with the times until the calls returned, if these are known.
func (c *Comparison) alike(cells []*cell) {
	first, other := false, false
	for _, one := range cells {
		for i := 0; one != nil && i < len(one.of); i++ {
			first, other = first || one.of[i].Until == untilFirst, other || one.of[i].Until != "" && one.of[i].Until != untilFirst
		}
	}
	calls := make([][]*figure.Figure, len(cells))
	for i, one := range cells {
		for k := 0; first && other && one != nil && k < len(one.of); k++ {
			call := c.runs[one.runs[k]].find("time-to", one.of[k], "stamp", "returned")
			if call == nil {
				return
			}
			calls[i] = append(calls[i], call)
		}
	}
	for i := range calls {
		if calls[i] != nil {
			cells[i].of, c.returned = calls[i], true
		}
	}
}

// untilFirst is the [figure.Figure.Until] of a time that ends with the first instruction.
const untilFirst = "first"

// row adds a row. Its figures are compared later, together with the rest of the table.
func (c *Comparison) row(t *Table, names []string, cells []*cell) {
	row := Row{Names: names, Of: make([]*figure.Figure, len(cells))}
	for i, one := range cells {
		if one == nil {
			f := cells[0].Figure
			f.Reasons = []string{"not in " + t.Columns[i]}
			c.Only = append(c.Only, Single{f, true})
			continue
		}
		row.Of[i] = &one.Figure
		t.Unit, t.Better = one.Unit, one.Better
		if i > 0 {
			c.pairs = append(c.pairs, pair{cells[0], one, t, row.Of[i]})
		}
	}
	t.Rows = append(t.Rows, row)
}

// alone adds figures without a counterpart to Only.
func (c *Comparison) alone(cells []*cell, columns []string) {
	for i, one := range cells {
		if one != nil {
			f := one.Figure
			f.Reasons = []string{"only in " + columns[i]}
			c.Only = append(c.Only, Single{f, i == 0})
		}
	}
}

// constant returns the values that all rows share. They go into the title.
func constant(row benchproc.Key, varying []*benchproc.Field) (out []string) {
	for _, f := range row.Projection().FlattenedFields() {
		if v := row.Get(f); v != "" && !slices.Contains(varying, f) {
			out = append(out, f.Name+"="+v)
		}
	}
	return out
}

// judge compares the pairs of each table together. It withdraws a verdict if other differences
// between the records do not allow one.
func (c *Comparison) judge() {
	for _, t := range c.Tables {
		var at []int
		var sides []stat.Sides
		var bases []basis
		for i, p := range c.pairs {
			if p.table == t {
				b := c.basis(p)
				at, sides, bases = append(at, i), append(sides, b.Sides), append(bases, b)
			}
		}
		for i, v := range c.how.Versus(t.Columns[0], sides) {
			p := c.pairs[at[i]]
			if why := p.both().Unproven(true); v == nil && why != "" {
				p.figure.Reasons = append(slices.Clip(p.figure.Reasons), why)
			}
			if p.figure.Versus = p.both().Known(v); v != nil {
				about, forbidden := c.about(p)
				bases[i].mark(v)
				if lacks := bases[i].lacks; forbidden == "" && lacks != "" {
					about = []string{lacks}
				}
				if forbidden != "" {
					v.Verdict, v.Why = stat.Undecided, forbidden
				}
				p.figure.Reasons = append(slices.Clip(p.figure.Reasons), about...)
			}
		}
		t.means()
	}
}

// perRun is the distance between the round numbers of successive runs.
const perRun = 1 << 32

func (p pair) both() figure.Pair { return figure.Pair{Base: &p.base.Figure, Figure: p.figure} }

// sides returns the values of both sides. Two upper bounds are not compared.
func (p pair) sides() stat.Sides {
	if p.base.AtMost && p.cell.AtMost {
		return stat.Sides{}
	}
	joined := len(p.base.runs) > 1 || len(p.cell.runs) > 1
	return stat.Sides{Old: p.base.values(joined), New: p.cell.values(joined), PerRun: perRun}
}

// Figures returns all compared figures, the means, and the figures of one side only.
func (c *Comparison) Figures() []figure.Figure {
	var out []figure.Figure
	for _, t := range c.Tables {
		for _, row := range t.Rows {
			for _, f := range row.Of {
				if f != nil {
					out = append(out, *f)
				}
			}
		}
		for i, m := range t.Means {
			if m.Rows > 0 {
				out = append(out, figure.Figure{Experiment: "compare", Quantity: "geomean-ratio", Unit: figure.Ratio, Better: t.Better,
					Labels: figure.Of("of", t.Title, "base", t.Columns[0], "side", t.Columns[i]), Estimate: figure.Estimate{N: m.Rows, Value: m.Ratio}})
			}
		}
	}
	for _, one := range c.Only {
		out = append(out, one.Figure)
	}
	return out
}

// Findings lists the differences between the records.
func (c *Comparison) Findings() (out []record.Finding) {
	for _, d := range c.Differences {
		out = append(out, record.Finding{Code: "unlike-records", Level: "warning",
			Message: d.String(), Advice: "measure both with the same " + d.Field + " for a verdict on the targets alone"})
	}
	return out
}
