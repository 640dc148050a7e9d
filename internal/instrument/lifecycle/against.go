package lifecycle

import (
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

// Against is what was weighed beside published figures: for every table of theirs
// the rows with their values and with ours, in milliseconds and by the statistic
// that the iSulad report uses. Theirs are of other machines, kernels and versions,
// so no difference between the two is computed, and none judged. The figures are
// theirs, with the label side=theirs; ours are those of the judgements.
func Against(all []*Judgement, p *published.Report, o page.Options) (*page.Page, []figure.Figure) {
	b := besideOf(all, p)
	return b.page(o), b.figures()
}

// figures are all of theirs that are times, in nanoseconds.
func (b *besides) figures() (out []figure.Figure) {
	for _, t := range b.theirs.Tables {
		for _, row := range t.Rows {
			for i, id := range t.Columns {
				ms, ok := b.theirs.Milliseconds(row.Values[i])
				if !ok {
					continue
				}
				f := about("trimmed-mean", figure.Nanoseconds, figure.Of(
					"side", "theirs", "table", t.ID, "target", id, "op", row.Op, "lanes", strconv.Itoa(t.Lanes)))
				f.Estimate = figure.Exactly(1e6 * ms)
				if row.Note != "" {
					f.Reasons = []string{row.Note}
				}
				out = append(out, f)
			}
		}
	}
	return out
}

// besides is a publication with our figures beside its own.
type besides struct {
	theirs *published.Report
	ours   []*Judgement
	tables []besideTable // in the order of the publication
}

// besideTable is one table of theirs.
type besideTable struct {
	*published.Table
	columns []besideColumn
	rows    []besideRow
}

// besideColumn is one of theirs, or a target of ours.
type besideColumn struct {
	theirs int            // its place among the table's columns; -1 where it is ours
	akin   string         // the ID of the column of theirs, "" where there is none like it
	run    *Judgement     // ours
	target *record.Target // ours
	exact  bool           // ours were weighed with as many lanes
	tables []*Table       // ours, of those lanes or else of all lanes above one
}

// besideRow is one operation at one number of lanes; theirs is nil where the
// lanes are not theirs.
type besideRow struct {
	lanes  int
	op     setting.Op
	theirs *published.Row
	ours   []*Cell // one for each column; nil where there is none
}

func besideOf(all []*Judgement, p *published.Report) *besides {
	b := &besides{theirs: p, ours: all}
	for i := range p.Tables {
		t := besideTable{Table: &p.Tables[i]}
		t.columns = b.columns(t.Table)
		t.rows = t.rowsOf()
		b.tables = append(b.tables, t)
	}
	return b
}

// columns are theirs, each followed by ours that are akin, and then the others
// of ours that did any of the table's operations.
func (b *besides) columns(t *published.Table) []besideColumn {
	ours := b.candidates(t)
	var out []besideColumn
	for i, id := range t.Columns {
		out = append(out, besideColumn{theirs: i, akin: id})
		for _, c := range ours {
			if c.akin == id {
				out = append(out, c)
			}
		}
	}
	for _, c := range ours {
		if c.akin == "" {
			out = append(out, c)
		}
	}
	return out
}

// candidates are our targets that belong into the table: those with pods into
// one of pods, and the others into the others.
func (b *besides) candidates(t *published.Table) (out []besideColumn) {
	for i := range b.ours {
		l := b.ours[i]
		for j := range l.Targets {
			info := &l.Targets[j]
			if pods := Absent(info, setting.RunPod) == ""; pods != t.Pods {
				continue
			}
			c := besideColumn{theirs: -1, run: l, target: info}
			c.tables, c.exact = tablesFor(l, t.Lanes)
			if !slices.ContainsFunc(t.Rows, func(r published.Row) bool { return c.did(setting.Op(r.Op)) }) {
				continue
			}
			for _, id := range t.Columns {
				if column := b.theirs.Column(id); column.Akin(info.Name) {
					c.akin = id
					break
				}
			}
			out = append(out, c)
		}
	}
	return out
}

// tablesFor are those of that many lanes, or else, for more lanes than one,
// those of any other number above one.
func tablesFor(l *Judgement, lanes int) (tables []*Table, exact bool) {
	for i := range l.Tables {
		if l.Tables[i].Lanes == lanes {
			return []*Table{&l.Tables[i]}, true
		}
		if lanes > 1 && l.Tables[i].Lanes > 1 {
			tables = append(tables, &l.Tables[i])
		}
	}
	return tables, false
}

// did tells whether there is anything of that operation.
func (c *besideColumn) did(op setting.Op) bool {
	return slices.ContainsFunc(c.tables, func(t *Table) bool {
		cell := c.cell(t.Lanes, op)
		return cell != nil && cell.Time.Total > 0
	})
}

func (c *besideColumn) cell(lanes int, op setting.Op) *Cell {
	for _, t := range c.tables {
		for i := range t.Rows {
			for j := range t.Rows[i].Cells {
				cell := &t.Rows[i].Cells[j]
				if t.Lanes == lanes && t.Rows[i].Op == op && cell.Target == c.target.Name && cell.Absent == "" {
					return cell
				}
			}
		}
	}
	return nil
}

// rowsOf are theirs, and below them those of ours with other lanes.
func (t *besideTable) rowsOf() (rows []besideRow) {
	lanes := []int{t.Lanes}
	for _, c := range t.columns {
		for _, ours := range c.tables {
			if !slices.Contains(lanes, ours.Lanes) {
				lanes = append(lanes, ours.Lanes)
			}
		}
	}
	slices.Sort(lanes[1:])
	for i, n := range lanes {
		for j := range t.Rows {
			row := besideRow{lanes: n, op: setting.Op(t.Rows[j].Op)}
			if i == 0 {
				row.theirs = &t.Rows[j]
			}
			for k := range t.columns {
				var cell *Cell
				if t.columns[k].theirs < 0 {
					cell = t.columns[k].cell(n, row.op)
				}
				row.ours = append(row.ours, cell)
			}
			if row.theirs != nil || slices.ContainsFunc(row.ours, func(c *Cell) bool { return c != nil }) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// hasOurs tells whether there is anything of ours in it.
func (t *besideTable) hasOurs() bool {
	return slices.ContainsFunc(t.columns, func(c besideColumn) bool { return c.theirs < 0 })
}
