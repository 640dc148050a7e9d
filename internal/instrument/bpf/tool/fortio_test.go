package tool

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestALoadOfFortioIsJudgedWithoutPrograms(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("testdata/fortio.json"))(t)
	g := &Imported{}
	must.That(t, g.Add("a.json", "a", text) && g.Add("b.json", "a", text) && g.Add("c.json", "c", text), "nothing was found")
	for other, by := range map[string]string{"rate": `"1000"`, "address": "198.18.0.7"} {
		apart := bytes.Replace(text, []byte(by), bytes.Replace([]byte(by), []byte("0"), []byte("1"), 1), 1)
		if g.Add(other+".json", "a", apart); len(g.Points) != 2 || !strings.Contains(g.Findings[len(g.Findings)-1].Message, other+".json: the load was left out: it has another address, another rate") {
			t.Errorf("another %s: %d points, %+v", other, len(g.Points), g.Findings)
		}
	}
	g.Close()
	plan := must.Get(g.Plan.MarshalJSON())(t)
	j, err := bpf.Judge(&record.Record{Header: record.Header{Experiment: bpf.Name, Plan: plan}, Points: g.Points, Findings: g.Findings, End: &record.End{Status: "done"}})
	must.OK(t, err)
	all := j.Figures()
	for quantity, want := range map[string]float64{"requests": 9990 / 10.005002501, "request-errors": 20} {
		f := figure.Find(all, quantity)
		check.That(t, f.Value >= want*0.999999 && f.Value <= want*1.000001, "%s is %v, not %v", quantity, f.Value, want)
	}
	f := figure.Find(all, "latency", "quantile", "p99")
	check.That(t, f.Value == 4e6 && len(f.Rounds) == 2, "p99 is %+v", f)
	said := ""
	for _, f := range j.Found {
		said += f.Message + "\n"
		check.That(t, f.Level != "error", "an error: %s", f.Message)
	}
	check.Contains(t, "the other label is not told", said, "it is of c, and what came before of a")
}

func TestOtherTextsAreNoLoad(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"": "", "{}": "", `{"RunType":"HTTP"}`: "",
		`{"RunType":"GRPC Ping","DurationHistogram":{}}`:      "loads of HTTP are taken",
		`{"RunType":"HTTP","DurationHistogram":{"Count":-1}}`: "no requests",
		`{"RunType":"HTTP","DurationHistogram":`:              "could not be read",
	} {
		g := &Imported{}
		any := g.Add("a.json", "", []byte(text))
		check.That(t, any == (says != "") && (says == "" || strings.Contains(g.Findings[0].Message, says)), "%q: %v, %+v", text, any, g.Findings)
	}
}
