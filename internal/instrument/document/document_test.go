package document

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// stored are judged records of all instruments.
func stored(t *testing.T, change func(*record.Record)) (out []instrument.Judged) {
	t.Helper()
	lines := must.Get(all.Instruments.Lines())(t)
	files, err := filepath.Glob("../../../record/testdata/v1/*.jsonl")
	must.That(t, err == nil && len(files) >= 5, "%q, %v", files, err)
	for _, file := range files {
		rec := must.Get(lines.Load(file))(t)
		if change != nil {
			change(rec)
		}
		j := must.Get(all.Instruments.Judge(rec))(t)
		out = append(out, instrument.Judged{Record: rec, Judgement: j})
	}
	return out
}

func written(t *testing.T, all_ []instrument.Judged) string {
	t.Helper()
	pages := must.Get(Of(all_, all.Instruments, nil, page.Options{}))(t)
	var out bytes.Buffer
	must.OK(t, page.Write(&out, "md", pages, page.Options{}))
	return strings.ReplaceAll(out.String(), `\`, "")
}

func TestEveryVersionAndSettingOfARecordIsInTheOneTable(t *testing.T) {
	t.Parallel()
	judged := stored(t, func(rec *record.Record) {
		if len(rec.Targets) > 0 && rec.Header.Experiment == "lifecycle" {
			rec.Targets[0].Config = map[string]string{"storage driver": "overlay2", "cgroup driver": "systemd", "containerd version": "1.7.99", "kata version": "3.9.0 (Go)"}
			rec.Targets[0].Digest, rec.Header.Environment.Governor = "sha256:abc", "performance"
		}
	})
	text := written(t, judged)
	check.Equal(t, "tables of the environment", strings.Count(text, "### environment"), 1)
	_, rest, _ := strings.Cut(text, "### environment")
	table, _, _ := strings.Cut(rest, "\n### ")
	says := func(what ...string) {
		for _, one := range what {
			check.That(t, one == "" || strings.Contains(table, page.Heading(one)) || strings.Contains(table, one), "no %q in\n%s", one, table)
		}
	}
	says("overlay2", "systemd", "1.7.99", "3.9.0 (Go)", "sha256:abc", "performance", "fio-3.33")
	for _, one := range judged {
		h := &one.Record.Header
		e := &h.Environment
		says(h.Version, e.Kernel, e.KernelBuild, e.OS, e.CPUModel, e.Cgroup, e.RootFS, e.ClockSource, e.Virtual, e.Lanes)
		for _, target := range one.Record.Targets {
			says(target.Name, target.Version, target.Path, target.SpecVersion)
			for key, value := range target.Config {
				says(key, value)
			}
		}
		for _, c := range one.Record.Cells {
			says(c.Version)
		}
		for _, r := range one.Record.Readings {
			if r.Work != nil {
				says(r.Work.Version)
			}
		}
	}
}

func TestTwoMachinesHaveAColumnEach(t *testing.T) {
	t.Parallel()
	n := 0
	text := written(t, stored(t, func(rec *record.Record) {
		if n++; n%2 == 0 && rec.Header.Environment.Kernel != "" {
			rec.Header.Environment.Kernel = "6.99"
		}
	}))
	check.That(t, strings.Contains(text, "| machine 2 |") && strings.Contains(text, "| 6.99 |"), "%v", text[:2000])
}

func TestAMachineStaysOneWhoseKernelCountsABitOfMemoryLess(t *testing.T) {
	t.Parallel()
	of := &facts{}
	for at, e := range []record.Environment{{Memory: 1000}, {Memory: 985}, {Memory: 500}} {
		check.Equal(t, fmt.Sprintf("%d bytes are machine", e.Memory), of.machineOf(&e), at/2)
	}
}

// What instruments say each by itself stands once, in its part.
func TestAPartIsToldOnceAndNowhereElse(t *testing.T) {
	t.Parallel()
	pages := must.Get(Of(stored(t, nil), all.Instruments, &page.Section{Title: "again"}, page.Options{}))(t)
	front, back := pages[0], pages[len(pages)-1]
	for _, p := range pages[1 : len(pages)-1] {
		check.That(t, len(p.Sections) != 0 && !slices.ContainsFunc(p.Sections, func(s page.Section) bool { return s.Part != "" }),
			"%s: %+v", p.Title, p.Sections)
	}
	titles := func(p *page.Page) (all []string) {
		for _, s := range p.Sections {
			all = append(all, s.Title)
		}
		return all
	}
	ends := func(with string) func(string) bool {
		return func(title string) bool { return strings.HasSuffix(title, " "+with) }
	}
	check.Equal(t, "titles", titles(front), []string{"measures", "conclusions", "what to mistrust"})
	if n := len(front.Answer); n < len(pages)-2 {
		t.Errorf("%d sentences answer %d measures: %q", n, len(pages)-2, front.Answer)
	}
	got := titles(back)
	if n := len(got); got[n-2] != "again" || got[n-1] != "environment" || !slices.ContainsFunc(got, ends("lifecycle: what was timed")) || !slices.ContainsFunc(got, ends("lifecycle: what was asked for")) {
		t.Errorf("%q", got)
	}
	var texts []string
	for _, l := range front.Sections[2].Lists {
		for _, items := range grouped([]page.List{l}) {
			texts = append(texts, fmt.Sprint(items))
		}
	}
	once := slices.Compact(slices.Sorted(slices.Values(texts)))
	check.That(t, len(once) == len(texts) && len(once) >= 3, "findings %q", texts)
}

func TestConclusionsAreVerdictsAndNothingElse(t *testing.T) {
	t.Parallel()
	versus := func(v stat.Verdict, shift, lo, hi float64) *figure.Versus {
		return &figure.Versus{Baseline: "runc", Verdict: v, Shift: figure.Estimate{N: 9, Value: shift, Lo: lo, Hi: hi, Bounded: lo != hi}}
	}
	known := figure.Estimate{N: 9, Value: 1}
	of := func(target, op, lanes string, v *figure.Versus, verdict string) figure.Figure {
		return figure.Figure{Quantity: "latency", Labels: figure.Of("target", target, "op", op, "lanes", lanes, "kind", "x"), Estimate: known, Versus: v, Verdict: verdict}
	}
	for name, c := range map[string]struct {
		figures []figure.Figure
		want    []page.Item
	}{
		"without a verdict nothing is said": {[]figure.Figure{of("runc", "create", "1", nil, "")}, nil},
		"a verdict with its shift and interval": {
			[]figure.Figure{of("crun", "create", "1", versus(stat.Different, -.25, -.3, -.2), ""), of("crun", "run", "1", versus(stat.Same, .01, -.02, .03), ""), of("crun", "run", "50", versus(stat.Undecided, .2, -.1, .4), "")},
			[]page.Item{
				{Key: "crun against runc, different", Text: "latency, create, lanes 1 -25.0 % [-30.0, -20.0]"},
				{Key: "crun against runc, same", Text: "latency, run, lanes 1 +1.0 % [-2.0, +3.0]"},
				{Key: "crun against runc, not decided", Text: "latency, run, lanes 50 +20.0 % [-10.0, +40.0]"},
			},
		},
		"an interval that is not known is not made up": {
			[]figure.Figure{of("crun", "create", "1", versus(stat.Undecided, .5, 0, 0), "")},
			[]page.Item{{Key: "crun against runc, not decided", Text: "latency +50.0 %"}},
		},
		"what a figure was judged to be": {
			[]figure.Figure{of("kata", "create", "1", versus(stat.Different, 9, 8, 10), "guest cache"), of("host", "run", "1", nil, "device")},
			[]page.Item{
				{Key: "kata against runc, different", Text: "latency, create +900.0 % [+800.0, +1000] (guest cache)"},
				{Key: "judged: guest cache", Text: "kata, create"},
				{Key: "judged: device", Text: "host, run"},
			},
		},
		"one target that is both says of which figure": {
			[]figure.Figure{
				{Quantity: "needed", Labels: figure.Of("target", "kata", "phase", "idle", "resource", "cpu"), Estimate: known, Verdict: "not enough"},
				{Quantity: "needed", Labels: figure.Of("target", "kata", "phase", "load", "resource", "cpu"), Estimate: known, Verdict: "enough"},
				{Quantity: "on-line", Labels: figure.Of("target", "kata"), Estimate: known, Verdict: "on no line"},
				{Quantity: "checked", Labels: figure.Of("target", "runc", "resource", "cpu"), Estimate: known, Verdict: "enough"},
			},
			[]page.Item{
				{Key: "judged: not enough", Text: "kata, needed, idle, cpu"},
				{Key: "judged: enough", Text: "kata, needed, load, cpu; runc"},
				{Key: "judged: on no line", Text: "kata, on-line"},
			},
		},
	} {
		check.Equal(t, name, concluded(c.figures), c.want)
	}
}

func TestVerdictsOfOneKindAreBounded(t *testing.T) {
	t.Parallel()
	var all []figure.Figure
	for i := range mostTold + 7 {
		all = append(all, figure.Figure{Labels: figure.Of("target", "kata", "lanes", strconv.Itoa(i)), Verdict: "cache"})
	}
	got := concluded(all)
	check.That(t, len(got) == 1 && strings.Count(got[0].Text, ";") == mostTold && strings.HasSuffix(got[0].Text, "lanes 199; and 7 more"),
		"%+v", got)
}

func TestWhatIsNotHereOfAPlanIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*record.Record)
		says   string
	}{
		"nothing is missing":   {func(*record.Record) {}, ""},
		"a measure is missing": {func(rec *record.Record) { rec.Header.Of.Measures = 3 }, "1 of 3 measures here"},
		"it was interrupted":   {func(rec *record.Record) { rec.End.Status = "interrupted" }, "interrupted: 1 of 1 measure did not come to an end"},
		"it was killed":        {func(rec *record.Record) { rec.End = nil }, "interrupted: 1 of 1 measure did not come to an end"},
		"it was skipped": {func(rec *record.Record) {
			*rec = record.Record{Header: rec.Header, End: &record.End{Status: "skipped", Why: "no such engine"}}
		}, "**skipped (no such engine)**"},
		"it failed, and why is hostile": {func(rec *record.Record) {
			*rec = record.Record{Header: rec.Header, End: &record.End{Status: "failed", Why: "\x1b[31m# <b>"}}
		}, "**failed (x1b[31m# &lt;b&gt;)**"},
	} {
		one := stored(t, func(rec *record.Record) {
			if rec.Header.Experiment == "lifecycle" {
				rec.Header.Of = &record.Part{Plan: "p", Description: "what for", Source: "a report", Measure: 1, Measures: 1}
				c.change(rec)
			}
		})
		i := slices.IndexFunc(one, func(j instrument.Judged) bool { return j.Record.Header.Of != nil })
		text := written(t, one[i:i+1])
		check.That(t, strings.Contains(text, c.says) && strings.HasPrefix(text, "# p\n\nwhat for\n\nsource: a report\n") && !strings.Contains(text, "\x1b"),
			"%s: no %q in\n%s", name, c.says, text[:min(len(text), 1500)])
		check.That(t, c.says != "" || !strings.Contains(text[:200], " here"), "%s: %s", name, text[:200])
	}
}

func TestWhatARecordSaysIsNotObeyedInADocument(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b]0;y\a\n# <script>z</script>"
	judged := stored(t, func(rec *record.Record) {
		h := &rec.Header
		h.Of = &record.Part{Plan: evil, Description: evil, Source: evil, Measure: 1, Measures: 1 << 16, Flags: []string{evil}}
		h.RunID, h.Version, h.Environment.OS, h.Environment.Mitigations = evil, evil, evil, map[string]string{evil: evil}
		for i := range rec.Targets {
			rec.Targets[i].Notes, rec.Targets[i].Config = []string{evil}, map[string]string{evil: evil}
		}
		for i := range rec.Cells {
			rec.Cells[i].Command, rec.Cells[i].Version = evil, evil
		}
		if rec.End != nil {
			rec.End.Why = evil
		}
	})
	pages := must.Get(Of(judged, all.Instruments, nil, page.Options{}))(t)
	for _, format := range page.Formats {
		var out bytes.Buffer
		must.OK(t, page.Write(&out, format, pages, page.Options{}))
		if text := out.String(); strings.ContainsAny(text, "\x1b\a") || strings.Contains(text, "<script>z") && format != "text" || strings.Contains(text, "\n# <") {
			t.Errorf("%s obeys it", format)
		}
	}
}
