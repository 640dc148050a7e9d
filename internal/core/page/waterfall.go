package page

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Waterfall is bars below each other on one axis of time, which begins at 0. In
// Markdown it is a Gantt chart of Mermaid's, in HTML one that can be zoomed.
type Waterfall struct {
	Length int64 // ns, of the axis
	Bars   []Bar
	First  int64 // ns, of what is marked; -1: not known
}

// Bar is one row. Its times are ns from the beginning, within the axis.
type Bar struct {
	Name     string
	Kind     string // in words: bars of one kind stand together in a Gantt chart
	Depth    int
	From, To int64
	CPU      int64  // ns; -1: not known
	Exit     int    // 0 where there is none, too
	Open     bool   // it was still there at the end
	Marked   bool   // the waterfall's First lies in it
	Wait     bool   // no events logged
	Point    bool   // it is First itself, which has no length
	Text     string // shown when it is pointed at, beside name, times and CPU
	Style    term.Style
}

const (
	usualWidth   = 120 // where no width is given: a picture without one is None
	narrowestBar = 10
	narrowName   = 16
	// tickWidth is how far the marks of the scale are apart at least.
	tickWidth = 11
)

// text draws it for a terminal: every row has its name, its bar, when
// it began and how long it took, the CPU time where that is known, and what else
// there is to say of it.
func (p *Waterfall) text(w io.Writer, o Options) error {
	width := o.Width
	if width <= 0 {
		width = usualWidth
	}
	longest := max(36*width/100, narrowName)
	t := Table{Indent: indent, Columns: []Column{{}, {}, {Right: true}, {Right: true}, {Right: true}}, Rows: [][]Cell{Texts("", "", "at", "took", "CPU")}}
	for i := range p.Bars {
		t.Row(p.Bars[i].row(longest)...)
	}
	if !slices.ContainsFunc(p.Bars, func(b Bar) bool { return b.CPU >= 0 && !b.Point }) {
		t.Columns = t.Columns[:4]
		for r := range t.Rows {
			t.Rows[r] = t.Rows[r][:4]
		}
	}
	remarks := 0
	for i := range p.Bars {
		c := p.Bars[i].remark()
		t.Rows[i+1] = append(t.Rows[i+1], c)
		remarks = max(remarks, gap*min(len(c.Head), 1)+term.Width(c.Head))
	}
	cells := max(width-indent-t.width(false)-remarks, narrowestBar) // what the other columns leave
	t.Rows[0][1] = Cell{Head: p.scale(cells), Style: term.Dim}
	for i := range p.Bars {
		b := &p.Bars[i]
		t.Rows[i+1][1] = Cell{Head: p.draw(b, cells), Style: b.Style}
	}
	return t.Write(w, Options{Colour: o.Colour})
}

// row is a bar's, but for the bar itself and the remark behind it.
func (b *Bar) row(longest int) []Cell {
	name := Cell{Head: term.Clean(Known(b.Name))}
	if b.Wait {
		name.Style = term.Dim
	}
	took, cpu := Duration(float64(b.To-b.From)), None
	switch {
	case b.Point:
		name.Head, took, cpu = "◆ "+name.Head, "", ""
	case b.CPU >= 0:
		cpu = Duration(float64(b.CPU))
	}
	name.Head = Cut(strings.Repeat("  ", b.Depth)+name.Head, longest)
	return []Cell{name, {}, Words(Duration(float64(b.From))), Words(took), Words(cpu)}
}

// remark is what stands behind a row.
func (b *Bar) remark() (c Cell) {
	if b.Open {
		c.Head = "→"
	}
	if b.Exit != 0 {
		c.Head, c.Style = strings.TrimSpace(fmt.Sprintf("%s exit %d", c.Head, b.Exit)), term.Red
	}
	return c
}

// lefts are the blocks that are filled from the left by so many eighths.
var lefts = [9]rune{' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'}

// draw is a row's bar in that many cells: dotted for a wait, else of blocks, the
// last of which is filled in eighths and the first in halves, as there are no
// finer ones that are filled from the right. Nothing is too short to be seen.
func (p *Waterfall) draw(b *Bar, cells int) string {
	line := []rune(strings.Repeat(" ", cells))
	scaled := func(at int64) float64 { return float64(at) / float64(p.Length) * float64(cells) }
	from, to := scaled(b.From), scaled(b.To)
	first := min(int(from), cells-1)
	switch end := int(math.Round(8 * to)); {
	case b.Point:
	case b.Wait:
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
	if b.Marked && p.First >= 0 {
		line[min(int(scaled(p.First)), cells-1)] = '◆'
	}
	return strings.TrimRight(string(line), " ")
}

// scale is the line above the bars: round times, each behind the mark of where it
// is.
func (p *Waterfall) scale(cells int) string {
	step := niceStep(float64(p.Length) * tickWidth / float64(cells))
	unit := times[0]
	for _, u := range times[1:] {
		if float64(p.Length) >= 1.5*u.per {
			unit = u
		}
	}
	line := ""
	for i := 0; ; i++ {
		at := int(math.Round(float64(i) * step / float64(p.Length) * float64(cells)))
		text := "╷" + strconv.FormatFloat(float64(i)*step/unit.per, 'g', 6, 64) + " " + unit.name
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

// waiting is the series of bars that are waits.
const waiting = "waits"

// chart is the picture for those who draw charts. Names are as deep as their bars, and
// each stands once: a second one of the same name has its number.
func (p *Waterfall) chart(title string) *Chart {
	c := &Chart{Name: "start " + title, Title: title, Kind: Gantt, X: Axis{Title: "since the beginning", Unit: figure.Nanoseconds},
		Caption: "Every process and span as a bar from its begin to its end, those below set in; waits, in which nothing was told, have a colour of their own."}
	names := map[string]int{}
	for i := range p.Bars {
		b := &p.Bars[i]
		if b.Point {
			continue
		}
		name := strings.Repeat("· ", b.Depth) + strings.TrimPrefix(term.Clean(Known(b.Name)), "· ")
		if names[name]++; names[name] > 1 {
			name += fmt.Sprintf(" (%d)", names[name])
		}
		d := At("", name, b.Kind)
		d.X, d.X2, d.Text = float64(b.From), float64(b.To), b.about()
		if b.Wait {
			d.Series = waiting
		}
		c.Data = append(c.Data, d)
	}
	if p.First >= 0 {
		c.Rules = []Rule{{Value: float64(p.First), Text: "first instruction", Vertical: true}}
	}
	return c
}

// about is what there is to say of a bar beside its times, in lines.
func (b *Bar) about() string {
	var lines []string
	if b.CPU >= 0 {
		lines = append(lines, "CPU "+Duration(float64(b.CPU)))
	}
	if b.Exit != 0 {
		lines = append(lines, fmt.Sprintf("exit %d", b.Exit))
	}
	if b.Open {
		lines = append(lines, "still there at the end")
	}
	if b.Text != "" {
		lines = append(lines, b.Text)
	}
	return strings.Join(lines, " · ")
}

// gantt is a picture as Mermaid's Gantt chart, see mermaid.js.org/syntax/gantt.html:
// times are ms since the start, which "x" takes as ms since 1970, and the axis shows
// their seconds. Beyond a minute it shows all seconds since 1970, which are the
// same in every time zone.
func (p *Waterfall) gantt() []string {
	axis := "%S.%L s"
	if p.Length >= 60e9 {
		axis = "%s s"
	}
	lines := []string{"gantt", "    dateFormat x", "    axisFormat " + axis, "    todayMarker off"}
	var kinds []string
	tasks := map[string][]string{}
	task := func(kind, line string) {
		if tasks[kind] == nil {
			kinds = append(kinds, kind)
		}
		tasks[kind] = append(tasks[kind], line)
	}
	for i := range p.Bars {
		b := &p.Bars[i]
		from, to := millis(b.From), max(millis(b.To), millis(b.From)+1)
		tag := ""
		if b.Exit != 0 || b.Wait {
			tag = "crit, "
		}
		if !b.Point {
			task(b.Kind, fmt.Sprintf("    %s :%st%d, %d, %d", p.taskName(b), tag, i+1, from, to))
		}
		if b.Marked {
			task(b.Kind, fmt.Sprintf("    first instruction :milestone, m%d, %d, 0ms", i+1, millis(p.First)))
		}
	}
	for _, kind := range kinds {
		lines = append(append(lines, "    section "+kind), tasks[kind]...)
	}
	return lines
}

// millis is a time in ms, rounded: what is finer a Gantt chart does not take.
func millis(ns int64) int64 { return int64(math.Round(float64(ns) / 1e6)) }

// taskName is a name with its length and what is to be said of it.
func (p *Waterfall) taskName(b *Bar) string {
	text := strings.TrimPrefix(b.Name, "· ") + " " + Duration(float64(b.To-b.From))
	if b.Exit != 0 {
		text += fmt.Sprintf(" exit %d", b.Exit)
	}
	if b.Open {
		text += " →"
	}
	return tame(text)
}

// longestTask is where the name of a task is cut.
const longestTask = 60

// tame is a name as Mermaid takes it for nothing else, by the grammar of its Gantt
// charts: what ends a name (: ; #), begins a comment or a directive (%), is HTML or
// may be Markdown becomes a space, and a name that begins with a keyword gets
// something before it.
func tame(name string) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+/()=@…→µ×", r) {
			return r
		}
		return ' '
	}, term.Clean(name))
	text = Cut(strings.Join(strings.Fields(text), " "), longestTask)
	first := strings.ToLower(text)
	for _, word := range ganttWords {
		if strings.HasPrefix(first, word) {
			return "· " + text
		}
	}
	if first == "" || unicode.IsDigit(rune(first[0])) || first[0] == '-' {
		return "· " + text // 2018-08-03 is a date
	}
	return text
}

// ganttWords begin a line that is no task.
var ganttWords = []string{
	"gantt", "dateformat", "axisformat", "tickinterval", "includes", "excludes", "todaymarker", "weekday", "weekend", "title", "section",
	"inclusiveenddates", "topaxis", "accdescr", "acctitle", "click", "href", "call",
}
