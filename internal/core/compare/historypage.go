package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Page shows the changes and the course of every series.
func (h *History) Page() *page.Page {
	p := page.New("", "history")
	p.Head = []string{
		page.Dotted(page.Amount(h.runs, "run")+" of "+page.Amount(len(h.Points), "point"), fmt.Sprint(len(h.Series), " series"), "ordered by "+h.by),
	}
	if h.undated != nil {
		p.Head = append(p.Head, "left out for lack of a date: "+page.Listed(h.undated)+"; "+numberThem)
	}
	p.Head = append(p.Head, page.Filled(h.of.unknown())...)
	p.Answer = h.answer()
	p.Add(h.of.recorded(true), (&Comparison{Differences: h.unlike}).unlikeTable(), h.changes(), h.courses())
	return p
}

func (h *History) changes() *page.Section {
	table := page.Names("figure", "of", "between")
	var before, after []figure.Figure // levels before and after each change
	for _, s := range h.Series {
		levels := h.levels(s)
		for k, c := range s.Changes {
			last, first := h.Points[s.At[c.At-1]], h.Points[s.At[c.At]]
			table.Row(s.names(page.Heading(last) + " and " + page.Heading(first))...)
			before, after = append(before, levels[k]), append(after, levels[k+1])
		}
	}
	if after == nil {
		title, notes := "changes: none", []string{h.shown()}
		if !slices.ContainsFunc(h.Series, func(s *Series) bool { return !math.IsInf(s.Finds, 1) }) {
			title = "changes: too few points to detect any, however large"
			notes = append(notes, h.needed())
		}
		return &page.Section{Title: title, Style: term.Bold, Notes: notes}
	}
	table.Add("before", page.Each(before, page.Median))
	table.Add("shift", page.Each(after, page.Change))
	table.AddText("", page.Each(after, func(f *figure.Figure) page.Cell {
		cell := word(f)
		if cell.Head = f.Verdict; f.Verdict == string(stat.Regressed) {
			cell.Style = term.Red
		}
		return cell
	}))
	s := &page.Section{Title: "changes", Style: term.Bold, Charts: h.charts(), Table: table, Notes: []string{
		"shift between the levels on both sides (Hodges–Lehmann) with its 95 % interval, given the position of the change; " + h.shown()}}
	if h.since > 0 {
		s.Notes = append(s.Notes, "the exit status covers changes at "+page.Heading(h.Points[h.since])+" and later")
	}
	return s
}

// shown describes the threshold for a change.
func (h *History) shown() string {
	asked := h.asked()
	if asked == 0 {
		return fmt.Sprintf("no series has the %d points needed to detect a change", stat.ShortestSeries)
	}
	return fmt.Sprintf("a change is reported if its p-value × positions tested in its series × number of series (%d) is below %g", asked, stat.ChangeAlpha)
}

// asked returns the number of series that are long enough to look for a change.
func (h *History) asked() (n int) {
	for _, s := range h.Series {
		if len(s.Values) >= stat.ShortestSeries {
			n++
		}
	}
	return n
}

// needed describes how many points are required.
func (h *History) needed() string {
	n := max(1, h.asked())
	text := fmt.Sprintf("each of %d series needs %d points, half of them after the change", n, stat.PointsNeeded(n))
	if n > 1 {
		text += fmt.Sprintf(", a single series needs %d: select fewer with --filter, such as 'target:runc op:run quantity:latency'", stat.PointsNeeded(1))
	}
	return text
}

// mostCharts is the maximum number of charts of changed series.
const mostCharts = 12

// charts draws the changed series: their values, and their levels with intervals.
func (h *History) charts() (out []*page.Chart) {
	for _, s := range h.Series {
		if s.Changes == nil || len(out) == mostCharts {
			continue
		}
		c := &page.Chart{Name: "history-" + s.Quantity, Title: s.Quantity + " " + page.Dotted(s.Labels.String(), s.Apart), Kind: page.Lines,
			X: page.Axis{Title: "point, in order of " + h.by, Unit: figure.Count}, Y: page.Axis{Title: s.Quantity, Unit: s.Unit}}
		each := 1 + len(s.Values)/(page.MostData/2)
		for i := 0; i < len(s.Values); i += each {
			d := page.At("", "", "value")
			d.X, d.Y, d.Text = float64(s.At[i]), s.Values[i], h.Points[s.At[i]]+": "+page.Text(s.Values[i], s.Unit)
			if s.most[s.At[i]] {
				d.Bound = figure.AtMost
			}
			c.Data = append(c.Data, d)
		}
		var told []string
		for k, f := range h.levels(s) {
			last := f.Rounds[len(f.Rounds)-1].Round
			for _, at := range []int{f.Rounds[0].Round, last} {
				d := page.At("", "", "level")
				d.X, d.Text, d.Bound = float64(at), page.Text(f.Value, f.Unit), f.Bound()
				c.Add(d, f.Estimate, nil)
			}
			if k > 0 {
				text := fmt.Sprintf("%s at %s", page.Change(&f).Head, page.Heading(h.Points[f.Rounds[0].Round]))
				c.Rules, told = append(c.Rules, page.Rule{Value: float64(f.Rounds[0].Round) - 0.5, Text: text, Vertical: true}), append(told, text)
			}
		}
		c.Caption = fmt.Sprintf("%s over %s; %s", s.Quantity, page.Amount(len(s.Values), "point"), page.Listed(told))
		if each > 1 {
			c.Caption += fmt.Sprintf("; one in %d is drawn", each)
		}
		out = append(out, c)
	}
	return out
}

// names returns the first cells of a row, which identify the series.
func (s *Series) names(more ...string) []page.Cell {
	return page.Texts(append([]string{s.Quantity, page.Middle(page.Dotted(s.Labels.String(), s.Apart), 3*page.LongestName)}, more...)...)
}

func (h *History) courses() *page.Section {
	table, widened := page.Names("figure", "of"), 1.0
	for _, s := range h.Series {
		table.Row(s.names()...)
		widened = max(widened, s.Widened)
	}
	table.Add("points", page.Each(h.Series, func(s **Series) page.Cell { return page.Words(fmt.Sprint(len((*s).Values))) }))
	table.AddText("course", page.Each(h.Series, func(s **Series) page.Cell {
		at := make([]int, len((*s).Changes))
		for i, c := range (*s).Changes {
			at[i] = c.At
		}
		return page.Words(page.Course((*s).Values, at))
	}))
	table.Add("finds", page.Each(h.Series, func(s **Series) page.Cell {
		switch finds := (*s).Finds; {
		case math.IsNaN(finds):
			return page.Words(page.None)
		case math.IsInf(finds, 1):
			return page.Words("too few points")
		default:
			return page.Words(page.Share(finds))
		}
	}))
	note := "│ a change; finds: the smallest change that would be detected in 4 of 5 such histories if it were in the middle"
	if widened > 1.05 {
		note += fmt.Sprintf("; runs depend on earlier runs, so the noise counts up to %.1f times", widened)
	}
	return &page.Section{Title: "series", Style: term.Bold, Table: table, Notes: []string{note}}
}
