package export

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestWhetherARunWasColdIsInItsPlan(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ plan, want string }{
		"cold":                             {`{"cache":"cold","rounds":3}`, "cold"},
		"warm":                             {`{"rounds":3}`, ""},
		"an option of something else":      {`{"cache":"direct"}`, ""},
		"beside what is of another form":   {`{"title":1,"seed":"x","rounds":{},"cache":"cold"}`, "cold"},
		"what is no word":                  {`{"cache":{"cold":1}}`, ""},
		"a record without a plan, of old":  {``, ""},
		"a record whose plan is something": {`"cold"`, ""},
	} {
		if got := (&record.Header{Plan: json.RawMessage(tt.plan)}).Planned().Cache; string(got) != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// Two files with the same figures, of a cold run and of a warm one, are put beside each
// other in every format, and whoever reads both must not take them for one series.
func TestEveryFormatTellsAColdRunFromAWarmOne(t *testing.T) {
	t.Parallel()
	figures := []figure.Figure{}
	for _, better := range []figure.Direction{figure.Less, figure.More} {
		figures = append(figures, figure.Figure{Experiment: "lifecycle", Quantity: "latency-" + string(better), Unit: figure.Nanoseconds, Better: better,
			Labels: figure.Of("target", "runc"), Rounds: []figure.Round{{Value: 5}}, Estimate: figure.Exactly(5)})
	}
	// What each says of the figure beside its value, of a cold run.
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
			plan, err := json.Marshal(map[string]string{"cache": cache})
			must.OK(t, err)
			var out bytes.Buffer
			rec := &record.Record{Header: record.Header{RunID: "a", Experiment: "lifecycle", Plan: plan}}
			must.OK(t, f.Write(&out, []Document{{Record: rec, Figures: figures}}))
			if has := strings.Contains(out.String(), says[f.Name]); says[f.Name] == "" || has != (cache == "cold") {
				t.Errorf("%s of a run with cache %q says\n%s", f.Name, cache, &out)
			}
		}
	}
}
