package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// picture is a start to be drawn: bars below each other on one axis of time, which
// begins with the start. In text it is a waterfall, in Markdown a Gantt chart.
type picture struct {
	length   int64 // ns, of the axis
	bars     []bar
	first    int64 // of the workload, ns from the beginning; -1: not known
	folded   int   // bars that are left out
	together int64 // ns, the sum of those
}

// bar is one row. Its times are ns from the beginning, within the axis.
type bar struct {
	name     string
	kind     string
	depth    int
	from, to int64
	cpu      int64 // ns; -1: not known
	exit     int   // 0 where there is none, too
	open     bool  // it was still there at the end
	marked   bool  // the workload's first instruction lies in it
}

// Kinds of bar besides the record's.
const (
	barWait  = "wait"
	barFirst = "first"
)

const (
	mostBars  = 40    // of processes and spans; more are folded
	smallest  = 0.005 // of the axis: what is shorter is folded first
	mostWaits = 8     // with a name
	mostLong  = 3     // of the longest, with or without one
)

// drawnStart is the start that stands for the others.
func drawnStart(v *judge.Startup, t *judge.StartupTarget, o Options) *section {
	if t.Drawn == nil || t.Drawn.Start == nil {
		return nil
	}
	s := ofTarget(t, whichStart(v, t))
	s.picture = pictureOf(t.Drawn, o)
	if s.picture == nil {
		s.notes = []string{"nothing of it can be drawn"}
		return s
	}
	s.notes = append(s.notes, s.picture.legend()...)
	for _, missing := range missingOf(t.Drawn.Start) {
		s.notes = append(s.notes, "missing: "+missing)
	}
	return s
}

// whichStart says which of the starts it is.
func whichStart(v *judge.Startup, t *judge.StartupTarget) string {
	d := t.Drawn.Start
	what := "start"
	if v.Live {
		what = "round"
	}
	text := fmt.Sprintf("%s %d of %d", what, d.Round+1, max(t.Starts+t.NoEnd+t.Failed, d.Round+1))
	if d.Ended == 0 {
		return text + ", which has no end" + whose(d)
	}
	if t.Starts > 1 {
		text += ", the one closest to the median"
	}
	return text + ", " + duration(float64(since(d.Began, d.Ended))) + whose(d)
}

// whose names a start of logs or notes.
func whose(d *record.Start) string {
	out := ""
	if name := cmp.Or(d.Name, d.Sandbox); name != "" && name != d.Target && (d.Method == record.MethodLogs || d.Method == record.MethodNotes) {
		out += ": " + cut(name, longestName)
	}
	if d.Source != "" {
		out += " (" + cut(d.Source, longestName) + ")"
	}
	return out
}

// pictureOf lays a start out, nil where there is no time in it.
func pictureOf(d *judge.StartupDrawn, o Options) *picture {
	s := d.Start
	p := &picture{length: since(s.Began, endOf(d)), first: -1}
	if p.length <= 0 {
		return nil
	}
	if s.First > s.Began {
		p.first = p.within(s, s.First)
	}
	workload := p.workload(d)
	for _, i := range p.shown(d.Rows, s, workload, o) {
		b := p.bar(s, &d.Rows[i])
		b.marked = i == workload
		p.bars = append(p.bars, b)
	}
	if p.first >= 0 && workload < 0 {
		p.place(bar{name: "first instruction", kind: barFirst, from: p.first, to: p.first, cpu: -1, marked: true})
	}
	for _, g := range p.waits(d) {
		p.place(g)
	}
	return p
}

// endOf is the end of the axis: that of the start, or of the last that is known of
// it. A workload may come up after the call that started it has returned.
func endOf(d *judge.StartupDrawn) int64 {
	end := max(d.Start.Ended, d.Start.First)
	if d.Start.Ended != 0 {
		return end
	}
	for i := range d.Rows {
		end = max(end, d.Rows[i].Began, d.Rows[i].Ended)
	}
	for i := range d.Gaps {
		end = max(end, d.Gaps[i].Ended)
	}
	return end
}

// workload is the row in which the workload's first instruction lies, -1 if there is
// none. Of several it is the one that began last.
func (p *picture) workload(d *judge.StartupDrawn) int {
	found := -1
	for i := range d.Rows {
		r := &d.Rows[i]
		if p.first >= 0 && r.Kind == record.KindWorkload && r.Began <= d.Start.First && d.Start.First <= r.Ended && (found < 0 || r.Began > d.Rows[found].Began) {
			found = i
		}
	}
	return found
}

// within is a moment on the axis.
func (p *picture) within(s *record.Start, at int64) int64 {
	return min(max(since(s.Began, at), 0), p.length)
}

func (p *picture) bar(s *record.Start, r *trace.Row) bar {
	b := bar{name: r.Name, kind: r.Kind, depth: min(max(r.Depth, 0), deepest), from: p.within(s, r.Began), to: p.within(s, r.Ended), cpu: r.CPU, open: r.Open}
	if r.Exit != nil {
		b.exit = *r.Exit
	}
	if b.open || b.to < b.from {
		b.to = p.length
	}
	return b
}

// deepest is where rows are no longer set in from their parents.
const deepest = 8

// shown are the rows that are drawn, in their order. Where they are too many, the
// short ones are left out, but for calls of the runtime and for what failed, and
// then the shortest until few enough are left.
func (p *picture) shown(rows []trace.Row, s *record.Start, workload int, o Options) []int {
	all := make([]int, len(rows))
	for i := range rows {
		all[i] = i
	}
	if len(rows) <= mostBars || o.Verbose {
		return all
	}
	took := func(i int) int64 {
		b := p.bar(s, &rows[i])
		return b.to - b.from
	}
	weight := func(i int) int {
		switch r := &rows[i]; {
		case r.Exit != nil && *r.Exit != 0, i == workload:
			return 2
		case r.Kind == record.KindCall:
			return 1
		}
		return 0
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(i int) bool {
		return weight(i) == 0 && float64(took(i)) < smallest*float64(p.length)
	})
	if len(kept) > mostBars {
		slices.SortStableFunc(kept, func(a, b int) int {
			return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(took(b), took(a)))
		})
		kept = kept[:mostBars]
		slices.Sort(kept)
	}
	for _, i := range all {
		if _, ok := slices.BinarySearch(kept, i); !ok {
			p.folded++
			p.together += min(took(i), 1<<62-p.together)
		}
	}
	return kept
}

// waits are the gaps that look like a timer, and the longest of all, in order of
// time. d.Gaps has the longest first.
func (p *picture) waits(d *judge.StartupDrawn) (out []bar) {
	named := 0
	for i := range d.Gaps {
		g := &d.Gaps[i]
		b := bar{name: waitName(g), kind: barWait, from: p.within(d.Start, g.Began), to: p.within(d.Start, g.Ended), cpu: g.CPU}
		long := i < mostLong && float64(b.to-b.from) >= 4*smallest*float64(p.length)
		if b.to <= b.from || !long && (g.Wait == nil || named == mostWaits) {
			continue
		}
		if g.Wait != nil {
			named++
		}
		out = append(out, b)
	}
	slices.SortStableFunc(out, func(a, b bar) int { return cmp.Compare(a.from, b.from) })
	return out
}

func waitName(g *record.Gap) string {
	switch {
	case g.Wait != nil:
		return "· waited: " + g.Wait.Timer
	case g.In != "":
		return "· gap in " + g.In
	}
	return "· gap"
}

// place puts a bar before the one that begins next after its end, as deep as that
// one, and after all where there is none.
func (p *picture) place(b bar) {
	at, next := len(p.bars), int64(-1)
	for i := range p.bars {
		other := &p.bars[i]
		if other.kind != barWait && other.from >= b.to && other.from > b.from && (next < 0 || other.from < next) {
			at, next, b.depth = i, other.from, other.depth
		}
	}
	p.bars = slices.Insert(p.bars, at, b)
}

// legend says what is folded, and explains the marks that there are.
func (p *picture) legend() (notes []string) {
	if p.folded > 0 {
		notes = append(notes, fmt.Sprintf("… %d more, together %s", p.folded, duration(float64(p.together))))
	}
	open, waited, first := "", "", ""
	if p.first >= 0 {
		first = "◆ first instruction, after " + duration(float64(p.first))
	}
	for i := range p.bars {
		if p.bars[i].open {
			open = "→ still there at the end"
		}
		if p.bars[i].kind == barWait {
			waited = "┄ nothing was told meanwhile"
		}
	}
	if marks := dotted(first, open, waited); marks != "" {
		notes = append(notes, marks)
	}
	return notes
}

// kindStyle are the colours of bars. They say nothing that names do not.
func kindStyle(b *bar) term.Style {
	switch {
	case b.exit != 0:
		return term.Red
	case b.kind == barWait:
		return term.Yellow
	case b.kind == record.KindCall:
		return blue
	case b.kind == record.KindCNI:
		return magenta
	case slices.Contains(ofEngine, b.kind):
		return cyan
	}
	return term.Plain
}

const (
	blue    term.Style = "34"
	magenta term.Style = "35"
	cyan    term.Style = "36"
)

var ofEngine = []string{record.KindClient, record.KindDaemon, record.KindShim, record.KindMonitor, record.KindEngine}
