package proof

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

// docs/reports.md lists every table of the five reports and its place in tare's own
// document. The test runs each plan, scaled down and on available targets, and looks for
// each place in its document. Tables that need a missing kernel or runtime are checked in
// the documents of stored records.
func TestReportTablesAreAtTheirDocumentedPlaces(t *testing.T) {
	s := play(t)
	cri := []string{"--cri", "containerd=unix://" + s.containerd.Address, "--cri", "cri-o=unix://" + s.crio.Socket}
	docker := []string{"--docker-host", s.docker.Host}
	for name, c := range map[string]struct {
		targets []string // replace those of each measure that has some
		flags   []string
		stored  []string
		records int
	}{
		"isulad-2020":   {[]string{"[docker+cli/runc, podman/runc]", "[cri+containerd/runc, cri+cri-o/runc]", "[cri+containerd/runc, cri+cri-o/runc]"}, slices.Concat(docker, cri, []string{"--lanes", "1,2", "--rounds", "1", "--warmup", "0"}), nil, 3},
		"kata-overhead": {[]string{"[cri+containerd/runc, cri+cri-o/runc]"}, slices.Concat(cri, []string{"--scale", "0.001", "--rounds", "1", "--hold", "1100ms", "--interval", "50ms", "--settle", "100ms"}), []string{"record/testdata/v1/overhead.jsonl"}, 1},
		"kata-io": {[]string{"[host, runc]"}, []string{"--scale", "0.001", "--rounds", "1", "--ceiling", "0s", "--settle", "0s", "--drop", "files"},
			[]string{"published/kata-io/record.jsonl", "published/kata-io/sysbench.jsonl", "record/testdata/v1/storage.jsonl"}, 1},
		"kata-boot":      {[]string{"[docker/runc, docker/slow-runc]", "[runc, crun, floor, host]"}, slices.Concat(docker, []string{"--rounds", "1"}), []string{"published/kata-boot-2018/record.jsonl", "record/testdata/v1/startup-logs.jsonl"}, 2},
		"kmesh-resource": {nil, []string{"--time", "300ms", "--idle", "100ms", "--rounds", "1"}, nil, 6},
	} {
		t.Run(name, func(t *testing.T) {
			p := folders(t)
			plan := filepath.Join(p.dir, name+".yaml")
			must.Write(t, plan, onTargets(t, name, c.targets))
			args := append([]string{"run", plan, "-o", filepath.Join(p.dir, "document"), "--yes"}, c.flags...)
			documents := documented(t, p, args, c.records)
			for _, path := range c.stored {
				documents = append(documents, ofRecord(t, path)...)
			}
			rows := mapped(t, name)
			for _, row := range rows {
				row.look(t, documents)
			}
			checkTablesAreNamed(t, name, rows)
		})
	}
}

// onTargets returns a plan with other targets.
func onTargets(t *testing.T, name string, targets []string) string {
	t.Helper()
	text := must.Read(t, filepath.Join("../../../plans", name+".yaml"))
	n := 0
	own := regexp.MustCompile(`(?m)^( +)targets: \[.*\]$|^( +)subject: .*$`)
	plan := own.ReplaceAllStringFunc(text, func(line string) string {
		indent, _, names := strings.Cut(line, "targets: ")
		if !names {
			return "" // the subject of the plan
		}
		n++
		return indent + "targets: " + targets[n-1]
	})
	must.That(t, n == len(targets), "%d measures name targets, want %d", n, len(targets))
	return plan
}

// part is a section of a document with the names of its columns, rows and items.
type part struct {
	under, title string // the heading of its measure
	names        []string
	text         string
}

// documented runs a plan and reads its document.
func documented(t *testing.T, p *place, args []string, records int) []part {
	t.Helper()
	execute(t, args...)
	dir := args[slices.Index(args, "-o")+1]
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	must.That(t, err == nil && len(paths) == records, "records %v, %v", paths, err)
	for _, path := range paths {
		rec := must.Get(record.Load(path))(t)
		p.ids = append(p.ids, rec.Header.RunID)
		failedNone(t, rec)
	}
	text := must.Read(t, filepath.Join(dir, "report.md"))
	return parts(text)
}

// execute runs a tare command that must succeed.
func execute(t *testing.T, args ...string) {
	t.Helper()
	if code, out, said := invoke(t, args...); code != cli.ExitDone && code != cli.ExitFailed { // a check may fail in a phase this short
		t.Fatalf("%s: exit %d\n%s\n%s", args, code, out, said)
	}
}

func failedNone(t *testing.T, rec *record.Record) {
	t.Helper()
	j := must.Get(all.Instruments.Judge(rec))(t)
	if failed, total, found := j.Result(); failed > 0 || total == 0 || rec.End == nil || rec.End.Why != "rounds" {
		t.Errorf("%s: %d of %d failed, end %+v: %+v", rec.Header.Experiment, failed, total, rec.End, found)
	}
}

// ofRecord returns the document of a stored record.
func ofRecord(t *testing.T, path string) []part {
	t.Helper()
	dir := t.TempDir()
	execute(t, "report", filepath.Join("../../..", path), "-o", dir+"/document")
	text := must.Read(t, dir+"/document/report.md")
	return parts(text)
}

var (
	headings = regexp.MustCompile(`^(#+) (.*)$`)
	items    = regexp.MustCompile(`^ *- \*\*(.*?)\*\*`)
	escapes  = regexp.MustCompile(`\\(.)`)
)

// parts splits a Markdown document into parts.
func parts(text string) (out []part) {
	under, last := "", []string(nil)
	for line := range strings.Lines(text) {
		line = escapes.ReplaceAllString(strings.TrimSuffix(line, "\n"), "$1")
		if m := headings.FindStringSubmatch(line); m != nil {
			if m[1] == "##" {
				under = m[2]
			}
			out = append(out, part{under: under, title: m[2]})
		}
		if len(out) == 0 {
			continue
		}
		p := &out[len(out)-1]
		p.text += line + "\n"
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		switch m := items.FindStringSubmatch(line); {
		case m != nil:
			p.names = append(p.names, m[1])
		case !strings.HasPrefix(line, "|"):
		case strings.HasPrefix(line, "| ---"):
			p.names = append(p.names, last...) // column titles
		default:
			p.names = append(p.names, cells[:min(len(cells), 2)]...)
		}
		last = cells
	}
	return out
}

// mapRow is a row of the map: an item of the report and its place.
type mapRow struct {
	of      string
	measure string   // pattern of a heading; "": the document's front
	section string   // pattern of a title; "": none
	names   []string // patterns of columns, rows and items
	why     string   // reason if section is empty
}

var spans = regexp.MustCompile("`([^`]+)`")

// mapped returns the rows of the map for a plan.
func mapped(t *testing.T, plan string) (rows []mapRow) {
	t.Helper()
	text := must.Read(t, "../../../docs/reports.md")
	_, section, ok := strings.Cut(text, "\nPlan: [plans/"+plan+".yaml](")
	must.That(t, ok, "the map has no plan %s", plan)
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| of the report") {
			continue
		}
		must.That(t, len(cells) == 4, "%d cells: %s", len(cells), line)
		row := mapRow{of: cells[0], why: strings.TrimSpace(cells[3])}
		for i, to := range []*string{&row.measure, &row.section} {
			if m := spans.FindStringSubmatch(cells[i+1]); m != nil {
				*to = m[1]
			}
		}
		for _, m := range spans.FindAllStringSubmatch(cells[3], -1) {
			row.names = append(row.names, m[1])
		}
		rows = append(rows, row)
	}
	return rows
}

// matches reports whether a text matches a pattern; * matches anything.
func matches(pattern, text string) bool {
	words := strings.Split(pattern, "*")
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	return regexp.MustCompile("^" + strings.Join(words, ".*") + "$").MatchString(text)
}

// look checks that the place of a row is in a document. An unavailable item must have a
// reason.
func (r *mapRow) look(t *testing.T, all []part) {
	t.Helper()
	if r.section == "" {
		check.That(t, len(r.why) >= 20 && r.measure == "", "%s: neither a section nor a reason", r.of)
		return
	}
	lacks := []string{"the section"}
	for _, p := range all {
		if r.measure != "" && !matches(r.measure, p.under) || !matches(r.section, p.title) {
			continue
		}
		var missing []string
		for _, name := range r.names {
			if !slices.ContainsFunc(p.names, func(there string) bool { return matches(name, there) }) && !strings.Contains(p.text, name) {
				missing = append(missing, name)
			}
		}
		if missing == nil {
			return
		}
		if lacks[0] == "the section" || len(missing) < len(lacks) {
			lacks = missing
		}
	}
	t.Errorf("%s: %q, %q: missing %q", r.of, r.measure, r.section, lacks)
}

// checkTablesAreNamed compares the map with the stored tables of the report.
func checkTablesAreNamed(t *testing.T, plan string, rows []mapRow) {
	t.Helper()
	name := plan
	if name == "kata-boot" {
		name = "kata-boot-2018"
	}
	r := must.Get(published.Load("published/" + name))(t)
	for _, table := range r.Tables {
		check.That(t, slices.ContainsFunc(rows, func(row mapRow) bool { return strings.Contains(row.of, "`"+table.ID+"`") }),
			"the map has no table %s: %s", table.ID, table.Title)
	}
}
