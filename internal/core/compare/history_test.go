package compare

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// past returns runs of n commits, one hour apart. each modifies a run and returns its
// latency.
func past(n int, each func(i int, r *Run) float64) []Run {
	noise := rand.New(rand.NewPCG(17, 3))
	out := make([]Run, n)
	for i := range out {
		out[i] = machine(fmt.Sprint("r", i), map[string]float64{"runc": 1}, nil)
		r := &out[i]
		r.Header.Started = time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC)
		r.Labels = figure.Of("commit", fmt.Sprint(i))
		level := each(i, r) * (1 + 0.01*noise.NormFloat64())
		for k := range r.Figures {
			r.Figures[k].Estimate = figure.Exactly(100 * level)
		}
	}
	return out
}

// latencies returns the latency history of the runs.
func latencies(t *testing.T, runs []Run) *History {
	t.Helper()
	h := must.Get(NewHistory(runs, "quantity:latency", ""))(t)
	return h
}

func step(i int, at int) float64 {
	if i >= at {
		return 1.1
	}
	return 1
}

func TestHistoryFindsChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		runs   []Run
		filter string
		since  string
		series int
		worse  bool
		says   []string
	}{
		{"no change", past(40, func(int, *Run) float64 { return 1 }), "*", "", 2, false, []string{"No change was detected in 2 series over 40 points; the most stable series would have shown a change of ", "changes: none", "40 runs of 40 points", "· 2 series ·", "ordered by label commit"}},
		{"too few points are reported", past(7, func(i int, _ *Run) float64 { return step(i, 3) }), "*", "", 2, false, []string{"No change is detectable in 7 runs of 7 points: ", "changes: too few points to detect any, however large", "each of 2 series needs 15 points", "a single series needs 14: select fewer with --filter"}},
		{"increase of a latency is worse", past(40, func(i int, _ *Run) float64 { return step(i, 25) }), "quantity:latency", "", 1, true, []string{"run of runc became worse between 24 and 25: 100 ns to 110 ns (+9.7 %", "24 and 25", "worse p<0.001", "│"}},
		{"increase of a rate is better", past(40, func(i int, _ *Run) float64 { return step(i, 25) }), "quantity:requests", "", 1, false, []string{"run of runc became better between 24 and 25", "better"}},
		{"increase from zero is worse without a percentage", past(40, func(i int, _ *Run) float64 { return float64(max(i-24, 0) / max(i-24, 1)) }), "quantity:latency", "", 1, true, []string{"24 and 25", "worse p<0.001", "number of series (1)"}},
		{"three points are not searched", past(3, func(i int, _ *Run) float64 { return 1 }), "quantity:latency", "", 1, false, []string{"no series has the"}},
		{"change before --since does not count", past(40, func(i int, _ *Run) float64 { return step(i, 25) }), "quantity:latency", "30", 1, false, []string{"24 and 25", "exit status covers changes at 30 and later"}},
		{"commit hashes are ordered by time", past(40, func(i int, r *Run) float64 {
			r.Labels = figure.Of("commit", fmt.Sprintf("%xa", i*7919%40))
			return step(i, 25)
		}), "quantity:latency", "", 1, true, []string{"ordered by time, since label commit is not always a number"}},
		{"runs of a commit are one point", past(80, func(i int, r *Run) float64 {
			r.Labels = figure.Of("commit", fmt.Sprint(i/2))
			return step(i, 50)
		}), "quantity:latency", "", 1, true, []string{"80 runs of 40 points", "24 and 25"}},
		{"commit numbers are the order, regardless of time", past(40, func(i int, r *Run) float64 {
			r.Header.Started = r.Header.Started.Add(-2 * time.Duration(i) * time.Hour)
			return step(i, 25)
		}), "quantity:latency", "", 1, true, []string{"24 and 25", "worse"}},
		{"versions may change with the commit", past(40, func(i int, r *Run) float64 {
			r.Targets[0].Version = fmt.Sprint(i)
			return step(i, 25)
		}), "quantity:latency", "", 1, true, []string{"24 and 25"}},
		{"versions without commits are separate series", past(40, func(i int, r *Run) float64 {
			r.Labels, r.Targets[0].Version = nil, fmt.Sprint(i/25)
			return step(i, 25)
		}), "quantity:latency", "", 2, false, []string{"changes: none", "unlike records", "runc version 1", "ordered by time, since some records have no label commit"}},
	} {
		h, err := NewHistory(tt.runs, tt.filter, tt.since)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		text := draw(t, h.Page())
		if len(h.Series) != tt.series || h.Worse() != tt.worse {
			t.Errorf("%s: %d series, worse: %v\n%s", tt.name, len(h.Series), h.Worse(), text)
		}
		check.Contains(t, fmt.Sprintf("%s: page", tt.name), text, tt.says...)
	}
}

func TestRunWithoutDateIsNotSortedByTime(t *testing.T) {
	t.Parallel()
	for by, tt := range map[string]struct {
		commits bool
		undated int
		runs    int // 0 if refused
		says    string
	}{
		"time":                    {false, 2, 18, "18 runs of 18 points · 2 series · ordered by time, since some records have no label commit\nleft out for lack of a date: r3, r4; give every record a number"},
		"neither date nor number": {false, 20, 0, "no run has a date to sort by: give every record a number"},
		"commit numbers":          {true, 2, 20, "20 runs of 20 points"},
		"time, all dated":         {false, 0, 20, "20 runs of 20 points"},
	} {
		h, err := NewHistory(past(20, func(i int, r *Run) float64 {
			if !tt.commits {
				r.Labels = nil
			}
			if tt.undated == 20 || i >= 3 && i < 3+tt.undated {
				r.Header.Started, r.Header.RunID = time.Time{}, fmt.Sprint("r", i)
			}
			return 1
		}), "*", "")
		if err != nil {
			if tt.runs > 0 || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("by %s: %v", by, err)
			}
			continue
		}
		left := 20 - tt.runs
		if text := draw(t, h.Page()); h.runs != tt.runs || !strings.Contains(text, tt.says) || strings.Contains(text, "left out") != (left > 0) || len(h.Findings()) > 0 != (left > 0) {
			t.Errorf("by %s: %d runs, findings %v\n%s", by, h.runs, h.Findings(), text)
		}
	}
}

func TestDifferentRecordsAreSeparateSeries(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(*Run){
		"machine":       func(r *Run) { r.Header.Environment.CPUModel = "Neoverse" },
		"kernel":        func(r *Run) { r.Header.Environment.Kernel = "6.18.0" },
		"system":        func(r *Run) { r.Header.Environment.Governor = "powersave" },
		"tare":          func(r *Run) { r.Header.Version = "v2" },
		"configuration": func(r *Run) { r.Targets[0].Config = map[string]string{"systemd_cgroup": "true"} },
		"definition":    func(r *Run) { r.Targets[0].Clock = "guest" },
		"page cache":    func(r *Run) { r.Header.Plan = json.RawMessage(`{"cache":"cold"}`) },
		"unknown":       func(r *Run) { r.Header.Environment.Kernel = "" },
	} {
		h := latencies(t, past(60, func(i int, r *Run) float64 {
			if i%3 == 0 || i > 40 {
				other(r)
				return 2
			}
			return 1
		}))
		for _, s := range h.Series {
			if s.Changes != nil || slices.Max(s.Values) > 1.5*slices.Min(s.Values) {
				t.Errorf("%s: a series mixes different records: %v", name, s.Values)
			}
		}
		if len(h.Series) < 2 || h.Worse() || len(h.Findings()) == 0 {
			t.Errorf("%s: %d series, findings %v", name, len(h.Series), h.Findings())
		}
	}
}

func TestLevelsOfAHistoryAreFigures(t *testing.T) {
	t.Parallel()
	h := latencies(t, past(40, func(i int, _ *Run) float64 { return step(i, 25) }))
	all := h.Figures()
	if len(all) != 2 || all[0].Versus != nil || len(all[0].Rounds) != 25 || len(all[1].Rounds) != 15 {
		t.Fatalf("got %+v", all)
	}
	after := all[1]
	if v := after.Versus; v == nil || v.Baseline != "to 24" || v.Of != figure.OfRuns || v.Verdict != stat.Different || !(v.Shift.Lo < 0.1 && 0.1 < v.Shift.Hi) || v.Shift.N != 15 || after.Labels.Get("from") != "25" || after.Labels.Get("to") != "39" || after.Verdict != "worse" {
		t.Errorf("got %+v, %+v", after, v)
	}
	charts := h.charts()
	if len(charts) != 1 || len(charts[0].Data) != 40+4 || len(charts[0].Rules) != 1 || charts[0].Rules[0].Value != 24.5 || !charts[0].Rules[0].Vertical {
		t.Errorf("charts are %+v", charts)
	}
}
