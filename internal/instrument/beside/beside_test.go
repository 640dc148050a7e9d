package beside_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/instrument/beside"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/hostile"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

func drawn(t *testing.T, file string, p *published.Report, format string) (string, []figure.Figure) {
	t.Helper()
	rec := must.Get(record.Load(filepath.Join("..", "..", "..", file)))(t)
	return drawnOf(t, rec, p, format)
}

func drawnOf(t *testing.T, rec *record.Record, p *published.Report, format string) (string, []figure.Figure) {
	t.Helper()
	j := must.Get(all.Instruments.Judge(rec))(t)
	o := page.Options{Width: 160}
	drawn, figures := beside.Page([]instrument.Judged{{Record: rec, Judgement: j}}, p, o)
	var out bytes.Buffer
	must.OK(t, page.Write(&out, format, []*page.Page{drawn}, o))
	return out.String(), figures
}

func load(t *testing.T, name string) *published.Report {
	t.Helper()
	return must.Get(published.Load(name))(t)
}

// Two of the compared records are publications themselves. Statements from their text are
// excluded; statements derived from their figures are not.
func TestEveryExperimentIsComparedWithItsPublication(t *testing.T) {
	for name, file := range map[string]string{
		"kata-boot-2018": "published/kata-boot-2018/record.jsonl", "kata-io": "published/kata-io/record.jsonl",
		"kata-overhead": "record/testdata/v1/overhead.jsonl", "kmesh-resource": "record/testdata/v1/bpf-memory.jsonl",
	} {
		got, figures := drawn(t, file, load(t, name), "text")
		got, findings, _ := strings.Cut(got, "\nrun ") // findings belong to their instrument
		check.That(t, strings.Contains(findings, "findings"), "%s: no own findings: %s", name, findings)
		golden.Same(t, "testdata/"+name+".txt", got)
		for _, f := range figures {
			check.That(t, f.Labels.Get("side") == "theirs" && f.Labels.Get("table") != "" && f.Unit != "" && f.Known(),
				"%s: incomplete figure: %+v", name, f)
		}
	}
	_, figures := drawn(t, "published/kata-io/record.jsonl", load(t, "kata-io"), "md")
	f := figure.Find(figures, "bandwidth", "table", "dd", "row", "count=10240000, by BusyBox", "column", "kata")
	check.That(t, f.Value == 128*1<<20 && f.Unit == figure.BytesPerSec, "%+v", f)
}

// tare does not count the services of a mesh, so any number matches. A load of one client
// is not comparable with a load of eight.
func TestMeshMemoryMatchesAnyNumberOfServices(t *testing.T) {
	rec := must.Get(record.Load("../../../record/testdata/v1/bpf-memory.jsonl"))(t)
	for i := range rec.Points {
		rec.Points[i].Datapath, rec.Points[i].Asked.Services = "kmesh", 0
	}
	got, _ := drawnOf(t, rec, load(t, "kmesh-resource"), "text")
	for _, want := range []string{`(?m)^  5.2 with or without load +23 MiB +[0-9.]+ MiB$`, `(?m)^  1 service +23 MiB +–$`, `(?m)^  100 threads +12.3 % +1 %$`, `ours: run \w+, kmesh programs`} {
		check.That(t, regexp.MustCompile(want).MatchString(got), "no %s in\n%s", want, got)
	}
}

// The control of a quota run has no CPU limit, like the published rows. It is only
// compared with rows that have the same number of connections.
func TestMeshControlMatchesOnlyItsOwnThreads(t *testing.T) {
	for connections, matches := range map[int]bool{1500: false, 3000: true} {
		rec := must.Get(record.Load("../../../record/testdata/v1/bpf-quota.jsonl"))(t)
		for i := range rec.Points {
			p := &rec.Points[i]
			p.Datapath, p.Asked.Connections, p.Asked.Instances = "kmesh", connections, 8
			if p.Asked.CPUs == 0 {
				p.Asked.Heavy = 0
			}
		}
		got, _ := drawnOf(t, rec, load(t, "kmesh-resource"), "text")
		row := regexp.MustCompile(`(?m)^  3000 threads .*$`).FindString(got)
		check.That(t, row != "" && strings.Count(row, " %") > 2 == matches, "%d connections: %q in\n%s", connections, row, got)
	}
}

func TestForeignTextIsEscaped(t *testing.T) {
	const harmful = "\x1b[2J\u202e<b>`x`"
	rec := must.Get(record.Load("../../../published/kata-io/record.jsonl"))(t)
	must.OK(t, hostile.Record(rec, harmful))
	p := load(t, "kata-io")
	table, claim := &p.Tables[1], &p.Claims[0]
	for _, text := range []*string{
		&p.Title, &p.Columns[0].Title, &table.Title, &table.Rows[0].Label, &table.Rows[0].Note,
		&claim.Says, &claim.But[0].What, &claim.But[0].Gives, &p.Notes[0], &p.Machines[0].Name,
	} {
		*text = harmful
	}
	for _, format := range []string{"text", "md"} {
		out, _ := drawnOf(t, rec, p, format)
		check.That(t, !strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }) && (format != "md" || !strings.Contains(out, "<b>")),
			"%s does not escape the text:\n%s", format, out)
	}
}
