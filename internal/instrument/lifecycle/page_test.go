package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

func rendered(t *testing.T, r *run, format string, o page.Options) string {
	t.Helper()
	return renderedAll(t, format, o, r)
}

func renderedAll(t *testing.T, format string, o page.Options, runs ...*run) string {
	t.Helper()
	var all []instrument.Judged
	for _, r := range runs {
		rec, l := r.judged(t)
		all = append(all, instrument.Judged{Record: rec, Judgement: l})
	}
	var out bytes.Buffer
	must.OK(t, (instrument.List{lifecycle.Instrument}).Report(&out, format, all, o))
	return out.String()
}

var forms = []string{"text", "md", "csv", "json"}

func TestReportsAreAsTheGoldenFilesHaveThem(t *testing.T) {
	for name, tt := range map[string]struct {
		record func() *run
		o      page.Options
	}{
		"pair":         {func() *run { return pair(1, 100) }, page.Options{Width: 120}},
		"pair-verbose": {func() *run { return pair(1) }, page.Options{Width: 100, Verbose: true}},
		"six":          {six, page.Options{Width: 80}},
		"failing":      {failing, page.Options{Width: 100}},
		"guest":        {guest, page.Options{Width: 100}},
		"hostile":      {hostile, page.Options{Width: 120}},
		"empty":        {func() *run { return newRun([]int{1}, subject.ContainerOps...) }, page.Options{Width: 80}},
		"engines":      {func() *run { return engines(20) }, page.Options{Width: 80}},
		"pods":         {func() *run { return pods(1, 100) }, page.Options{Width: 120}},
		"cluster":      {func() *run { return cluster(1, 20) }, page.Options{Width: 100, Verbose: true}},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Same(t, "testdata/"+name+".md", rendered(t, tt.record(), "md", tt.o))
			within(t, rendered(t, tt.record(), "text", tt.o), tt.o.Width)
		})
	}
}

// What text alone has: columns, parts of tables that are too wide, and colours.
func TestTextIsLaidOutAsTheGoldenFilesHaveIt(t *testing.T) {
	golden.Same(t, "testdata/six-80.txt", rendered(t, six(), "text", page.Options{Width: 80}))
	golden.Same(t, "testdata/pair-colour.txt", rendered(t, failing(), "text", page.Options{Width: 100, Colour: true}))
}

// within says which lines are wider than a terminal.
func within(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := term.Width(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestEveryPartOfASplitTableBeginsWithTheBaseline(t *testing.T) {
	parts := 0
	for line := range strings.Lines(rendered(t, six(), "text", page.Options{Width: 80})) {
		if strings.HasPrefix(line, "  operation ") {
			parts++
			if names := strings.Fields(line); names[1] != "runtime-1" {
				t.Errorf("no baseline in %q", line)
			}
		}
	}
	if parts < 4 {
		t.Errorf("%d parts; the table of six targets does not fit in 80 columns", parts)
	}
}

func TestTheISuladFormTakesItsPercentagesFromMeansThatAreNotRounded(t *testing.T) {
	r := newRun([]int{1}, subject.Create)
	r.runtime("runc", "")
	r.runtime("crun", "")
	r.times("runc", subject.Create, 1, 20_400, 10) // printed as 20
	r.times("crun", subject.Create, 1, 20_496, 10) // printed as 20, too
	if out := rendered(t, r, "md", page.Options{}); !strings.Contains(out, "| create | 20 | 20 | +0.47% |") {
		t.Errorf("no such row in:\n%s", out)
	}
}

func TestWhatWasTimedIsSaidOnce(t *testing.T) {
	r := newRun([]int{1}, subject.Start, subject.Run, subject.Stop)
	r.host()
	again := *r.host()
	r.rec.Targets[1].Name = "again"
	r.times("host", subject.Run, 1, 500, 1)
	out := rendered(t, r, "text", page.Options{})
	for _, want := range []string{"  start, run\n", "host, again  " + again.Operations["run"].Command + "\n"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%q is not once in:\n%s", want, out)
		}
	}
}

func TestLanesThatWereNotReleasedAreNamed(t *testing.T) {
	r := pair(10)
	r.rec.Batches[len(r.rec.Batches)-1].Lost = 3
	if out, want := rendered(t, r, "text", page.Options{}), "crun run: 3 lanes not released"; !strings.Contains(out, want) {
		t.Errorf("%q is not in:\n%s", want, out)
	}
}

func TestAFormatThatThereIsNotIsRefused(t *testing.T) {
	rec, l := pair(1).judged(t)
	for _, format := range []string{"chrome", ""} {
		var out bytes.Buffer
		err := (instrument.List{lifecycle.Instrument}).Report(&out, format, []instrument.Judged{{Record: rec, Judgement: l}}, page.Options{})
		if err == nil || !strings.Contains(err.Error(), "text, md, html, json, csv") || out.Len() > 0 {
			t.Errorf("%q: got %v and %q", format, err, out.String())
		}
	}
}

func TestAnyNumberThatIsNoneIsShownAsNone(t *testing.T) {
	rec, l := engines(1, 100).judged(t)
	nan := math.NaN()
	for i := range l.Tables {
		for j := range l.Tables[i].Rows {
			for k := range l.Tables[i].Rows[j].Cells {
				c := &l.Tables[i].Rows[j].Cells[k]
				c.Time.Estimate.Value, c.Time.Estimate.Hi, c.Trimmed.Estimate.Value = nan, math.Inf(1), nan
				c.Time.Rounds[0].Value = nan
				c.Time.Versus = &figure.Versus{Shift: figure.Exactly(nan), P: nan, Verdict: stat.Different}
				for n := range c.Lanes {
					c.Lanes[n].Estimate.Value = nan
				}
				for r := range c.Roles {
					for n := range c.Roles[r].Used {
						c.Roles[r].Used[n].Estimate.Value = math.Inf(1)
					}
				}
			}
		}
	}
	for _, format := range forms {
		var out bytes.Buffer
		if err := (instrument.List{lifecycle.Instrument}).Report(&out, format, []instrument.Judged{{Record: rec, Judgement: l}}, page.Options{Width: 100, Verbose: true}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if s := out.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("%s holds what is no number:\n%s", format, s)
		}
		if format == "json" && !json.Valid(out.Bytes()) {
			t.Error("no JSON")
		}
	}
}
