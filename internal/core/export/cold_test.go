package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

func TestFormatsTellAColdRunFromAWarmOne(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ plan, want string }{
		"cold":                             {`{"cache":"cold","rounds":3}`, "cold"},
		"warm":                             {`{"rounds":3}`, ""},
		"an option of something else":      {`{"cache":"direct"}`, ""},
		"what is no word":                  {`{"cache":{"cold":1}}`, ""},
		"a record without a plan, of old":  {``, ""},
		"a record whose plan is something": {`"cold"`, ""},
	} {
		rec := &record.Record{Header: record.Header{RunID: "a", Experiment: "lifecycle", Plan: json.RawMessage(tt.plan)}}
		warm := &record.Record{Header: record.Header{RunID: "b", Experiment: "lifecycle", Plan: json.RawMessage(`{}`)}}
		figures := []figure.Figure{{Experiment: "lifecycle", Quantity: "latency", Unit: figure.Nanoseconds, Better: figure.Less, Labels: figure.Of("target", "runc"), Estimate: figure.Exactly(5)}}
		all := []Document{{Record: rec, Figures: figures}, {Record: warm, Figures: figures}}

		var out bytes.Buffer
		if err := Benchfmt(&out, all); err != nil {
			t.Fatal(err)
		}
		var got []string
		for r := benchfmt.NewReader(&out, "cold.txt"); r.Scan(); {
			if result, ok := r.Result().(*benchfmt.Result); ok {
				got = append(got, result.GetConfig("cache"))
			}
		}
		if want := []string{tt.want, ""}; fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 2 {
			t.Errorf("%s: benchstat reads %q, want %q", name, got, want)
		}

		out.Reset()
		if err := OpenMetrics(&out, all); err != nil {
			t.Fatal(err)
		}
		want := 0
		if tt.want != "" {
			want = 1
		}
		if text := out.String(); strings.Count(text, "tare_cache=") != want || strings.Count(text, `tare_cache="cold"`) != want {
			t.Errorf("%s: it says\n%s", name, text)
		}
		cells := tableOf(all)
		for i, want := range []any{text(tt.want), nil} {
			if last := len(cells.columns) - 1; cells.columns[last].name != "page_cache" || cells.rows[i].cells[last] != want {
				t.Errorf("%s: row %d has %v of %s, want %v", name, i, cells.rows[i].cells[last], cells.columns[last].name, want)
			}
		}
	}
}
