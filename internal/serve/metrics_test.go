package serve

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// part returns a change of a header. The start moves some days later. If plan is not
// empty, the record becomes a measure of that plan.
func part(plan string, measure, days int) func(*record.Header) {
	return func(h *record.Header) {
		h.Started = h.Started.AddDate(0, 0, days)
		if plan != "" {
			h.Of = &record.Part{Plan: plan, Measure: measure, Measures: 2}
		}
	}
}

func TestMetricsShowTheLatestEndedRunOfEachPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole(t, dir, "old.jsonl", "a", part("nightly", 1, 0))
	whole(t, dir, "new.jsonl", "b", part("nightly", 1, 1))
	whole(t, dir, "second.jsonl", "c", part("nightly", 2, 0))
	whole(t, dir, "alone.jsonl", "d", part("", 0, 0))
	whole(t, dir, "cold.jsonl", "i", func(h *record.Header) { h.Plan = slices.Concat([]byte(`{"cache":"cold",`), h.Plan[1:]) })
	for id, node := range map[string]string{"e": "n1", "f": "n2"} {
		w := begin(t, dir, node+".jsonl", id, part("fleet", 1, 0))
		w.round(0, &record.Failure{Kind: record.FailError})
		w.lines(record.End{Status: "done", Batches: 1}, record.Label{Key: "node", Value: node})
		must.OK(t, w.Close())
	}
	begin(t, dir, "going.jsonl", "g", part("nightly", 1, 2)).round(0, nil)
	must.Write(t, filepath.Join(dir, "garbled.jsonl"), "no")
	v := visit(t, dir)
	_, _, header := v.get("/metrics")
	check.That(t, strings.HasPrefix(header.Get("Content-Type"), "application/openmetrics-text; version=1.0.0"), "%v", header)
	body := v.says("/metrics", http.StatusOK,
		`tare_run_started_timestamp_seconds{tare_experiment="lifecycle",plan="nightly",measure="1"} 1.7724528e+09`,
		`tare_run_started_timestamp_seconds{tare_experiment="lifecycle",plan="nightly",measure="2"} 1.7723664e+09`,
		`tare_run_started_timestamp_seconds{tare_experiment="lifecycle"} 1.7723664e+09`,
		`tare_run_failed{tare_experiment="lifecycle",plan="fleet",measure="1",node="n1"} 1`,
		`tare_run_failed{tare_experiment="lifecycle",plan="fleet",measure="1",node="n2"} 1`,
		`tare_lifecycle_lane_latency_seconds{target="docker/runc",op="create",lanes="2",statistic="p50",plan="nightly",measure="1"} 0.04`,
		`tare_run_started_timestamp_seconds{tare_experiment="lifecycle",cache="cold"} 1.7723664e+09`,
		`tare_lifecycle_lane_latency_seconds{target="docker/runc",op="create",lanes="2",statistic="p50",cache="cold"} 0.04`,
		`tare_run="b"`, "# EOF\n",
	)
	for _, id := range []string{"a", "g"} {
		check.That(t, !strings.Contains(body, `tare_run="`+id+`"`), "metrics contain run %s", id)
	}
	// Only changed records are judged again.
	kept := v.site.metered["new.jsonl"].documents
	_, again, _ := v.get("/metrics")
	check.That(t, again == body && &v.site.metered["new.jsonl"].documents[0] == &kept[0], "an unchanged record was judged again")
	whole(t, dir, "newer.jsonl", "h", part("nightly", 1, 3))
	v.again()
	if _, body, _ := v.get("/metrics"); !strings.Contains(body, `tare_run="h"`) || strings.Contains(body, `tare_run="b"`) || len(v.site.metered) != 6 {
		t.Errorf("after a newer run, with %d files:\n%s", len(v.site.metered), body)
	}
}
