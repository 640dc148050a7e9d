package page

import (
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Beside selects what is drawn next to a column's numbers on a terminal that is wide enough.
type Beside struct {
	of   func(*figure.Figure) (e figure.Estimate, bound string)
	show func(float64, figure.Unit) string
	far  func(float64) float64 // distance from 0 at which a value is drawn
}

// Estimates draws estimates. Changes draws differences from the baseline on a logarithmic
// axis: twice as much is as far from 0 as half as much.
var (
	Estimates = &Beside{
		of:   func(f *figure.Figure) (figure.Estimate, string) { return f.Estimate, f.Bound() },
		show: Text,
		far:  func(v float64) float64 { return v },
	}
	Changes = &Beside{
		of: func(f *figure.Figure) (figure.Estimate, string) {
			if f.Versus == nil {
				return figure.Estimate{}, ""
			}
			return f.Versus.Shift, f.Versus.Bound
		},
		show: func(share float64, _ figure.Unit) string { return signed(share) + " %" },
		far:  func(share float64) float64 { return math.Log(max(1+share, 0.01)) },
	}
)

// Draw adds bars to the last column.
func (t *Table) Draw(b *Beside) { t.Columns[len(t.Columns)-1].Beside = b }

// Limits of the width of a bar column. Without room for leastBar cells no bars are drawn.
const (
	leastBar = 16
	mostBar  = 40
)

// barred returns the table with a column of bars after each column that has a `Beside`. The bars
// fill the width that is left.
func (t *Table) barred(columns int) *Table {
	n := 0
	for _, c := range t.Columns {
		if c.Beside != nil {
			n++
		}
	}
	if n == 0 || columns <= 0 {
		return t
	}
	cells := min((columns-t.width(false))/n-gap, mostBar)
	if cells < leastBar {
		return t
	}
	out := &Table{Rows: make([][]Cell, len(t.Rows)), Sparse: t.Sparse, Indent: t.Indent}
	for i, c := range t.Columns {
		out.Columns = append(out.Columns, c)
		for r := range t.Rows {
			out.Rows[r] = append(out.Rows[r], t.Rows[r][i])
		}
		if c.Beside == nil {
			continue
		}
		title, bars := c.Beside.column(t.Rows, i, cells)
		out.Columns = append(out.Columns, Column{Title: title, Group: c.Group})
		for r := range t.Rows {
			out.Rows[r] = append(out.Rows[r], bars[r])
		}
	}
	return out
}

// column draws the figures of a column on one axis. The axis always contains 0, so that
// lengths are comparable. The title shows both ends of the axis.
func (b *Beside) column(rows [][]Cell, at, cells int) (title string, bars []Cell) {
	bars = make([]Cell, len(rows))
	estimates, bounds, unit, lo, hi := make([]figure.Estimate, len(rows)), make([]string, len(rows)), figure.Unit(""), 0.0, 0.0
	for r, row := range rows {
		if at >= len(row) || row[at].Figure == nil {
			continue
		}
		e, bound := b.of(row[at].Figure)
		if !e.Known() || !stat.Finite(e.Value) || e.Bounded && !(stat.Finite(e.Lo) && stat.Finite(e.Hi)) {
			continue
		}
		if !e.Bounded {
			e.Lo, e.Hi = e.Value, e.Value
		}
		estimates[r], bounds[r], unit = e, bound, row[at].Figure.Unit
		lo, hi = min(lo, e.Lo), max(hi, e.Hi)
	}
	if !(b.far(hi) > b.far(lo)) || !stat.Finite(hi-lo) { // the logarithm of a tiny change can be 0
		return "", bars
	}
	for r, e := range estimates {
		if e.Known() {
			e.Value, e.Lo, e.Hi = b.far(e.Value), b.far(e.Lo), b.far(e.Hi)
			bars[r] = Cell{Head: bar(e, bounds[r], b.far(lo), b.far(hi), cells), Style: rows[r][at].Style}
		}
	}
	left, right := b.show(lo, unit), b.show(hi, unit)
	if lo == 0 {
		left = "0"
	} else if hi == 0 {
		right = "0"
	}
	between := cells - term.Width(left) - term.Width(right)
	if between < 1 {
		return "", bars
	}
	return left + strings.Repeat(" ", between) + right, bars
}

// marks are the symbols of values. The symbol of a bound points towards the actual value.
var marks = map[string]rune{"": '●', figure.AtMost: '◀', figure.AtLeast: '▶'}

// bar draws an estimate or its bound, its interval, and the position of 0.
func bar(e figure.Estimate, bound string, lo, hi float64, cells int) string {
	line := slices.Repeat([]rune{' '}, cells)
	place := func(v float64) int { return int(math.Round((v - lo) / (hi - lo) * float64(cells-1))) }
	line[place(0)] = '│'
	for i := place(e.Lo); i <= place(e.Hi); i++ {
		line[i] = '─'
		if i == place(0) {
			line[i] = '┼'
		}
	}
	line[place(e.Value)] = marks[bound]
	return strings.TrimRight(string(line), " ")
}
