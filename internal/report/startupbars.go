package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

const (
	usualWidth   = 120 // where no width is given: a picture without one is none
	narrowestBar = 10
	narrowName   = 16
	// tickWidth is how far the marks of the scale are apart at least.
	tickWidth = 11
)

// textPicture draws a picture as a waterfall: every row has its name, its bar, when
// it began and how long it took, the CPU time where that is known, and what else
// there is to say of it.
func textPicture(w io.Writer, p *picture, o Options) error {
	width := o.Width
	if width <= 0 {
		width = usualWidth
	}
	left, rest, figures := p.names(), p.remarks(), p.figures()
	names := 0
	for _, name := range left {
		names = max(names, term.Width(name))
	}
	names = min(names, max(36*width/100, narrowName))
	cells := width - indent - names
	for _, column := range append(figures, rest) {
		if widest := widestOf(column); widest > 0 {
			cells -= gap + widest
		}
	}
	cells = max(cells-gap, narrowestBar)

	t := term.Table{Indent: indent, Colour: o.Colour, Columns: []term.Column{{}, {}}}
	for range figures {
		t.Columns = append(t.Columns, term.Column{Right: true})
	}
	for i := range len(left) {
		row := []term.Cell{{Text: cut(left[i], names)}, {Text: p.scale(cells), Style: term.Dim}}
		if i > 0 {
			b := &p.bars[i-1]
			row[1] = term.Cell{Text: p.draw(b, cells), Style: kindStyle(b)}
			if b.kind == barWait {
				row[0].Style = term.Dim
			}
		}
		for _, column := range figures {
			row = append(row, term.Cell{Text: column[i]})
		}
		remark := term.Cell{Text: rest[i]}
		if i > 0 && p.bars[i-1].exit != 0 {
			remark.Style = term.Red
		}
		t.AddCells(append(row, remark)...)
	}
	return t.Write(w)
}

// names are the first column, below an empty heading.
func (p *picture) names() []string {
	out := []string{""}
	for i := range p.bars {
		b := &p.bars[i]
		name := term.Clean(known(b.name))
		if b.kind == barFirst {
			name = "◆ " + name
		}
		out = append(out, strings.Repeat("  ", b.depth)+name)
	}
	return out
}

// figures are the columns of numbers with their headings.
func (p *picture) figures() [][]string {
	at, took, cpu, some := []string{"at"}, []string{"took"}, []string{"CPU"}, false
	for i := range p.bars {
		b := &p.bars[i]
		at = append(at, duration(float64(b.from)))
		if b.kind == barFirst {
			took, cpu = append(took, ""), append(cpu, "")
			continue
		}
		took = append(took, duration(float64(b.to-b.from)))
		if b.cpu < 0 {
			cpu = append(cpu, none)
			continue
		}
		cpu, some = append(cpu, duration(float64(b.cpu))), true
	}
	if !some {
		return [][]string{at, took}
	}
	return [][]string{at, took, cpu}
}

func (p *picture) remarks() []string {
	out := []string{""}
	for i := range p.bars {
		b := &p.bars[i]
		var parts []string
		if b.open {
			parts = append(parts, "→")
		}
		if b.exit != 0 {
			parts = append(parts, fmt.Sprintf("exit %d", b.exit))
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

func widestOf(column []string) (n int) {
	for _, text := range column {
		n = max(n, term.Width(text))
	}
	return n
}

// lefts are the blocks that are filled from the left by so many eighths.
var lefts = [9]rune{' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'}

// draw is a row's bar in that many cells: dotted for a wait, else of blocks, the
// last of which is filled in eighths and the first in halves, as there are no
// finer ones that are filled from the right. Nothing is too short to be seen.
func (p *picture) draw(b *bar, cells int) string {
	line := []rune(strings.Repeat(" ", cells))
	scaled := func(at int64) float64 { return float64(at) / float64(p.length) * float64(cells) }
	from, to := scaled(b.from), scaled(b.to)
	first := min(int(from), cells-1)
	switch end := int(math.Round(8 * to)); {
	case b.kind == barFirst:
	case b.kind == barWait:
		for i := first; i < max(min(int(math.Round(to)), cells), first+1); i++ {
			line[i] = '┄'
		}
	case end <= 8*(first+1):
		line[first] = lefts[min(max(int(math.Round(8*(to-from))), 1), 8)]
	default:
		line[first] = '█'
		if part := from - float64(first); part >= 0.75 {
			line[first] = '▕'
		} else if part >= 0.25 {
			line[first] = '▐'
		}
		for i := first + 1; i < min(end/8, cells); i++ {
			line[i] = '█'
		}
		if end/8 < cells {
			line[end/8] = lefts[end%8]
		}
	}
	if b.marked && p.first >= 0 {
		line[min(int(scaled(p.first)), cells-1)] = '◆'
	}
	return strings.TrimRight(string(line), " ")
}

// scale is the line above the bars: round times, each behind the mark of where it
// is.
func (p *picture) scale(cells int) string {
	step := niceStep(float64(p.length) * tickWidth / float64(cells))
	unit, name := 1.0, "ns"
	for _, u := range []struct {
		ns   float64
		name string
	}{{1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}} {
		if float64(p.length) >= 1.5*u.ns {
			unit, name = u.ns, u.name
		}
	}
	line := ""
	for i := 0; ; i++ {
		at := int(math.Round(float64(i) * step / float64(p.length) * float64(cells)))
		text := "╷" + strconv.FormatFloat(float64(i)*step/unit, 'g', 6, 64) + " " + name
		if i == 0 {
			text = "╷0"
		}
		if at+term.Width(text) > cells {
			return line
		}
		line += strings.Repeat(" ", max(at-term.Width(line), 0)) + text
	}
}

// niceStep is the smallest of 1, 2, 5, 10, … that is not below v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(v, 1))))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= v {
			return n * power
		}
	}
	return 10 * power
}
