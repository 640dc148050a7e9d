package instrument_test

import (
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// linesOf returns the lines of a stored record, header first.
func linesOf(t *testing.T, name string) []string {
	t.Helper()
	return slices.Collect(strings.Lines(must.Read(t, stored+"/"+name+".jsonl")))
}

// judgedOf judges a record of lines and returns the codes of its findings.
func judgedOf(t *testing.T, lines []string) (instrument.Judged, []string) {
	t.Helper()
	types := must.Get(all.Instruments.Lines())(t)
	rec := must.Get(types.Read(strings.NewReader(strings.Join(lines, ""))))(t)
	j := judged(t, rec)
	var codes []string
	_, _, found := j.Result()
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	return j, codes
}

// The cut may be in the middle of a line.
func TestTruncatedRecordIsJudgedUpToTheCut(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		lines, whole := linesOf(t, name), load(t, name)
		text := strings.Join(lines, "")
		for cut := len(lines[0]); cut < len(text)-2; cut += len(text)/20 + 1 {
			j, codes := judgedOf(t, []string{text[:cut]})
			check.That(t, j.Record.End == nil && j.Record.ProblemCount == 0 && slices.Contains(codes, finding.CutOff),
				"%s cut at %d: end %v, %v, findings %q", name, cut, j.Record.End, j.Record.Problems, codes)
			if n := len(j.Record.Batches); n > 0 && !reflect.DeepEqual(j.Record.Batches, whole.Batches[:n]) {
				t.Errorf("%s cut at %d: the %d batches are not the first ones written", name, cut, n)
			}
		}
	}
}

func TestDuplicateLinesCountOnce(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		if strings.HasPrefix(name, "startup") || name == "storage" {
			continue // starts and a volume's places have no number that identifies duplicates
		}
		lines := linesOf(t, name)
		once, _ := judgedOf(t, lines)
		last := len(lines) - 1
		twice, codes := judgedOf(t, slices.Concat(lines[:last], lines[1:last], lines[last:]))
		a, b := once.Figures(), twice.Figures()
		if len(a) != len(b) {
			t.Errorf("%s: %d figures from duplicated lines, want %d", name, len(b), len(a))
			continue
		}
		for i := range a {
			if digits(t, a[i]) != digits(t, b[i]) {
				t.Errorf("%s: %s %s is %s, with duplicated lines %s", name, a[i].Quantity, a[i].Labels, digits(t, a[i]), digits(t, b[i]))
				break
			}
		}
		check.That(t, slices.Contains(codes, finding.Damaged), "%s: findings %q", name, codes)
	}
}

func TestEveryInstrumentJudgesItsRecords(t *testing.T) {
	t.Parallel()
	for _, one := range all.Instruments {
		for _, h := range []record.Header{{Experiment: "another", Plan: []byte("{}")}, {Experiment: one.Name, Plan: []byte("[1]")}} {
			_, err := one.Judge(&record.Record{Header: h})
			check.That(t, err != nil, "%s judges %+v", one.Name, h)
		}
	}
}

// redacted returns a record with pseudonyms.
func redacted(t *testing.T, rec *record.Record) (*record.Record, *record.Redaction) {
	t.Helper()
	r, out := &record.Redaction{}, &record.Record{}
	v := reflect.ValueOf(rec).Elem()
	add := func(line reflect.Value) {
		copied := must.Get(r.Line(line.Addr().Interface()))(t)
		must.OK(t, record.Validate(copied))
		out.Add(copied)
	}
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case v.Type().Field(i).Name == "Problems" || !v.Type().Field(i).IsExported():
		case f.Kind() == reflect.Struct:
			add(f)
		case f.Kind() == reflect.Pointer && !f.IsNil():
			add(f.Elem())
		case f.Kind() == reflect.Slice:
			for k := range f.Len() {
				add(f.Index(k))
			}
		}
	}
	for _, line := range rec.Own() {
		add(reflect.ValueOf(line).Elem())
	}
	return out, r
}

// digits matches the measured parts of a figure.
func digits(t *testing.T, f figure.Figure) string {
	t.Helper()
	f.Labels, f.Reasons = nil, nil
	text := must.JSON(t, f)
	return string(text)
}

func TestRedactionKeepsFiguresAndHidesNames(t *testing.T) {
	t.Parallel()
	tells := regexp.MustCompile(`/(usr|var|run|tmp|home|sys|proc|root|mnt|etc|dev)/|--[a-z]+|\.(sock|log|json|md|txt)\b|\b[0-9]*[a-f][0-9a-f]{11,}|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+`)
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := load(t, name)
			out, r := redacted(t, rec)
			before := judged(t, rec)
			after := judged(t, out)
			a, b := before.Figures(), after.Figures()
			must.That(t, len(a) == len(b) && len(a) != 0, "%d figures, %d after redaction", len(a), len(b))
			for i := range a {
				if x, y := digits(t, a[i]), digits(t, b[i]); x != y {
					t.Fatalf("figure %d, %s, was\n%s\nand is\n%s", i, a[i].Labels, x, y)
				}
			}
			check.That(t, len(r.Removed()) != 0, "nothing was removed")
			hidden := *out
			hidden.Findings = nil
			for i := range hidden.Targets { // a digest identifies a program, not a machine
				hidden.Targets[i].Digest = ""
			}
			text := must.JSON(t, hidden)
			if at := tells.FindIndex(text); at != nil {
				t.Errorf("not redacted: %s", text[max(0, at[0]-80):min(len(text), at[1]+80)])
			}
			check.Lacks(t, "the run id is not redacted", string(text), rec.Header.RunID)
		})
	}
}

// pageOfFigures is the page to which make docs writes the catalogues.
const pageOfFigures = "../../docs/figures.md"

func TestFiguresPageHasEveryCatalogue(t *testing.T) {
	t.Parallel()
	text := must.Read(t, pageOfFigures)
	for _, one := range all.Instruments {
		before, section, found := strings.Cut(text, "\n## "+one.Name+"\n")
		must.That(t, found, "the page has no section %s", one.Name)
		at := strings.Index(section, "| quantity |")
		end := at + strings.Index(section[at:], "\n\n")
		text = before + "\n## " + one.Name + "\n" + section[:at] + one.Quantities.Markdown() + section[end+1:]
	}
	golden.Same(t, pageOfFigures, text)
}

func TestEveryFigureIsInItsCatalogue(t *testing.T) {
	t.Parallel()
	files := must.Get(filepath.Glob("*/*.go"))(t)
	for _, file := range files {
		if text := must.Read(t, file); !strings.HasSuffix(file, "_test.go") && file != "beside/beside.go" { // has published figures
			check.That(t, !strings.Contains(text, "figure.Figure{Experiment"), "%s creates a figure without its catalogue", file)
		}
	}
}

func TestFiguresPageHasEveryQuantityAndLabel(t *testing.T) {
	t.Parallel()
	text := must.Read(t, pageOfFigures)
	for _, name := range names(t) {
		j := judged(t, load(t, name))
		missing := map[string]bool{}
		for _, f := range j.Figures() {
			_, section, found := strings.Cut(text, "\n## "+f.Experiment+"\n")
			must.That(t, found, "the page has no section %s", f.Experiment)
			section, _, _ = strings.Cut(section, "\n## ")
			row := ""
			for line := range strings.Lines(section) {
				if cells := strings.Split(line, "|"); len(cells) > 2 && strings.Contains(cells[1], "`"+f.Quantity+"`") {
					row = line
				}
			}
			if !strings.Contains(row, string(f.Unit)) {
				missing[f.Quantity+" in "+string(f.Unit)] = true
			}
			for _, l := range f.Labels {
				if !strings.Contains(row, l.Key) && !strings.Contains(section, "`"+l.Key+"`") {
					missing[f.Quantity+" with "+l.Key] = true
				}
			}
		}
		for what := range missing {
			t.Errorf("%s: the section has no %s", name, what)
		}
	}
}
