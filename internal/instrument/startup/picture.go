package startup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// picture is the layout of a start: bars on a time axis that begins with the start,
// and a summary of the omitted bars.
type picture struct {
	page.Waterfall
	folded   int   // number of omitted bars
	together int64 // total duration of the omitted bars, ns
}

const (
	maxBars  = 40    // for processes and spans; more are folded
	smallest = 0.005 // fraction of the axis; shorter bars are folded first
	maxWaits = 8     // recognized waits
	maxLong  = 3     // longest waits, recognized or not
)

// drawnStart returns the section that shows the representative start.
func drawnStart(v *Judgement, t *Target, o page.Options) *page.Section {
	if t.Drawn == nil || t.Drawn.Start == nil {
		return nil
	}
	s := ofTarget(t, whichStart(v, t))
	p := pictureOf(t.Drawn, o)
	if p == nil {
		s.Notes = []string{"this start has no times to draw"}
		return s
	}
	s.Picture, s.Notes = &p.Waterfall, append(s.Notes, p.legend()...)
	s.Files = []page.File{{Name: "trace " + t.Target, Title: "This start as a trace, which ui.perfetto.dev opens.", JSON: func() any {
		c := chromeTrace{Unit: "ms"}
		c.add(t, t.Drawn, 1)
		return c
	}}}
	has := func(kind string) bool {
		return slices.ContainsFunc(t.Drawn.Parts, func(p trace.Part) bool { return p.Kind == kind })
	}
	if guest := has(record.KindGuest) || len(t.Drawn.Start.Guests) > 0; has(record.KindVMM) && !guest {
		note := "a VMM is running, but its guest is not visible: add the debug logs of the run with --log FILE"
		if v.Logs != nil {
			note = "a VMM is running, but its guest is not visible: the logs have no guest events; turn on the runtime's debug log (enable_debug of Kata)"
		}
		s.Notes = append(s.Notes, note)
	}
	for _, missing := range missingOf(t.Drawn.Start) {
		s.Notes = append(s.Notes, "missing: "+missing)
	}
	return s
}

// whichStart returns the description of the drawn start.
func whichStart(v *Judgement, t *Target) string {
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
	return text + ", " + page.Duration(float64(since(d.Began, d.Ended))) + whose(d)
}

// whose returns the name and the source of a start, as text. Names are only used for
// logs and notes.
func whose(d *record.Start) string {
	out := ""
	if name := cmp.Or(d.Name, d.Sandbox); name != "" && name != d.Target && (d.Method == record.MethodLogs || d.Method == record.MethodNotes) {
		out += ": " + page.Cut(name, page.LongestName)
	}
	if d.Source != "" {
		out += " (" + page.Cut(d.Source, page.LongestName) + ")"
	}
	return out
}

// pictureOf lays out a start. It returns nil if the start has no duration.
func pictureOf(d *Drawn, o page.Options) *picture {
	s := d.Start
	p := &picture{Waterfall: page.Waterfall{Length: since(s.Began, endOf(d)), First: -1}}
	if p.Length <= 0 {
		return nil
	}
	if s.First > s.Began {
		p.First = p.within(s, s.First)
	}
	workload := p.workload(d)
	for _, i := range p.shown(d.Rows, s, workload, o) {
		b := p.bar(s, &d.Rows[i])
		b.Marked = i == workload
		p.Bars = append(p.Bars, b)
	}
	if p.First >= 0 && workload < 0 {
		p.place(page.Bar{Name: "first instruction", Kind: kinds[record.KindWorkload].word, Point: true, From: p.First, To: p.First, CPU: -1, Marked: true})
	}
	for _, g := range p.waits(d) {
		p.place(g)
	}
	if s.Ready > s.Began {
		at := p.within(s, s.Ready)
		p.Bars = append(p.Bars, page.Bar{Name: "ready", Kind: kinds[record.KindWorkload].word, Point: true, From: at, To: at, CPU: -1})
	}
	return p
}

// endOf returns the end of the time axis. It is the end of the start, or its last
// known time. A workload may begin after the return of the call that started it.
func endOf(d *Drawn) int64 {
	end := max(d.Start.Ended, d.Start.First, d.Start.Ready)
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

// workload returns the row with the workload's first instruction, or -1. If there are
// several, it returns the one that began last.
func (p *picture) workload(d *Drawn) int {
	found := -1
	for i := range d.Rows {
		r := &d.Rows[i]
		if p.First >= 0 && r.Kind == record.KindWorkload && r.Began <= d.Start.First && d.Start.First <= r.Ended && (found < 0 || r.Began > d.Rows[found].Began) {
			found = i
		}
	}
	return found
}

// within limits a time to the axis.
func (p *picture) within(s *record.Start, at int64) int64 {
	return min(max(since(s.Began, at), 0), p.Length)
}

func (p *picture) bar(s *record.Start, r *trace.Row) page.Bar {
	b := page.Bar{Name: r.Name, Kind: cmp.Or(kinds[r.Kind].word, "other"), Depth: min(max(r.Depth, 0), deepest), From: p.within(s, r.Began), To: p.within(s, r.Ended), CPU: r.CPU, Open: r.Open, Text: r.Container, Style: kinds[r.Kind].style}
	if r.Pid != 0 {
		b.Text = page.Dotted(fmt.Sprintf("process %d", r.Pid), r.Container)
	}
	if r.Exit != nil && *r.Exit != 0 {
		b.Exit, b.Style = *r.Exit, term.Red
	}
	if b.Open || b.To < b.From {
		b.To = p.Length
	}
	return b
}

// deepest is the maximum indentation of rows.
const deepest = 8

// shown returns the rows to draw, in order. If there are too many, it drops short rows
// except runtime calls and failures. Then it drops the shortest rows until the rest
// fits.
func (p *picture) shown(rows []trace.Row, s *record.Start, workload int, o page.Options) []int {
	all := make([]int, len(rows))
	for i := range rows {
		all[i] = i
	}
	if len(rows) <= maxBars || o.Verbose {
		return all
	}
	took := func(i int) int64 {
		b := p.bar(s, &rows[i])
		return b.To - b.From
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
		return weight(i) == 0 && float64(took(i)) < smallest*float64(p.Length)
	})
	if len(kept) > maxBars {
		slices.SortStableFunc(kept, func(a, b int) int {
			return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(took(b), took(a)))
		})
		kept = kept[:maxBars]
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

// waits returns the recognized waits and the longest gaps, in time order. d.Gaps is
// sorted by duration.
func (p *picture) waits(d *Drawn) (out []page.Bar) {
	named := 0
	for i := range d.Gaps {
		g := &d.Gaps[i]
		b := page.Bar{Name: "· " + gapName(g), Kind: "waits", Wait: true, Style: term.Yellow, From: p.within(d.Start, g.Began), To: p.within(d.Start, g.Ended), CPU: g.CPU, Text: g.After + " → " + g.Before}
		if g.Wait != nil {
			b.Text = page.Dotted(b.Text, g.Wait.Why)
		}
		long := i < maxLong && float64(b.To-b.From) >= 4*smallest*float64(p.Length)
		if b.To <= b.From || !long && (g.Wait == nil || named == maxWaits) {
			continue
		}
		if g.Wait != nil {
			named++
		}
		out = append(out, b)
	}
	slices.SortStableFunc(out, func(a, b page.Bar) int { return cmp.Compare(a.From, b.From) })
	return out
}

// gapName returns the label of a gap.
func gapName(g *record.Gap) string {
	switch {
	case g.Wait != nil:
		return "waited: " + g.Wait.Timer
	case g.In != "":
		return "gap in " + g.In
	}
	return "gap"
}

// place inserts a bar before the next bar that begins after its end, with the same
// depth. It appends the bar if there is none.
func (p *picture) place(b page.Bar) {
	at, next := len(p.Bars), int64(-1)
	for i := range p.Bars {
		other := &p.Bars[i]
		if !other.Wait && other.From >= b.To && other.From > b.From && (next < 0 || other.From < next) {
			at, next, b.Depth = i, other.From, other.Depth
		}
	}
	p.Bars = slices.Insert(p.Bars, at, b)
}

// legend returns the notes about the omitted bars and the marks in use.
func (p *picture) legend() (notes []string) {
	if p.folded > 0 {
		notes = append(notes, fmt.Sprintf("… %d more, together %s", p.folded, page.Duration(float64(p.together))))
	}
	open, waited, first := "", "", ""
	if p.First >= 0 {
		first = "◆ first instruction, after " + page.Duration(float64(p.First))
	}
	for i := range p.Bars {
		if p.Bars[i].Open {
			open = "→ still there at the end"
		}
		if p.Bars[i].Wait {
			waited = "┄ no events logged"
		}
	}
	if marks := page.Dotted(first, open, waited); marks != "" {
		notes = append(notes, marks)
	}
	return notes
}

// kinds has the name and the color of a bar by its kind. The color repeats information
// that is also in the name.
var kinds = map[string]struct {
	word  string
	style term.Style
}{
	record.KindClient: {"client", cyan}, record.KindDaemon: {"daemon", cyan}, record.KindShim: {"shim", cyan}, record.KindMonitor: {"monitor", cyan}, record.KindEngine: {"engine", cyan},
	record.KindCall: {"runtime calls", blue}, record.KindInit: {"init", ""}, record.KindCNI: {"network plugins", magenta}, record.KindHelper: {"helpers", ""},
	record.KindVMM: {"sandbox", ""}, record.KindVirtiofsd: {"file servers", ""}, record.KindWorkload: {"workload", ""}, record.KindOther: {"other", ""},
	record.KindPhase: {"phases", ""}, record.KindGuest: {"guest", ""},
}

const (
	blue    term.Style = "34"
	magenta term.Style = "35"
	cyan    term.Style = "36"
)
