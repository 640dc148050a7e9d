package document

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// stored returns judged records of all instruments.
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

func TestVersionsAndSettingsAreInOneTable(t *testing.T) {
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

func TestMachinesHaveSeparateColumns(t *testing.T) {
	t.Parallel()
	n := 0
	text := written(t, stored(t, func(rec *record.Record) {
		if n++; n%2 == 0 && rec.Header.Environment.Kernel != "" {
			rec.Header.Environment.Kernel = "6.99"
		}
	}))
	check.That(t, strings.Contains(text, "| machine 2 |") && strings.Contains(text, "| 6.99 |"), "%v", text[:2000])
}

func TestSlightlyDifferentMemoryIsOneMachine(t *testing.T) {
	t.Parallel()
	of := &facts{}
	for at, e := range []record.Environment{{Memory: 1000}, {Memory: 985}, {Memory: 500}} {
		check.Equal(t, fmt.Sprintf("%d bytes are machine", e.Memory), of.machineOf(&e), at/2)
	}
}

// Statements common to several instruments appear once, in their own section.
func TestSectionIsPrintedOnce(t *testing.T) {
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
	check.Equal(t, "titles", titles(front), []string{"measures", "what to mistrust"})
	if n := len(front.Answer); n < len(pages)-2 {
		t.Errorf("%d sentences for %d measures: %q", n, len(pages)-2, front.Answer)
	}
	got := titles(back)
	if n := len(got); got[n-2] != "again" || got[n-1] != "environment" || !slices.ContainsFunc(got, ends("lifecycle: what was timed")) || !slices.ContainsFunc(got, ends("lifecycle: options")) {
		t.Errorf("%q", got)
	}
	var texts []string
	for _, l := range front.Sections[1].Lists {
		for _, items := range grouped([]page.List{l}) {
			texts = append(texts, fmt.Sprint(items))
		}
	}
	once := slices.Compact(slices.Sorted(slices.Values(texts)))
	check.That(t, len(once) == len(texts) && len(once) >= 3, "findings %q", texts)
}

func TestMissingMeasuresAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*record.Record)
		says   string
	}{
		"complete":        {func(*record.Record) {}, ""},
		"missing measure": {func(rec *record.Record) { rec.Header.Of.Measures = 3 }, "1 of 3 measures here"},
		"interrupted":     {func(rec *record.Record) { rec.End.Status = "interrupted" }, "interrupted: 1 of 1 measure did not finish"},
		"killed":          {func(rec *record.Record) { rec.End = nil }, "interrupted: 1 of 1 measure did not finish"},
		"skipped": {func(rec *record.Record) {
			*rec = record.Record{Header: rec.Header, End: &record.End{Status: "skipped", Why: "no such engine"}}
		}, "**skipped (no such engine)**"},
		"failed with a hostile reason": {func(rec *record.Record) {
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

func TestDocumentEscapesRecords(t *testing.T) {
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
			t.Errorf("%s does not escape the record", format)
		}
	}
}
