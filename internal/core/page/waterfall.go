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

// Waterfall is a list of bars on one time axis, which begins at 0. Markdown renders it as a
// Mermaid Gantt chart, HTML as a chart that can be zoomed.
type Waterfall struct {
	Length int64 // ns; length of the axis
	Bars   []Bar
	First  int64 // ns; the time to mark; -1: unknown
}

// Bar is one row. Its times are in ns since the beginning, within the axis.
type Bar struct {
	Name     string
	Kind     string // in words; a Gantt chart groups bars by kind
	Depth    int
	From, To int64
	CPU      int64  // ns; -1: unknown
	Exit     int    // exit code; 0 also if there is none
	Open     bool   // still running at the end
	Marked   bool   // the bar contains the waterfall's First
	Wait     bool   // no events logged
	Point    bool   // the bar is First itself, which has no length
	Text     string // extra text of the tooltip, after name, times and CPU
	Style    term.Style
}

const (
	usualWidth   = 120 // default width, since a picture needs one
	narrowestBar = 10
	narrowName   = 16
	// tickWidth is the minimum distance between marks of the scale.
	tickWidth = 11
)

// text draws the waterfall for a terminal. Each row has a name, a bar, the start, the
// duration, the CPU time if known, and a remark.
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
	cells := max(width-indent-t.width(false)-remarks, narrowestBar) // the rest of the width
	t.Rows[0][1] = Cell{Head: p.scale(cells), Style: term.Dim}
	for i := range p.Bars {
		b := &p.Bars[i]
		t.Rows[i+1][1] = Cell{Head: p.draw(b, cells), Style: b.Style}
	}
	return t.Write(w, Options{Colour: o.Colour})
}

// row returns the cells of a bar without its drawing and its remark.
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

// remark returns the last cell of a row.
func (b *Bar) remark() (c Cell) {
	if b.Open {
		c.Head = "→"
	}
	if b.Exit != 0 {
		c.Head, c.Style = strings.TrimSpace(c.Head+" "+b.exit()), term.Red
	}
	return c
}

// exit returns the exit code in words, or "" for 0.
func (b *Bar) exit() string {
	if b.Exit == 0 {
		return ""
	}
	return fmt.Sprintf("exit %d", b.Exit)
}

// lefts are blocks that are filled from the left, in eighths.
var lefts = [9]rune{' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'}

// draw returns a row's bar in that many cells. A wait is dotted. The end of any other bar is
// drawn to an eighth of a cell, and its beginning to half a cell, since Unicode has no finer
// blocks that are filled from the right. Even the shortest bar is visible.
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

// scale returns the line above the bars: round times, each after a mark at its position.
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

// niceStep returns the smallest of 1, 2, 5, 10, … that is at least v.
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

// chart returns the waterfall as a Gantt chart. Names are indented like their bars. Repeated
// names get a number.
func (p *Waterfall) chart(title string) *Chart {
	c := &Chart{Name: "start " + title, Title: title, Kind: Gantt, X: Axis{Title: "since the beginning", Unit: figure.Nanoseconds},
		Caption: "Each process and span is a bar from start to end, children indented. Waits, in which no events were logged, have their own colour."}
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

// about returns the details of a bar besides its times.
func (b *Bar) about() string {
	cpu, open := "", ""
	if b.CPU >= 0 {
		cpu = "CPU " + Duration(float64(b.CPU))
	}
	if b.Open {
		open = "still there at the end"
	}
	return Dotted(cpu, b.exit(), open, b.Text)
}

// gantt returns the waterfall as a Mermaid Gantt chart; see
// mermaid.js.org/syntax/gantt.html. Times are ms since the start. The date format "x" reads
// them as ms since 1970, and the axis shows the seconds of the minute. Beyond a minute the axis
// shows all seconds since 1970, which do not depend on the time zone.
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

// millis rounds a time to ms, the resolution of a Gantt chart.
func millis(ns int64) int64 { return int64(math.Round(float64(ns) / 1e6)) }

// taskName returns a bar's name with its duration, exit code and state.
func (p *Waterfall) taskName(b *Bar) string {
	text := strings.TrimPrefix(b.Name, "· ") + " " + Duration(float64(b.To-b.From)) + prefixed(" ", b.exit())
	if b.Open {
		text += " →"
	}
	return tame(text)
}

// longestTask is the maximum length of a task's name.
const longestTask = 60

// tame makes a name safe for the grammar of Mermaid's Gantt charts. It replaces with spaces
// the characters that end a name (: ; #), start a comment or a directive (%), or may be HTML
// or Markdown. A name that begins with a keyword gets a prefix.
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

// ganttWords begin a line other than a task.
var ganttWords = []string{
	"gantt", "dateformat", "axisformat", "tickinterval", "includes", "excludes", "todaymarker", "weekday", "weekend", "title", "section",
	"inclusiveenddates", "topaxis", "accdescr", "acctitle", "click", "href", "call",
}
