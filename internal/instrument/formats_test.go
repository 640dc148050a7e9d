package instrument_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/santhosh-tekuri/jsonschema/v6"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// Every format is parsed by a third-party reader. The inputs are stored records with
// hostile text, and the values must match the figures.

// valued returns the figures of a record that have a value.
func valued(t *testing.T, rec *record.Record) (out []figure.Figure) {
	t.Helper()
	j := judged(t, rec)
	for _, f := range j.Figures() {
		if f.Estimate.Known() && !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) {
			out = append(out, f)
		}
	}
	return out
}

// near allows one rounding error from a unit conversion.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

// called returns the name of a figure in formats that use one name.
func called(f *figure.Figure) string {
	text := f.Experiment + " " + f.Quantity
	for _, l := range f.Labels {
		text += " " + l.Key + "=" + term.Clean(l.Value)
	}
	return text
}

// eachPoisoned runs a test for every stored record with hostile text.
func eachPoisoned(t *testing.T, format string, check func(t *testing.T, rec *record.Record, text string, figures []figure.Figure)) {
	t.Helper()
	t.Parallel()
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			rec := poisoned(t, name)
			figures := valued(t, rec)
			if !slices.Contains([]string{"json", "csv", "parquet", "junit"}, format) { // the other formats cannot express an upper bound
				figures = slices.DeleteFunc(figures, func(f figure.Figure) bool { return f.AtMost })
			}
			check(t, rec, report(t, rec, format, page.Options{}), figures)
		})
	}
}

func TestBenchstatReadsTheSameMedians(t *testing.T) {
	eachPoisoned(t, "benchfmt", func(t *testing.T, _ *record.Record, text string, figures []figure.Figure) {
		type of struct{ name, unit string }
		var order []of
		samples, factors := map[of][]float64{}, map[of]float64{}
		in := benchfmt.NewReader(strings.NewReader(text), "figures")
		for in.Scan() {
			switch r := in.Result().(type) {
			case *benchfmt.SyntaxError:
				t.Fatal(r)
			case *benchfmt.Result:
				v := r.Values[0]
				k := of{r.Name.String(), v.Unit}
				if samples[k] == nil {
					order = append(order, k)
				}
				samples[k] = append(samples[k], v.Value)
				if factors[k] = 1; v.OrigUnit != "" {
					factors[k] = 1e9
				}
			}
		}
		must.That(t, len(order) == len(figures), "%d benchmarks of %d figures", len(order), len(figures))
		for i, k := range order {
			f := &figures[i]
			s := benchmath.AssumeNothing.Summary(benchmath.NewSample(samples[k], &benchmath.DefaultThresholds), 0.95)
			got := s.Center * factors[k]
			check.That(t, near(got, f.Value), "%v is %v, the figure is %v", k, got, f.Value)
			_, parts := benchfmt.Name(k.name).Parts()
			for n, l := range f.Labels {
				key, value, _ := strings.Cut(string(parts[n]), "=")
				if value, err := url.PathUnescape(value); err != nil || key != "/"+l.Key || value != term.Clean(l.Value) {
					t.Errorf("%q is not %v, %v", parts[n], l, err)
				}
			}
			check.That(t, strings.HasPrefix(k.unit, f.Quantity) && len(parts) == len(f.Labels), "%v is not of %s %v", k, f.Quantity, f.Labels)
		}
	})
}

// seriesOf parses OpenMetrics text as Prometheus does and returns the series with their
// values.
func seriesOf(t *testing.T, text string) iter.Seq2[labels.Labels, float64] {
	return func(yield func(labels.Labels, float64) bool) {
		in := textparse.NewOpenMetricsParser([]byte(text), labels.NewSymbolTable())
		for {
			entry, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			must.OK(t, err)
			if entry != textparse.EntrySeries {
				continue
			}
			var series labels.Labels
			in.Labels(&series)
			if _, _, value := in.Series(); !yield(series, value) {
				return
			}
		}
	}
}

func TestPrometheusReadsEveryValueWithItsBounds(t *testing.T) {
	eachPoisoned(t, "openmetrics", func(t *testing.T, _ *record.Record, text string, figures []figure.Figure) {
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		check.That(t, err == nil && problems == nil, "promtool reports: %v, %v", problems, err) // the check of promtool check metrics
		got, seen := map[string][]float64{}, map[string]bool{}
		for series, value := range seriesOf(t, text) {
			check.That(t, !seen[series.String()], "duplicate %s", series)
			seen[series.String()] = true
			name := series.Get("__name__")
			got[name] = append(got[name], value)
		}
		per := map[figure.Unit]float64{figure.Nanoseconds: 1e9, figure.NsPerByte: 1e9}
		for _, f := range figures {
			name := "tare_" + f.Experiment + "_" + strings.ReplaceAll(f.Quantity, "-", "_")
			scale := max(per[f.Unit], 1)
			want := map[string]float64{name: f.Value / scale}
			if f.Bounded {
				want[name+"_lower"], want[name+"_upper"] = f.Lo/scale, f.Hi/scale
			}
			for start, v := range want {
				check.That(t, slices.ContainsFunc(sortedWith(got, start), func(g float64) bool { return near(g, v) }), "%s has no %v", start, v)
			}
		}
		check.Contains(t, "text", text, "tare_run_info{", "# EOF\n")
	})
}

// sortedWith returns the values of all figures with a given name, in any unit.
func sortedWith(values map[string][]float64, start string) (out []float64) {
	for name, v := range values {
		if strings.HasPrefix(name, start) {
			out = append(out, v...)
		}
	}
	return out
}

func TestHyperfineHasTheTimesOfRounds(t *testing.T) {
	eachPoisoned(t, "hyperfine", func(t *testing.T, _ *record.Record, text string, figures []figure.Figure) {
		var d struct {
			Results []struct {
				Command                string
				Mean, Median, Min, Max float64
				Stddev                 *float64
				Times                  []float64
				Parameters             map[string]string
			}
		}
		must.OK(t, json.Unmarshal([]byte(text), &d))
		figures = slices.DeleteFunc(figures, func(f figure.Figure) bool { return f.Unit != figure.Nanoseconds || len(f.Rounds) == 0 })
		must.That(t, len(d.Results) == len(figures), "%d results of %d figures", len(d.Results), len(figures))
		for i, r := range d.Results {
			f := &figures[i]
			if term.Clean(r.Command) != called(f) || len(r.Times) != len(f.Rounds) || len(r.Parameters) != len(f.Labels) || (r.Stddev == nil) != (len(r.Times) == 1) {
				t.Errorf("%+v is not %s", r, called(f))
				continue
			}
			for n, round := range f.Rounds {
				check.That(t, near(r.Times[n], round.Value/1e9) && r.Times[n] >= r.Min && r.Times[n] <= r.Max,
					"%s: time %d is %v", r.Command, n, r.Times[n])
			}
		}
	})
}

func TestOpenTelemetryReadsEveryValueWithItsEnvironment(t *testing.T) {
	eachPoisoned(t, "otlp-metrics", func(t *testing.T, rec *record.Record, text string, figures []figure.Figure) {
		var d metrics.MetricsData
		must.OK(t, protojson.Unmarshal([]byte(text), &d)) // rejects unknown fields
		resource := map[string]string{}
		for _, a := range d.ResourceMetrics[0].Resource.Attributes {
			resource[a.Key] = a.Value.GetStringValue()
		}
		if env := rec.Header.Environment; resource["tare.run"] != rec.Header.RunID || resource["environment.kernel"] != env.Kernel || resource["environment.memory"] != fmt.Sprint(env.Memory) {
			t.Errorf("the resource is %v", resource)
		}
		points := map[string]int{}
		for _, m := range d.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			points[m.Name] += len(m.GetGauge().DataPoints)
		}
		for _, f := range figures {
			points["tare."+f.Experiment+"."+f.Quantity]--
		}
		for name, n := range points {
			check.That(t, n == 0 || strings.Count(name, ".") != 2, "%s has %+d points", name, n)
		}
	})
}

func TestJUnitFailsLikeTheExitStatus(t *testing.T) {
	eachPoisoned(t, "junit", func(t *testing.T, rec *record.Record, text string, figures []figure.Figure) {
		var d struct {
			Suites []struct {
				Tests    int `xml:"tests,attr"`
				Failures int `xml:"failures,attr"`
				Errors   int `xml:"errors,attr"`
				Cases    []struct {
					Name    string    `xml:"name,attr"`
					Failure *struct{} `xml:"failure"`
					Error   *struct{} `xml:"error"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		err := xml.Unmarshal([]byte(text), &d)
		must.That(t, err == nil && len(d.Suites) == 1, "%v", err)
		s, failures, broken := d.Suites[0], 0, 0
		for _, c := range s.Cases {
			if c.Failure != nil {
				failures++
			}
			if c.Error != nil {
				broken++
			}
		}
		j := judged(t, rec)
		failed, _, found := j.Result()
		bad := failed > 0 || slices.ContainsFunc(found, func(f record.Finding) bool { return f.Level == "error" })
		check.That(t, s.Tests == len(s.Cases) && s.Failures == failures && s.Errors == broken && len(s.Cases) > len(figures),
			"%d tests, %d failures, %d errors of %d cases", s.Tests, s.Failures, s.Errors, len(s.Cases))
		if cut := rec.End == nil || rec.End.Status != "done"; bad != (failures > 0) || !cut && broken > 0 {
			t.Errorf("%d failed, findings %v, but %d failures, %d errors", failed, found, failures, broken)
		}
	})
}

func TestBenchmarkFormatsHaveEveryFigureOnce(t *testing.T) {
	for word, better := range map[string]figure.Direction{"customSmallerIsBetter": figure.Less, "customBiggerIsBetter": figure.More} {
		t.Run(word, func(t *testing.T) {
			eachPoisoned(t, word, func(t *testing.T, _ *record.Record, text string, figures []figure.Figure) {
				var entries []struct {
					Name, Unit string
					Value      float64
				}
				must.OK(t, json.Unmarshal([]byte(text), &entries))
				figures = slices.DeleteFunc(figures, func(f figure.Figure) bool { return f.Better != better })
				must.That(t, len(entries) == len(figures), "%d entries of %d figures", len(entries), len(figures))
				for i, e := range entries {
					f := &figures[i]
					check.That(t, e.Name == called(f) && e.Unit == string(f.Unit) && e.Value == f.Value, "%+v is not %s", e, called(f))
				}
			})
		})
	}
	t.Run("bencher", func(t *testing.T) {
		eachPoisoned(t, "bencher", func(t *testing.T, _ *record.Record, text string, figures []figure.Figure) {
			var d map[string]map[string]struct {
				Value float64
				Lower *float64 `json:"lower_value"`
				Upper *float64 `json:"upper_value"`
			}
			must.OK(t, json.Unmarshal([]byte(text), &d))
			n := 0
			for _, measures := range d {
				n += len(measures)
			}
			check.Equal(t, "values", n, len(figures))
			for _, f := range figures {
				name := strings.Replace(called(&f), " "+f.Quantity, "", 1)
				if !slices.ContainsFunc([]string{f.Quantity, f.Quantity + "-" + string(f.Unit)}, func(m string) bool { return d[name][m].Value == f.Value }) && f.Unit != figure.PerSecond && f.Unit != figure.BytesPerSec && f.Unit != figure.NsPerByte {
					t.Errorf("no %s of %v in %v", f.Quantity, f.Value, d[name])
				}
			}
		})
	})
}

// inParquet is a row with the columns in docs/formats.md.
type inParquet struct {
	Run      *string  `parquet:"run_id,optional"`
	Quantity *string  `parquet:"quantity,optional"`
	Unit     *string  `parquet:"unit,optional"`
	Target   *string  `parquet:"target,optional"`
	Value    *float64 `parquet:"value,optional"`
	Lo       *float64 `parquet:"lo,optional"`
	N        *int64   `parquet:"n,optional"`
	Round    *int64   `parquet:"round,optional"`
	At       *float64 `parquet:"at_s,optional"`
	Started  *int64   `parquet:"started,optional"`
}

func TestParquetHasEveryFigureRoundAndSample(t *testing.T) {
	eachPoisoned(t, "parquet", func(t *testing.T, rec *record.Record, text string, _ []figure.Figure) {
		rows := must.Get(parquet.Read[inParquet](bytes.NewReader([]byte(text)), int64(len(text))))(t)
		j := judged(t, rec)
		next := func() inParquet {
			must.That(t, len(rows) != 0, "too few rows")
			r := rows[0]
			rows = rows[1:]
			return r
		}
		for _, f := range j.Figures() {
			r := next()
			must.That(t, *r.Run == rec.Header.RunID && *r.Quantity == f.Quantity && *r.Unit == string(f.Unit) && r.Round == nil && r.At == nil &&
				*r.Started == rec.Header.Started.UnixMicro(), "%+v is not %s", r, called(&f))
			if known := f.Estimate.Known(); known != (r.Value != nil) || known && (*r.Value != f.Value || *r.N != int64(f.N)) || (f.Known() && f.Bounded) != (r.Lo != nil) {
				t.Errorf("%s is %v", called(&f), r.Value)
			}
			want := f.Labels.Get("target")
			check.That(t, want == "" || r.Target != nil && *r.Target == want, "%s has labels %v", called(&f), r.Target)
			for _, one := range f.Rounds {
				r := next()
				check.That(t, *r.Round == int64(one.Round) && *r.Value == one.Value, "%s: round %d is %v", called(&f), *r.Round, *r.Value)
			}
			for i := range samplesOf(&f) {
				r := next()
				check.That(t, *r.At == f.Series.Times[i] && *r.Value == f.Series.Values[i], "%s: at %v is %v", called(&f), *r.At, *r.Value)
			}
		}
		check.That(t, len(rows) == 0, "%d more rows", len(rows))
	})
}

func samplesOf(f *figure.Figure) []float64 {
	if f.Series == nil {
		return nil
	}
	return f.Series.Values
}

func TestInstrumentFormatsAreNotHidden(t *testing.T) {
	t.Parallel()
	for _, one := range all.Instruments {
		for name := range one.Formats {
			_, taken := export.FormatOf(name)
			check.That(t, !taken, "%s hides the common format %s", one.Name, name)
		}
	}
}

func TestJSONFiguresMatchTheirSchema(t *testing.T) {
	t.Parallel()
	text := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(export.Schema)))(t)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	must.OK(t, c.AddResource("figures.schema.json", text))
	schema := must.Get(c.Compile("figures.schema.json"))(t)
	valid := func(what, text string) {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = schema.Validate(value)
		}
		check.That(t, err == nil, "%s: %v", what, err)
	}
	records := everything(t)
	for _, one := range records {
		valid(one.Record.Header.RunID, together(t, "json", page.Options{}, one))
	}
	out := together(t, "json", page.Options{}, records...)
	valid("together", out)
	wrong := strings.Replace(out, `"bounded": true`, `"bounded": false`, 1)
	check.That(t, wrong != out && schema.Validate(decoded(jsonschema.UnmarshalJSON(strings.NewReader(wrong)))) != nil, "an invalid interval is accepted")
}

func decoded(value any, err error) any {
	if err != nil {
		panic(err)
	}
	return value
}
