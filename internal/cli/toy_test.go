package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// echo is a complete instrument. It has options, a record line, a judgement with figures, a
// page, and a run.
var echo = instrument.Instrument{
	Name: "echo", Help: "How long an answer takes.", Short: "Time answers", Long: "Time answers.", Example: "  tare echo --shouts 2",
	New:   func() option.Options { return &echoOptions{Shouts: 3, Word: "hello"} },
	Lines: []record.LineType{record.Own[answer]("answer")},
	Judge: instrument.Judging(judgeEcho),
}

type echoOptions struct {
	Shouts int
	Word   string
}

func (o *echoOptions) Declare(s *option.Set) {
	option.Int(s, &o.Shouts, "shouts", "how often is shouted", option.Bounds(1, 100, "a number of shouts"))
	option.Text(s, &o.Word, "word", "what is shouted")
}

func (o echoOptions) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

type answer struct {
	Type  record.Type `json:"type"`
	Round int         `json:"round"`
	Took  int64       `json:"took"`
}

type echoes struct {
	rec     *record.Record
	answers []*answer
}

func judgeEcho(rec *record.Record) (*echoes, error) {
	return &echoes{rec, record.All[answer](rec)}, nil
}

func (e *echoes) Figures() []figure.Figure {
	latency := figure.Figure{Experiment: "echo", Quantity: "latency", Unit: figure.Nanoseconds, Better: figure.Less, Total: len(e.answers)}
	for _, a := range e.answers {
		latency.Rounds = append(latency.Rounds, figure.Round{Round: a.Round, Value: float64(a.Took)})
		latency.Estimate = figure.Estimate{N: len(e.answers), Value: float64(a.Took)}
	}
	return []figure.Figure{latency, {Experiment: "echo", Quantity: "answers", Unit: figure.Count, Estimate: figure.Estimate{N: 1, Value: float64(len(e.answers))}}}
}

func (e *echoes) Page(page.Options) *page.Page {
	p, figures := page.New("", "echo"), e.Figures()
	table := page.Names("figure")
	for _, f := range figures {
		table.Row(page.Words(f.Quantity))
	}
	table.Add("value", page.Each(figures, page.Median))
	p.Add(&page.Section{Title: "Answers", Table: table})
	return p
}

func (e *echoes) Result() (failed, total int, findings []record.Finding) {
	return 0, len(e.answers), e.rec.Findings
}

// nobody is a session without targets.
type nobody struct{}

func (nobody) Close(context.Context) error { return nil }

func shout(ctx context.Context, o *echoOptions, weigh perform.Weigh) error {
	return weigh(ctx, &perform.Measure{
		Run: func(s *perform.Session) (*record.Record, instrument.Judgement, error) {
			r, err := run.Begin[nobody](s.Options, "echo", o, s.Targets)
			var answers []*answer
			for i := 0; i < o.Shouts && err == nil; i++ {
				answers = append(answers, &answer{Round: i, Took: int64(1000 * len(o.Word))})
				err = r.Line(answers[i])
			}
			return perform.Outcome(run.Finish(ctx, r, "rounds", err, func(rec *record.Record) (*echoes, error) { return &echoes{rec, answers}, nil }))
		},
	})
}

// A new instrument needs one line in each of the two tables. It supports everything that
// other instruments do.
func TestInstrumentNeedsOneLinePerTable(t *testing.T) {
	dir := place(t)
	with := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		c := newApp(Streams{Out: &out, Err: &errs}, append(slices.Clone(all.Instruments), echo), map[string]performer{"echo": {perform: perform.By(shout)}}).command(nil)
		c.SetArgs(args)
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, &errs)
		}
		return out.String()
	}
	shows := func(got string, want ...string) {
		t.Helper()
		check.Contains(t, "got", got, want...)
	}
	shows(with("--help"), "  echo        Time answers")
	shows(with("echo", "--help"), "--shouts int", "how often is shouted (default 3)", "--word string", "--format string")
	shows(with("schema"), `"echo": {`, `"description": "How long an answer takes."`, `"shouts": {`)

	first, second := filepath.Join(dir, "first.jsonl"), filepath.Join(dir, "second.jsonl.zst")
	shows(with("echo", "--shouts", "2", "--word", "hi", "-o", first), "Answers", "latency", "answers")
	plan := filepath.Join(dir, "plan.yaml")
	must.Write(t, plan, "version: 1\nmeasure:\n- echo: {shouts: 4}\n")
	shows(with("run", plan, "--word", "hi", "-o", second), "Answers")

	says := map[string]string{
		"json": `"quantity": "answers"`, "csv": "echo,answers,count", "parquet": "PAR1", "benchfmt": "BenchmarkEcho 1 2000 latency-ns", "hyperfine": `"command": "echo latency"`,
		"openmetrics": "tare_echo_latency_seconds{} 2e-06", "otlp-metrics": `"name": "tare.echo.latency"`, "junit": `classname="echo.latency"`,
		"customSmallerIsBetter": `"name": "echo latency"`, "customBiggerIsBetter": "[]", "bencher": `"answers-count"`,
	}
	for _, f := range export.Formats {
		for _, args := range [][]string{{"report", first}, {"echo", "--word", "hi", "-o", filepath.Join(dir, f.Name+".jsonl")}} {
			if got := with(append(args, "--format", f.Name)...); says[f.Name] == "" || !strings.Contains(got, says[f.Name]) {
				t.Errorf("%v as %s: no %q in\n%s", args, f.Name, says[f.Name], got)
			}
		}
	}
	for path, rounds := range map[string]int{first: 2, second: 4} {
		text := with("report", path)
		shows(text, "latency", "2.00 µs", strconv.Itoa(rounds))
		shows(with("report", path, "--format", "md"), "## Answers", "| latency")
		shows(with("report", path, "--format", "csv"), "echo", "answers", "count")
		var d struct {
			Experiment string
			Figures    []struct {
				Quantity string
				Rounds   []figure.Round
			}
		}
		if err := json.Unmarshal([]byte(with("report", path, "--format", "json")), &d); err != nil || d.Experiment != "echo" || len(d.Figures) != 2 || len(d.Figures[0].Rounds) != rounds {
			t.Errorf("%s: %+v, %v", path, d, err)
		}
	}
}

func TestEveryInstrumentHasARunFunction(t *testing.T) {
	t.Parallel()
	for _, one := range all.Instruments {
		if performers[one.Name].perform == nil {
			t.Errorf("no run function for %s", one.Name)
		}
	}
	check.Equal(t, "performed measures", len(performers), len(all.Instruments))
}
