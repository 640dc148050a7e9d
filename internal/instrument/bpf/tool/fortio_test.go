package tool

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// add reads all streams of a text.
func add(g *Imported, file, label string, text []byte) bool {
	for _, stream := range transcript.Split(string(text)) {
		g.Add(file, label, stream)
	}
	return len(g.Points)+len(g.Findings) > 0
}

func TestFortioTextMatchesItsJSON(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("testdata/fortio.txt"))(t)
	g := &Imported{}
	twice := append(bytes.Clone(text), text...)
	must.That(t, add(g, "a.txt", "a", append([]byte("We ran it:\n"), twice...)) && len(g.Points) == 2 && len(g.Findings) == 0, "%+v %+v", g.Points, g.Findings)
	p, s := g.Points[1], g.Points[1].Sent
	check.Equal(t, "source", p.Source, "a.txt:19")
	check.That(t, p.Asked.URL == "http://198.18.0.1:8080/" && p.Asked.Connections == 8 && p.Asked.QPS == 8 && p.Ended-p.Begun == 5056753279, "%+v", p)
	check.That(t, s.Requests == 40 && s.Errors == 2 && s.Failures["status 503"] == 2 && s.P50 == 56_100_000 && s.P99 == 69_600_000 && s.P999 == 70_500_000 && s.Mean == 56_734_278 && s.Max == 70_600_000 && s.Sockets == 8 && s.Client == "fortio 1.60.3", "%+v", s)
	grpc := regexp.MustCompile("(?m)^Code .*$").ReplaceAll(text, nil)
	g = &Imported{}
	check.That(t, add(g, "a.txt", "a", grpc) && len(g.Points) == 0 && strings.Contains(g.Findings[0].Message, "loads of HTTP are taken"), "%+v %+v", g.Points, g.Findings)
}

func TestFortioLoadIsJudgedWithoutPrograms(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("testdata/fortio.json"))(t)
	g := &Imported{}
	must.That(t, add(g, "a.json", "a", text) && add(g, "b.json", "a", text) && add(g, "c.json", "c", text), "no loads were found")
	for other, by := range map[string]string{"rate": `"1000"`, "address": "198.18.0.7"} {
		apart := bytes.Replace(text, []byte(by), bytes.Replace([]byte(by), []byte("0"), []byte("1"), 1), 1)
		if add(g, other+".json", "a", apart); len(g.Points) != 2 || !strings.Contains(g.Findings[len(g.Findings)-1].Message, other+".json:1: the load was left out: its address, rate or kind of connections differs") {
			t.Errorf("different %s: %d points, %+v", other, len(g.Points), g.Findings)
		}
	}
	g.Close()
	plan := must.Get(g.Plan.MarshalJSON())(t)
	j, err := bpf.Judge(&record.Record{Header: record.Header{Experiment: bpf.Name, Plan: plan}, Points: g.Points, Findings: g.Findings, End: &record.End{Status: "done"}})
	must.OK(t, err)
	all := j.Figures()
	for quantity, want := range map[string]float64{"requests": 9990 / 10.005002501, "request-errors": 20} {
		f := figure.Find(all, quantity)
		check.That(t, f.Value >= want*0.999999 && f.Value <= want*1.000001, "%s is %v, want %v", quantity, f.Value, want)
	}
	f := figure.Find(all, "latency", "quantile", "p99")
	check.That(t, f.Value == 4e6 && len(f.Rounds) == 2, "p99 is %+v", f)
	said := ""
	for _, f := range j.Found {
		said += f.Message + "\n"
		check.That(t, f.Level != "error", "an error: %s", f.Message)
	}
	check.Contains(t, "no finding on the other label", said, "its label is c, and earlier loads have a")
}

func TestFortioJSONWithoutURLHasAnUnknownTarget(t *testing.T) {
	t.Parallel()
	text := append([]byte("We ran it:\n\n"), must.Get(os.ReadFile("testdata/fortio-without-url.json"))(t)...)
	g := &Imported{}
	must.That(t, add(g, "notes.md", "", append(text, "\nand wondered.\n"...)) && len(g.Points) == 1 && len(g.Findings) == 0, "%+v %+v", g.Points, g.Findings)
	check.Equal(t, "source", g.Points[0].Source, "notes.md:3")
	g.Close()
	j := must.Get(bpf.Judge(&record.Record{Header: record.Header{Experiment: bpf.Name, Plan: must.Get(g.Plan.MarshalJSON())(t)}, Points: g.Points, End: &record.End{Status: "done"}}))(t)
	check.Equal(t, "errors", figure.Find(j.Figures(), "request-errors").Value, 12)
	var out strings.Builder
	must.OK(t, page.Write(&out, "text", []*page.Page{j.Page(page.Options{Verbose: true})}, page.Options{Verbose: true}))
	check.That(t, regexp.MustCompile(`(?m)^ *asked +unknown$`).MatchString(out.String()), "the target is not unknown:\n%s", out.String())
}

func TestOtherTextsAreIgnored(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"": "", "{}": "", `{"RunType":"HTTP"}`: "",
		`{"RunType":"GRPC Ping","DurationHistogram":{}}`:      "loads of HTTP are taken",
		`{"RunType":"HTTP","DurationHistogram":{"Count":-1}}`: "no requests",
		`{"RunType":"HTTP","DurationHistogram":`:              "could not be read",
	} {
		g := &Imported{}
		any := add(g, "a.json", "", []byte(text))
		check.That(t, any == (says != "") && (says == "" || strings.Contains(g.Findings[0].Message, says)), "%q: %v, %+v", text, any, g.Findings)
	}
}
