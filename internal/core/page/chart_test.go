package page

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestEstimateChartHasIntervalsAndRounds(t *testing.T) {
	t.Parallel()
	c := &Chart{Kind: Intervals, Y: Axis{Unit: figure.Nanoseconds}}
	c.Figure("", "start", "runc", &figure.Figure{Estimate: figure.Estimate{N: 2, Value: 2e6, Lo: 1e6, Hi: 3e6, Bounded: true}, Rounds: []figure.Round{{Round: 0, Value: 1e6}, {Round: 4, Value: math.NaN()}, {Round: 5, Value: 3e6}}})
	c.Figure("", "start", "crun", &figure.Figure{Estimate: figure.Estimate{N: 1, Value: 5}})
	c.Figure("", "start", "none", &figure.Figure{})
	must.That(t, len(c.Data) == 4 && c.Data[0].Round && c.Data[1].Text == "round 6", "%+v", c.Data)
	d := c.Data[2]
	check.That(t, !d.Round && d.Y == 2e6 && d.Lo == 1e6 && d.Hi == 3e6, "estimate %+v", d)
	d = c.Data[3]
	check.That(t, d.Y == 5 && math.IsNaN(d.Lo) && math.IsNaN(d.Hi), "estimate without an interval: %+v", d)
}

func TestDistributionEndsAtItsMaximumAndIsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3, mostSteps, 7*mostSteps + 3} {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(n - i)
		}
		c := &Chart{Kind: Cumulative}
		c.Distribution(At("", "", "runc"), values)
		must.That(t, len(c.Data) == min(n, mostSteps), "%d values: %d steps", n, len(c.Data))
		for i, d := range c.Data {
			must.That(t, d.Y == d.X/float64(n) && (i == 0 || d.X > c.Data[i-1].X), "%d values: share %v at or below %v", n, d.Y, d.X)
		}
		if n > 0 && c.Data[len(c.Data)-1].Y != 1 {
			t.Errorf("%d values: the last is %v", n, c.Data[len(c.Data)-1])
		}
	}
}

func TestLargeChartIsThinnedWithANote(t *testing.T) {
	t.Parallel()
	s, rounds := Section{}, &Chart{Kind: Intervals, Caption: "Medians."}
	for _, series := range []string{"a", "b"} {
		f := figure.Figure{Estimate: figure.Exactly(2000)}
		for i := range 3000 {
			f.Rounds = append(f.Rounds, figure.Round{Round: i, Value: float64(i + 1)})
		}
		rounds.Figure("", "start", series, &f)
	}
	lines := &Chart{Kind: Lines}
	for i := range 9999 {
		at := At("", "", "runc")
		at.X = float64(i)
		lines.Add(at, figure.Exactly(1), nil)
	}
	s.Draw(rounds, nil, lines, &Chart{Kind: Lines})
	must.That(t, len(s.Charts) == 2 && rounds.Y.Log && !lines.Y.Log && rounds.Title == "" && lines.Title == "runc",
		"%d charts, %q, %q", len(s.Charts), rounds.Title, lines.Title)
	estimates := 0
	for _, d := range rounds.Data {
		if !d.Round {
			estimates++
		}
	}
	if n := len(rounds.Data); estimates != 2 || n > MostData || n < MostData/2 || rounds.Caption != "Medians. Of 6000 points, one in 4 is drawn." {
		t.Errorf("%d estimates among %d: %s", estimates, n, rounds.Caption)
	}
	if n := len(lines.Data); n > MostData || n < MostData/2 || lines.Data[0].X != 0 || lines.Data[n-1].X != 9998 {
		t.Errorf("%d points from %v to %v", n, lines.Data[0].X, lines.Data[n-1].X)
	}
}

func TestFoldingKeepsTheSum(t *testing.T) {
	t.Parallel()
	sum := func(c *Chart) (of map[string]float64) {
		of = map[string]float64{}
		for _, d := range c.Data {
			of[d.Group] += d.Y
		}
		return of
	}
	c := &Chart{Kind: Stacked}
	for i, series := range []string{"a", "b", "c", "d"} {
		for k, group := range []string{"x", "y"} {
			c.Add(At("", group, series), figure.Exactly(float64(1+i+10*k)), nil)
		}
	}
	before := sum(c)
	c.Fold(2)
	if after := sum(c); len(c.Data) != 6 || before["x"] != after["x"] || before["y"] != after["y"] || c.Data[4].Series != "2 others" {
		t.Errorf("%v became %v: %+v", before, after, c.Data)
	}
}

func TestComparisonsAreDrawnAsRatiosAroundOne(t *testing.T) {
	t.Parallel()
	v := &figure.Versus{Shift: figure.Estimate{N: 9, Value: 0.5, Lo: 0.4, Hi: 0.6, Bounded: true}, Margin: 0.05, Verdict: stat.Different}
	rows := figure.Rows{Names: []string{"runc", "crun"}, Rows: []figure.Row{{Name: "start", Of: []*figure.Figure{{}, {Versus: v}}}, {Name: "stop", Of: []*figure.Figure{{}, nil}}}}
	c := Against("compared", rows)
	check.That(t, len(c.Data) == 1 && c.Data[0].Y == 1.5 && c.Data[0].Lo == 1.4 && len(c.Rules) == 3 && c.Rules[1].Value == 1, "%+v", c)
	if rows.At = -1; Against("compared", rows) != nil {
		t.Error("chart without a comparison")
	}
}

// A bound must not look like a value, on a terminal, in a chart or in its table.
func TestBoundsAreDrawnAsBounds(t *testing.T) {
	t.Parallel()
	of := func(value float64, atMost bool) *figure.Figure {
		f := &figure.Figure{Unit: figure.Nanoseconds, AtMost: atMost}
		for i := range 9 {
			f.Rounds = append(f.Rounds, figure.Round{Round: i, Value: value * (1 + float64(i)/1000)})
		}
		f.Estimate = figure.Median(f.Values())
		return f
	}
	for name, tt := range map[string]struct {
		base, other *figure.Figure
		mark, told  string
		shape       string // shape in Vega, "" for a circle
	}{
		"both known":                   {of(5e6, false), of(7e6, false), "●", "1.40 [", ""},
		"an upper bound":               {of(5e6, false), of(7e6, true), "◀", "≤ 1.40 [", figure.AtMost},
		"compared with an upper bound": {of(5e6, true), of(7e6, false), "▶", "≥ 1.40 [", figure.AtLeast},
	} {
		rows := figure.Rows{Names: []string{"runc", "crun"}, Rows: []figure.Row{{Name: "start", Of: []*figure.Figure{tt.base, tt.other}}}}
		figure.Comparing{}.CompareRows(rows)
		s := Shifts(rows, figure.Comparing{})
		var text, html strings.Builder
		pages := []*Page{{Sections: []Section{*s}}}
		must.OK(t, errors.Join(Write(&text, "text", pages, Options{Width: 120, Colour: true}), Write(&html, "html", pages, Options{})))
		if got := text.String(); strings.Count(got, tt.mark) != 1 || strings.ContainsAny(strings.Replace(got, tt.mark, "", 1), "●◀▶") {
			t.Errorf("%s: on a terminal:\n%s", name, got)
		}
		c := s.Charts[0]
		spec := must.JSON(t, c.vegaLite(map[string]string{}))
		if got := string(spec); !strings.Contains(got, tt.told) || !strings.Contains(got, `"bound":"`+tt.shape+`"`) || strings.Contains(c.Caption, "bound") != (tt.shape != "") {
			t.Errorf("%s: chart:\n%s", name, got)
		}
		check.That(t, tt.shape == "" || strings.Contains(html.String(), ">"+tt.shape+"<"), "%s: the table lacks %s", name, tt.shape)
	}
}

// medians returns a table with a row for each estimate.
func medians(all ...figure.Estimate) *Table {
	table := Names("operation")
	table.Columns = append(table.Columns, Column{Title: "runc", Right: true, Group: 1, Beside: Estimates})
	for _, e := range all {
		table.Row(Words("start"), Median(&figure.Figure{Unit: figure.Nanoseconds, Estimate: e}))
	}
	return table
}

func TestBarsNeedWidthAndColour(t *testing.T) {
	t.Parallel()
	table := medians(figure.Estimate{N: 9, Value: 50e6, Lo: 25e6, Hi: 100e6, Bounded: true}, figure.Estimate{N: 1, Value: 100e6}, figure.Estimate{})
	text := func(o Options) string {
		var b strings.Builder
		must.OK(t, Write(&b, "text", []*Page{{Sections: []Section{{Title: "medians", Table: table}}}}, o))
		return b.String()
	}
	piped := text(Options{Width: 120})
	for name, o := range map[string]Options{"no colour": {Width: 120}, "no width": {Colour: true}, "a narrow terminal": {Width: 42, Colour: true}} {
		check.Equal(t, name, strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(text(o)), piped)
	}
	for _, width := range []int{60, 120} {
		lines := strings.Split(text(Options{Width: width, Colour: true}), "\n")[2:]
		if !strings.Contains(lines[0], "0") || !strings.HasSuffix(lines[0], "100 ms\x1b[0m") || strings.Count(lines[1], "●") != 1 || !strings.HasSuffix(lines[1], "─") ||
			!strings.HasSuffix(lines[2], "●") || strings.Contains(lines[3], "●") {
			t.Errorf("%d columns:\n%s", width, strings.Join(lines, "\n"))
		}
		for _, line := range lines[1:] {
			n := term.Width(line)
			check.That(t, n <= width, "line of %d columns, want at most %d:\n%s", n, width, line)
		}
	}
}

func TestBarMarksZero(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		e      figure.Estimate
		bound  string
		lo, hi float64
		want   string
	}{
		{"interval", figure.Estimate{Value: 5, Lo: 3, Hi: 9}, "", 0, 10, "│  ──●────"},
		{"interval as wide as the axis", figure.Estimate{Value: 0, Lo: -10, Hi: 10}, "", -10, 10, "─────●─────"},
		{"interval across zero", figure.Estimate{Value: 4, Lo: -2, Hi: 6}, "", -10, 10, "    ─┼─●─"},
		{"negative interval", figure.Estimate{Value: -8, Lo: -10, Hi: -6}, "", -10, 10, "─●─  │"},
		{"no interval", figure.Estimate{Value: 10, Lo: 10, Hi: 10}, "", 0, 10, "│         ●"},
		{"upper bound", figure.Estimate{Value: 5, Lo: 3, Hi: 9}, figure.AtMost, 0, 10, "│  ──◀────"},
		{"lower bound", figure.Estimate{Value: 5, Lo: 5, Hi: 5}, figure.AtLeast, 0, 10, "│    ▶"},
	} {
		check.Equal(t, tt.name, bar(tt.e, tt.bound, tt.lo, tt.hi, 11), tt.want)
	}
}

func TestTinyChangesAreNotDrawn(t *testing.T) {
	t.Parallel()
	f := &figure.Figure{Versus: &figure.Versus{Shift: figure.Estimate{N: 1, Value: 1e-17}}}
	title, bars := Changes.column([][]Cell{{{Figure: f}}}, 0, 20)
	check.That(t, title == "" && bars[0].Head == "", "%q, %q", title, bars[0].Head)
}

func TestLogarithmicAxisLabels(t *testing.T) {
	t.Parallel()
	c := &Chart{Kind: Intervals}
	for _, y := range []float64{5e-324, 1.7e308} {
		c.Add(At("", "start", "runc"), figure.Exactly(y), nil)
	}
	c.Y.Log = true
	must.JSON(t, c.vegaLite(map[string]string{}))
}
