package instrument_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"html"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/hostile"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// These tests check the properties common to all reports. They use the stored records,
// which every later version must be able to open.

const stored = "../../record/testdata/v1"

// names lists the stored records.
func names(t *testing.T) (out []string) {
	t.Helper()
	for _, one := range all.Instruments {
		files, err := filepath.Glob(filepath.Join(stored, one.Name+"*.jsonl"))
		must.That(t, err == nil && len(files) != 0, "no stored record of %s in %s, %v", one.Name, stored, err)
		for _, file := range files {
			out = append(out, strings.TrimSuffix(filepath.Base(file), ".jsonl"))
		}
	}
	return out
}

func load(t *testing.T, name string) *record.Record {
	t.Helper()
	lines := must.Get(all.Instruments.Lines())(t)
	return must.Get(lines.Load(filepath.Join(stored, name+".jsonl")))(t)
}

// judged is a record and its judgement.
func judged(t *testing.T, rec *record.Record) instrument.Judged {
	t.Helper()
	j := must.Get(all.Instruments.Judge(rec))(t)
	return instrument.Judged{Record: rec, Judgement: j}
}

// everything judges all stored records.
func everything(t *testing.T) (out []instrument.Judged) {
	t.Helper()
	for _, name := range names(t) {
		out = append(out, judged(t, load(t, name)))
	}
	return out
}

// report judges a record and renders its report.
func report(t *testing.T, rec *record.Record, format string, o page.Options) string {
	t.Helper()
	return together(t, format, o, judged(t, rec))
}

func together(t *testing.T, format string, o page.Options, of ...instrument.Judged) string {
	t.Helper()
	var out bytes.Buffer
	must.OK(t, all.Instruments.Report(&out, format, of, o))
	return out.String()
}

// formsOf returns the formats of a record's instrument.
func formsOf(rec *record.Record) []string {
	forms := slices.Clone(page.Formats)
	for _, f := range export.Formats {
		forms = append(forms, f.Name)
	}
	if one, ok := all.Instruments.Of(rec.Header.Experiment); ok {
		for name := range one.Formats {
			forms = append(forms, name)
		}
	}
	slices.Sort(forms)
	// None of these targets is run by a kubelet.
	bare := slices.ContainsFunc(rec.Targets, func(t record.Target) bool { return t.Kind == "oci" })
	return slices.DeleteFunc(forms, func(name string) bool { return bare && name == "runtimeclass" })
}

// goldens lists the stored Markdown reports. Some records have more than the default
// report.
func goldens(t *testing.T) map[string]page.Options {
	t.Helper()
	files := must.Get(filepath.Glob("testdata/*.md"))(t)
	all := map[string]page.Options{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		all[name] = page.Options{Verbose: strings.HasSuffix(name, "-verbose")}
	}
	for _, name := range names(t) {
		all[name] = page.Options{}
	}
	return all
}

// storedOf returns the record of a golden report.
func storedOf(t *testing.T, name string) *record.Record {
	t.Helper()
	return load(t, strings.TrimSuffix(name, "-verbose"))
}

func TestStoredReportsGolden(t *testing.T) {
	t.Parallel()
	for name, o := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			golden.Same(t, "testdata/"+name+".md", report(t, storedOf(t, name), "md", o))
		})
	}
	// The text form has its own chart.
	golden.Same(t, "testdata/startup.txt", report(t, load(t, "startup"), "text", page.Options{Width: 120}))
}

func TestReportsNameEmulatedVMInTheFirstLine(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		rec := load(t, name)
		if len(rec.Targets) == 0 || strings.Contains(name, "import") {
			continue // nothing was run
		}
		target := rec.Targets[len(rec.Targets)-1].Name
		want := "EMULATED VM, no KVM: " + target
		head := judged(t, rec).Page(page.Options{}).Head
		check.That(t, !strings.Contains(head[0], "EMULATED"), "%s: %s", name, head[0])
		rec.Findings = append(rec.Findings, record.Finding{Type: record.TypeFinding, Code: finding.Emulated, Level: finding.Warning, Target: target, Message: "its VM is emulated: QEMU runs with accel=tcg"})
		p := judged(t, rec).Page(page.Options{})
		check.That(t, strings.HasPrefix(p.Head[0], want) &&
			strings.Contains(report(t, rec, "text", page.Options{}), "its VM is emulated: QEMU runs with accel=tcg"), "%s: %s", name, p.Head[0])
		rec.Findings, rec.Targets[len(rec.Targets)-1].Config = nil, map[string]string{"kata config": "/etc/k.toml", "emulated": "there is no /dev/kvm"}
		head = judged(t, rec).Page(page.Options{}).Head
		check.That(t, strings.HasPrefix(head[0], want), "%s, by its configuration: %s", name, head[0])
	}
}

// mostLines is the maximum number of terminal lines of a report on a few targets.
const mostLines = 40

func TestReportBeginsAndEndsWithItsSummary(t *testing.T) {
	t.Parallel()
	for name := range goldens(t) {
		if strings.Contains(name, "verbose") || strings.Contains(name, "import") {
			continue
		}
		p := judged(t, storedOf(t, name)).Page(page.Options{Width: 120})
		text := strings.TrimSuffix(report(t, storedOf(t, name), "text", page.Options{}), "\n")
		lines := strings.Split(text, "\n")
		if len(p.Answer) == 0 || !strings.Contains(text, "\n\n"+p.Answer[0]+"\n") {
			t.Errorf("%s: no sentence below the first lines:\n%s", name, text)
			continue
		}
		check.Equal(t, name+": the last line", lines[len(lines)-1], "→ "+p.Answer[0])
		if n := strings.Count(report(t, storedOf(t, name), "text", page.Options{Width: 120}), "\n"); n > mostLines {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}

// Text and Markdown draw charts differently, so charts are excluded.
func TestMarkdownHasEveryCellOfTheText(t *testing.T) {
	t.Parallel()
	cells := regexp.MustCompile(`\s{2,}`)
	for name, o := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			o.Width = 10_000
			shown := judged(t, storedOf(t, name)).Page(o)
			for i := range shown.Sections {
				shown.Sections[i].Picture, shown.Sections[i].Charts = nil, nil
			}
			texts := map[string]string{}
			o.Verbose = true // details of the text form
			for _, format := range []string{"text", "md"} {
				var out bytes.Buffer
				must.OK(t, page.Write(&out, format, []*page.Page{shown}, o))
				texts[format] = out.String()
			}
			md := strings.Join(strings.Fields(html.UnescapeString(strings.ReplaceAll(texts["md"], `\`, ""))), " ")
			for line := range strings.Lines(texts["text"]) {
				if strings.HasSuffix(line, ": --details\n") || strings.HasPrefix(line, "→ ") {
					continue // the hint on how to get the rest, and the repeated summary
				}
				for _, cell := range cells.Split(strings.TrimSpace(line), -1) {
					check.That(t, strings.Contains(md, cell), "the Markdown has no %q of %q", cell, line)
				}
			}
		})
	}
}

func TestTextFitsTheWidth(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		rec := load(t, name)
		for _, width := range []int{80, 100, 120, 200} {
			for line := range strings.Lines(report(t, rec, "text", page.Options{Width: width})) {
				// Commands for copying are not wrapped.
				if n := term.Width(strings.TrimSuffix(line, "\n")); n > width && !strings.Contains(line, "--") && !strings.Contains(line, "://") && !strings.Contains(line, "/") {
					t.Errorf("%s at %d: %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

func TestReportsAreDeterministic(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		rec := load(t, name)
		for _, format := range formsOf(rec) {
			first := report(t, rec, format, page.Options{Width: 100, Verbose: true})
			for range 3 {
				check.That(t, report(t, rec, format, page.Options{Width: 100, Verbose: true}) == first,
					"%s as %s is not deterministic", name, format)
			}
		}
	}
}

// harmful is hostile text for any field with external content.
const harmful = "x\x1b[31m<b>|`x`[link](u)\n# heading\u202e=1+1"

// poisoned returns a stored record with hostile text in every possible field.
func poisoned(t *testing.T, name string) *record.Record {
	t.Helper()
	rec := load(t, name)
	must.OK(t, hostile.Record(rec, harmful))
	return rec
}

func TestFormatsEscapeTerminalControls(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		rec := poisoned(t, name)
		for _, format := range formsOf(rec) {
			for _, o := range []page.Options{{Width: 80}, {Verbose: true}} {
				out := report(t, rec, format, o)
				if f, _ := export.FormatOf(format); f.Binary {
					continue // not printed to a terminal
				}
				obeyed := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) })
				must.That(t, obeyed < 0, "%s as %s: unescaped control character: %q", name, format, out[max(obeyed, 0):min(len(out), obeyed+20)])
				check.That(t, strings.Contains(out, "heading") || len(out) <= len(`{"results": []}`)+10,
					"%s as %s: no hostile text in the report, nothing was tested", name, format)
			}
		}
	}
}

func TestMarkdownEscapesForeignText(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		out, columns, fenced := report(t, poisoned(t, name), "md", page.Options{Verbose: true}), 0, false
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if fenced {
				continue // shown verbatim
			}
			for _, bad := range []string{"<b>", "`x`", "[link]", "x|"} {
				check.That(t, !strings.Contains(strings.ReplaceAll(line, `\[link\]`, ""), bad), "%s: unescaped %q: %s", name, bad, line)
			}
			check.That(t, !strings.HasPrefix(line, "# "), "%s: heading from the record: %s", name, line)
			if !strings.HasPrefix(line, "|") {
				columns = 0
				continue
			}
			n := strings.Count(line, "|") - strings.Count(line, `\|`)
			check.That(t, columns == 0 || n == columns, "%s: row of %d columns in a table of %d: %s", name, n, columns, line)
			columns = n
		}
	}
}

func TestHTMLHasEveryFigure(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		rec, o := poisoned(t, name), page.Options{Verbose: true}
		j := judged(t, rec)
		out, found := report(t, rec, "html", o), 0
		for _, s := range j.Page(o).Sections {
			if s.Table == nil {
				continue
			}
			for _, c := range slices.Concat(s.Table.Rows...) {
				if c.Figure == nil || !c.Figure.Known() || !strings.ContainsAny(c.Head, "0123456789") {
					continue
				}
				found++
				if v := strconv.FormatFloat(c.Figure.Value, 'g', -1, 64); !strings.Contains(out, `data-v="`+strings.ReplaceAll(v, "+", "&#43;")+`"`) {
					t.Errorf("%s has no %s of %s %v", name, v, c.Figure.Quantity, c.Figure.Labels)
				}
			}
		}
		check.That(t, found != 0, "%s has no figures, so nothing was tested", name)
	}
}

func TestMachineFormatsHaveEveryFigure(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		rec := poisoned(t, name)
		j := judged(t, rec)
		figures := j.Figures()
		var d struct {
			RunID   string            `json:"run_id"`
			Figures []json.RawMessage `json:"figures"`
		}
		if err := json.Unmarshal([]byte(report(t, rec, "json", page.Options{})), &d); err != nil || len(d.Figures) != len(figures) || d.RunID != rec.Header.RunID {
			t.Errorf("%s: %d of %d figures, run %q, %v", name, len(d.Figures), len(figures), d.RunID, err)
		}
		rows, err := csv.NewReader(strings.NewReader(report(t, rec, "csv", page.Options{}))).ReadAll()
		if err != nil || len(rows) <= len(figures) {
			t.Errorf("%s: %d rows of %d figures, %v", name, len(rows), len(figures), err)
			continue
		}
		for _, row := range rows[1:] {
			for i, cell := range row {
				if cell != "" && strings.ContainsAny(cell[:1], "=+@") {
					t.Errorf("%s: %s has a formula: %q", name, rows[0][i], cell)
				}
			}
		}
		for _, f := range figures {
			check.That(t, f.Experiment == rec.Header.Experiment && f.Quantity != "" && f.Unit != "", "%s: incomplete figure: %+v", name, f)
			for i, r := range f.Rounds {
				check.That(t, i == 0 || r.Round > f.Rounds[i-1].Round, "%s: %s %s: rounds are not in order: %v", name, f.Quantity, f.Labels, f.Rounds)
			}
		}
	}
}

func TestFigureNamesAreUnique(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		j := judged(t, load(t, name))
		seen := map[string]bool{}
		for _, f := range j.Figures() {
			called := f.Quantity + " " + f.Labels.String()
			check.That(t, !seen[called], "%s: duplicate figure %s", name, called)
			seen[called] = true
		}
	}
}

// full is a writer that returns ENOSPC.
type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		rec := load(t, name)
		j := judged(t, rec)
		for _, format := range formsOf(rec) {
			size := len(report(t, rec, format, page.Options{Width: 80}))
			for _, left := range []int{0, min(300, size-1), min(1000, size-1)} {
				err := all.Instruments.Report(&full{left}, format, []instrument.Judged{j}, page.Options{Width: 80})
				check.That(t, errors.Is(err, errFull), "%s as %s after %d bytes: got %v", name, format, left, err)
			}
		}
	}
}

func TestRecordsOfAllInstrumentsInOneReport(t *testing.T) {
	t.Parallel()
	records := everything(t)
	var documents []struct {
		Experiment string `json:"experiment"`
	}
	err := json.Unmarshal([]byte(together(t, "json", page.Options{}, records...)), &documents)
	check.That(t, err == nil && len(documents) == len(records), "%d documents of %d records, %v", len(documents), len(records), err)
}
