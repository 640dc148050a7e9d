package bpf

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// report renders the judgement of a record.
func (w *weighing) report(t *testing.T, format string, o page.Options) string {
	t.Helper()
	v := w.judge(t)
	var out bytes.Buffer
	var err error
	switch document := (export.Document{Record: &w.rec, Figures: v.Figures()}); format {
	case "csv":
		err = export.CSV(&out, []export.Document{document})
	case "json":
		err = export.JSON(&out, []export.Document{document})
	default:
		err = page.Write(&out, format, []*page.Page{v.Page(o)}, o)
	}
	must.OK(t, err)
	return out.String()
}

// sectionOf returns one section of a page in Markdown.
func sectionOf(t *testing.T, text, title string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "### "+title)
	must.That(t, ok, "no section %q in:\n%s", title, text)
	section, _, _ := strings.Cut(rest, "\n### ")
	return section
}

func TestEveryProgramFigureIsOnThePage(t *testing.T) {
	seen := map[string]figure.Unit{}
	for _, l := range []*weighing{meshLoads(8), openLoop(), quotaOf(1, shared), memoryGrows()} {
		for _, f := range l.judge(t).Figures() {
			seen[f.Quantity] = f.Unit
		}
	}
	want := map[string]figure.Unit{
		"requests": "1/s", "latency": "ns", "cpu": "cpus", "cpu-share": "ratio", "node-busy": "ratio", "limit-usage": "ratio", "limit-throttled": "ratio", "bpf-time-per-request": "ns",
		"requests-with-statistics-ratio": "ratio", "request-errors": "count", "requests-not-sent": "count",
		"program-runs": "1/s", "program-run-time": "ns", "program-cpu": "cpus", "program-runs-per-request": "ratio", "program-misses": "count",
		"quota-usage": "cpus", "quota-usage-by-tick": "cpus", "quota-bpf": "cpus", "quota-workload": "cpus", "quota-throttled": "ratio", "quota-requests": "1/s",
		"memory": "bytes", "program-memory": "bytes", "map-memory": "bytes",
		"program-instructions": "count", "program-machine-code": "bytes",
	}
	check.Equal(t, "seen", seen, want)
	client := figure.Find(meshLoads(8).judge(t).Figures(), "cpu", "connections", "3000", "role", "client")
	check.That(t, len(client.Rounds) == 8 && client.Value >= 5.359 && client.Value <= 5.361, "67 %% of 8 CPUs are %+v", client)
}

func TestReportText(t *testing.T) {
	unanswered := func(errors, unsent int64) *weighing {
		l := openLoop()
		l.rec.Points[0].Sent.Errors, l.rec.Points[0].Sent.Unsent = errors, unsent
		return l
	}
	anew := memoryGrows()
	for i := range anew.rec.Points {
		for j := range anew.rec.Points[i].Runs {
			anew.rec.Points[i].Runs[j].ID += uint32(100 * (i + 1)) // reloaded at each point
		}
	}
	for claim, c := range map[string]struct {
		of        *weighing
		section   string // section of the Markdown page; "" for the whole text
		says, not []string
	}{
		"shares of a core and of the node have columns": {meshLoads(8), "CPU by load", []string{
			"| connections | client core % | client node % | eBPF core % | eBPF node % |",
			"| 100 | 98.4 | 12.3 |", "| 3000 | 536 | 67.0 | 76.0 \\[76.0, 76.0\\] | 9.50 \\[9.50, 9.50\\] |"}, nil},
		"head explains the percentages": {meshLoads(2), "", []string{"12.99 % of a core is 1.62 % of the node"}, nil},
		"times have units":              {meshLoads(2), "", []string{"20.5 µs"}, []string{"ns each"}},
		"growing memory is described": {memoryGrows(), "",
			[]string{"101 KiB more with 1000 than with 1: 104 B each", "up to 2.00 KiB more under load", "(1000 in it)"}, nil},
		"constant memory is described":             {memoryStays(), "", []string{"the same with 1000 as with 1"}, []string{"what differs", "under load:"}},
		"memory of reloaded programs is not mixed": {anew, "eBPF by program", nil, []string{"MiB"}},
		"open loop with failures is not free of omission": {unanswered(12, 0), "",
			[]string{"12 requests failed and are in none of them"}, []string{"free of coordinated omission"}},
		"open loop with unsent requests is not free of omission": {unanswered(0, 1), "",
			[]string{"1 request had no answer in time or was never sent"}, []string{"free of coordinated omission"}},
		"open loop with all answers is free of omission": {unanswered(0, 0), "", []string{"free of coordinated omission"}, nil},
		"two rounds have no overhead":                    {meshLoads(2), "", []string{"with fewer than 3 rounds it is noise"}, []string{"0.98×"}},
		"three rounds have an overhead":                  {meshLoads(3), "", []string{"~ 0.98×"}, nil},
		"size of a program is its instructions, code and maps": {meshLoads(2), "programs: 3", []string{
			"| instructions | machine code | memory | in maps |", "| 412 | 2.26 KiB | 8.00 KiB | 22.1 MiB |", "| · | · | 28.0 KiB | 5.50 MiB |"}, nil},
	} {
		text := ""
		if c.section == "" {
			text = c.of.report(t, "text", page.Options{Width: 400, Verbose: true})
		} else {
			text = sectionOf(t, c.of.report(t, "md", page.Options{}), c.section)
		}
		has := func(want string) bool { return strings.Contains(text, want) }
		check.That(t, !slices.ContainsFunc(c.not, has) && !slices.ContainsFunc(c.says, func(want string) bool { return !has(want) }),
			"%s: want %q and not %q in:\n%s", claim, c.says, c.not, text)
	}
}

func TestEveryQuotaFormatHasTheVerdict(t *testing.T) {
	for word, points := range map[string][]held{"counts against the limit": shared, "is not limited": beside, "not decided": shared[:1]} {
		for _, format := range []string{"text", "md", "json", "csv"} {
			check.Contains(t, format, quotaOf(1, points, points, points).report(t, format, page.Options{Width: 200}), word)
		}
	}
}

func TestLargestDifferenceUnderLoadIsReported(t *testing.T) {
	for _, offs := range [][]int64{{0, -3}, {-3, 0}, {2, -3}, {-3, 2, 0}} {
		var rows []MemoryRow
		for _, off := range offs {
			rows = append(rows, MemoryRow{Programs: 10, Maps: 90, UnderLoad: 100 + off})
		}
		check.Equal(t, offs, underLoad(rows), "up to 3.00 B less under load")
	}
}

func TestPointsAreDistinguishedByClients(t *testing.T) {
	for instances, want := range map[int]string{0: "", 4: "4"} {
		w := newWeighing(DefaultsOfLoad())
		w.measure(0, record.Asked{Connections: 100, Instances: instances}, 1000)
		check.Equal(t, fmt.Sprintf("label of %d clients", instances), w.judge(t).Rows[0].All.Of("requests").Labels.Get("clients"), want)
	}
}

func TestReferenceDatapathOptionsAreRefusedForOtherPrograms(t *testing.T) {
	t.Parallel()
	chosen := func(b *Options) { b.Datapath, b.Kmesh, b.URL = "", true, "http://10.0.0.1/" }
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // "" for a valid plan
	}{
		"selected programs":                                 {chosen, ""},
		"selected programs, https":                          {func(b *Options) { chosen(b); b.URL = "https://10.0.0.1/" }, ""},
		"selected programs with services":                   {func(b *Options) { chosen(b); b.Services = []int{1, 100} }, "services: only tare's own programs have a map of services"},
		"selected programs with another number of services": {func(b *Options) { chosen(b); b.Services = []int{9} }, "services: only tare's own programs have a map of services"},
		"reference datapath with services":                  {func(b *Options) { b.Services = []int{1, 100} }, ""},
		"reference datapath with a server":                  {func(b *Options) { b.URL = "http://10.0.0.1:8080/" }, ""},
		"reference datapath, https":                         {func(b *Options) { b.URL = "https://10.0.0.1/" }, "url: tare's own programs lead services to it"},
		"reference datapath, HTTPS in capitals":             {func(b *Options) { b.URL = "HTTPS://10.0.0.1/" }, "url: "},
		"request timeout of a day":                          {func(b *Options) { b.Timeout = 24 * time.Hour }, "timeout: 24h"},
	} {
		b := DefaultsOfLoad()
		c.change(&b)
		err := option.Check(&b)
		check.That(t, (err == nil) == (c.want == "") && (err == nil || strings.HasPrefix(err.Error(), c.want)), "%s: %v", name, err)
	}
}

func TestParseCPULimits(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/limits.txt", func(_ *testing.T, text string) (any, error) {
		cpus, instances, err := parseCPUs(text)
		return fmt.Sprintf("%g CPUs of %d clients", cpus, instances), err
	})
}

func TestMeshReport(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"bpf-load":   {"% of one core at ", "eBPF core %", "eBPF node %", "0.69", "0.34"},
		"bpf-quota":  {"eBPF time ", "whose limit pays: eBPF time "},
		"bpf-memory": {"Memory: ", "with the most services", "both under load MiB", " under load"},
	} {
		rec := must.Get(record.Load("../../../record/testdata/v1/" + name + ".jsonl"))(t)
		var got strings.Builder
		must.OK(t, page.Write(&got, "md", []*page.Page{must.Get(Judge(rec))(t).Page(page.Options{})}, page.Options{}))
		for _, text := range want {
			check.Contains(t, name, got.String(), text)
		}
	}
}
