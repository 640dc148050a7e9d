package export

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestSpreadsheetFormulasAreEscaped(t *testing.T) {
	for text, want := range map[string]string{"+1": "'+1", "-x": "'-x", "@a": "'@a", "=a": "'=a", "runc": "runc", "": "", "\t=a": `\t=a`} {
		check.Equal(t, text, harmless(text), want)
	}
}

// Keys come from a record, like values. JSON and Parquet keep them unchanged.
func TestKeysAreEscaped(t *testing.T) {
	t.Parallel()
	figures := []figure.Figure{{Experiment: "lifecycle", Quantity: "latency", Unit: figure.Nanoseconds, Better: figure.Less,
		Labels: figure.Of("=cmd|x", "a", "e\x1b[2Js", "b", "x y/z=1\n", "c"), Rounds: []figure.Round{{Value: 5}}, Estimate: figure.Exactly(5)}}
	rec := &record.Record{Header: record.Header{RunID: "a", Experiment: "lifecycle"}}
	for _, f := range Formats {
		var out bytes.Buffer
		must.OK(t, f.Write(&out, []Document{{Record: rec, Figures: figures}}))
		text := out.String()
		switch f.Name {
		case "csv":
			check.Contains(t, f.Name, text, `,'=cmd|x,e\x1b[2Js,x y/z=1\n,`)
		case "benchfmt":
			check.Contains(t, f.Name, text, `BenchmarkLifecycle/%3Dcmd%7Cx=a/e%5Cx1b%5B2Js=b/x%20y%2Fz%3D1%5Cn=c `)
		case "parquet":
			continue
		}
		check.Lacks(t, f.Name, text, "\x1b", "1\n=", ",=cmd")
	}
}

func TestColdCacheIsReadFromThePlan(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ plan, want string }{
		"cold":                               {`{"cache":"cold","rounds":3}`, "cold"},
		"warm":                               {`{"rounds":3}`, ""},
		"cache option of another instrument": {`{"cache":"direct"}`, ""},
		"invalid other options":              {`{"title":1,"seed":"x","rounds":{},"cache":"cold"}`, "cold"},
		"not a string":                       {`{"cache":{"cold":1}}`, ""},
		"old record without a plan":          {``, ""},
		"plan is not an object":              {`"cold"`, ""},
	} {
		got := (&record.Header{Plan: json.RawMessage(tt.plan)}).Planned().Cache
		check.That(t, string(got) == tt.want, "%s: got %q, want %q", name, got, tt.want)
	}
}

// A cold and a warm run with equal figures must be distinguishable in every format, so
// that a reader does not merge their series.
func TestEveryFormatDistinguishesColdAndWarmRuns(t *testing.T) {
	t.Parallel()
	figures := []figure.Figure{}
	for _, better := range []figure.Direction{figure.Less, figure.More} {
		figures = append(figures, figure.Figure{Experiment: "lifecycle", Quantity: "latency-" + string(better), Unit: figure.Nanoseconds, Better: better,
			Labels: figure.Of("target", "runc"), Rounds: []figure.Round{{Value: 5}}, Estimate: figure.Exactly(5)})
	}
	// The label of a cold run in each format, next to the value.
	says := map[string]string{
		"json":                  `"cache": "cold"`,
		"csv":                   "runc,,1,5,,,,,,,,,,,,,cold\n",
		"parquet":               "cold",
		"benchfmt":              "BenchmarkLifecycle/target=runc/cache=cold",
		"hyperfine":             `"command": "lifecycle latency-less target=runc cache=cold"`,
		"openmetrics":           `tare_lifecycle_latency_less_seconds{target="runc",cache="cold"}`,
		"otlp-metrics":          `"key": "cache"`,
		"junit":                 `name="target=runc cache=cold"`,
		"customSmallerIsBetter": "lifecycle latency-less target=runc cache=cold",
		"customBiggerIsBetter":  "lifecycle latency-more target=runc cache=cold",
		"bencher":               `"lifecycle target=runc cache=cold"`,
	}
	for _, f := range Formats {
		for _, cache := range []string{"cold", ""} {
			plan := must.JSON(t, map[string]string{"cache": cache})
			var out bytes.Buffer
			rec := &record.Record{Header: record.Header{RunID: "a", Experiment: "lifecycle", Plan: plan}}
			must.OK(t, f.Write(&out, []Document{{Record: rec, Figures: figures}}))
			has := strings.Contains(out.String(), says[f.Name])
			check.That(t, says[f.Name] != "" && has == (cache == "cold"), "%s of a run with cache %q:\n%s", f.Name, cache, &out)
		}
	}
}

func TestUnknownMachineHasNoLabels(t *testing.T) {
	t.Parallel()
	rec := &record.Record{Header: record.Header{RunID: "a", Experiment: "lifecycle"}}
	for name, write := range map[string]func(*strings.Builder) error{
		"benchfmt":    func(b *strings.Builder) error { return Benchfmt(b, []Document{{Record: rec}}) },
		"OpenMetrics": func(b *strings.Builder) error { return OpenMetrics(b, []Document{{Record: rec}}) },
		"header":      func(b *strings.Builder) error { return json.NewEncoder(b).Encode(headOf(rec)) },
	} {
		var text strings.Builder
		must.OK(t, write(&text))
		check.Lacks(t, name, text.String(), "linux", "0001", `"started"`, "-62135596800", "started_timestamp_seconds{")
	}
	rec.Header.Environment.Kernel = "6.1.0"
	check.Equal(t, "os.type", about(rec).Get("os.type"), "linux")
}

func TestUpperBoundIsNotAValueInAnyFormat(t *testing.T) {
	t.Parallel()
	// The text for an upper bound of 5 ns in each format; "" for none.
	says := map[string]string{
		"json": `"at_most": true`, "csv": "1,5,,,,,,,,,,,,at most", "parquet": "at most",
		"openmetrics":  `_upper_seconds{target="runc"} 5e-09`,
		"otlp-metrics": `"tare.app.first-answer.upper"`,
		"junit":        `<property name="hi" value="5">`,
	}
	for _, f := range Formats {
		for _, better := range []figure.Direction{figure.Less, figure.More} {
			for _, atMost := range []bool{true, false} {
				bound := figure.Figure{Experiment: "app", Quantity: "first-answer", Unit: figure.Nanoseconds, Better: better, Labels: figure.Of("target", "runc"),
					Rounds: []figure.Round{{Value: 5}}, Estimate: figure.Exactly(5), AtMost: atMost}
				if atMost {
					bound.Verdict = figure.AtMost
				}
				var out bytes.Buffer
				must.OK(t, f.Write(&out, []Document{{Record: &record.Record{Header: record.Header{RunID: "a", Experiment: "app"}}, Figures: []figure.Figure{bound}}}))
				text := out.String()
				if want := says[f.Name]; want != "" && strings.Contains(text, want) != atMost || want == "" && atMost && strings.Contains(text, "runc") {
					t.Errorf("%s of a bound (%v):\n%s", f.Name, atMost, text)
				}
				for _, value := range []string{`answer_seconds{`, `"tare.app.first-answer"`, `<property name="value"`, "<skipped"} {
					check.That(t, !atMost || !strings.Contains(text, value), "%s of a bound has %s:\n%s", f.Name, value, text)
				}
			}
		}
	}
}
