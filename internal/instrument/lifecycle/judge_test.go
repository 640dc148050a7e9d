package lifecycle_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

func TestFailedSampleHasNoTime(t *testing.T) {
	for _, lanes := range []int{1, 4} {
		l := judged(t, write(func(w *written) {
			w.plan.Lanes = []int{lanes}
			w.latency = func(string, subject.Op, int, int) int64 { return 100 * ms }
			w.sample = func(_ string, _ subject.Op, round int, s *record.Sample) {
				if round%2 == 0 && s.Lane == 0 { // all stamps are present but an hour off
					s.Returned += 3600 * 1000 * ms
					s.Running, s.UserCPU, s.MaxRSS = s.Returned, 3600*1000*ms, 1<<40
					s.Failure = &record.Failure{Kind: record.FailState, Detail: "it is not running"}
				}
			}
		}))
		want := 100.0 * ms
		if lanes > 1 {
			want += 1000 // from the release
		}
		for _, c := range l.All.Parts("target") {
			if c[0].Estimate.N != 5 || c[0].Estimate.Value != want || c.Of("trimmed-mean").Value != want || c[0].Failed != 5 || c[0].Total != 10*lanes {
				t.Errorf("%d lanes: %+v", lanes, c)
			}
			if slowest := c.Of("lane-latency", "quantile", "max"); len(moments(c)) != 1 || c.Of("command-cpu").Value != 0 || c.Of("max-rss").Value != 0 || slowest.Value != 100*ms || slowest.N != 10*lanes-5 {
				t.Errorf("%d lanes: %+v", lanes, c)
			}
		}
	}
}

func TestMedianOfEvenCountIsTheMeanOfTheMiddleTwo(t *testing.T) {
	l := judged(t, write(func(w *written) {
		w.plan.Lanes = []int{2}
		w.latency = func(string, subject.Op, int, int) int64 { return 100 * ms }
		w.sample = func(_ string, _ subject.Op, round int, s *record.Sample) {
			s.Start += int64(s.Lane) * int64(round) * ms // a skew of one ms per round
			s.Returned = s.Start + 100*ms
			s.UserCPU, s.SysCPU, s.MaxRSS = int64(round)*ms, int64(9-round)*ms*int64(s.Lane), int64(round)<<20
		}
	}))
	figures := l.Figures()
	// One lane uses 0…9 ms of user time and no system time. The other uses 0…9 ms of user
	// time, and system time up to 9 ms in total.
	for quantity, want := range map[string]float64{"release-skew": 4.5 * ms, "max-rss": 4.5 * (1 << 20), "user-cpu": 4.5 * ms, "system-cpu": 0, "command-cpu": 9 * ms} {
		if f := figure.Find(figures, quantity, "target", "oci0"); f.Value != want {
			t.Errorf("%s is %v, want %v", quantity, f.Value, want)
		}
	}
	between := (200.0/(100.001+4) + 200.0/(100.001+5)) / 2
	if f := figure.Find(figures, "parallelism", "target", "oci0"); math.Abs(f.Value-between) > 1e-4 {
		t.Errorf("parallelism is %v, want %v", f.Value, between)
	}
}

func TestStampsAreDistinct(t *testing.T) {
	rec := write(func(w *written) {
		w.targets = []string{"oci"}
		w.sample = func(_ string, _ subject.Op, _ int, s *record.Sample) {
			s.Returned, s.First, s.Seen, s.Running = s.Start+10*ms, s.Start+20*ms, s.Start+30*ms, s.Start+40*ms
		}
		w.change = func(rec *record.Record) {
			rec.Targets[0].Operations["run"] = record.Operation{Done: record.StampSeen}
		}
	})
	c := judged(t, rec).All
	check.Equal(t, "end stamp", c[0].Estimate.Value, 30*ms)
	want := map[record.Stamp]float64{record.StampReturned: 10, record.StampFirst: 20, record.StampSeen: 30, record.StampRunning: 40}
	for _, m := range moments(c) {
		if m.Estimate.Value != want[record.Stamp(m.Labels.Get("stamp"))]*ms {
			t.Errorf("%s after %v", record.Stamp(m.Labels.Get("stamp")), m.Estimate.Value)
		}
	}
	check.That(t, len(moments(c)) == len(want), "%+v", moments(c))
}

// moments returns the times of stamps.
func moments(c figure.Set) (all []figure.Figure) {
	for _, f := range c {
		if f.Quantity == "time-to" {
			all = append(all, f)
		}
	}
	return all
}

func TestWarmupIsNotCountedExceptForFailures(t *testing.T) {
	rec := write(func(w *written) {
		w.batch = func(b *record.Batch) {
			if b.Round >= 6 {
				b.Phase, b.Round = record.PhaseWarmup, b.Round-6
				b.Samples[0].Failure = &record.Failure{Kind: record.FailExit, Detail: "exit status 1"}
			}
		}
	})
	l := judged(t, rec)
	c := l.All
	if l.Rounds(1) != 6 || c[0].Total != 6 || c[0].Failed != 0 || c[0].Estimate.N != 6 || l.Failed != 8 || l.Total != 20 {
		t.Errorf("%+v; %d of %d failed", c, l.Failed, l.Total)
	}
}

func TestBaseline(t *testing.T) {
	for name, tt := range map[string]struct{ wanted, targets, want string }{
		"requested baseline":               {"crun", "host runc crun", "crun"},
		"first runtime by default":         {"", "host floor runc crun", "runc"},
		"first target without runtimes":    {"", "host floor", "host"},
		"unknown baseline is ignored":      {"youki", "host runc", "runc"},
		"single target has none":           {"", "runc", ""},
		"requested single target has none": {"runc", "runc", ""},
		"no targets":                       {"", "", ""},
	} {
		l := judged(t, write(func(w *written) {
			w.plan.Baseline = tt.wanted
			w.change = func(rec *record.Record) {
				rec.Targets = nil
				for n := range strings.FieldsSeq(tt.targets) {
					kind := "oci"
					if n == "host" || n == "floor" {
						kind = n
					}
					rec.Targets = append(rec.Targets, record.Target{Name: n, Kind: kind})
				}
			}
		}))
		check.Equal(t, name, l.Baseline, tt.want)
	}
}

func TestOnlyTheBaselineIsCompared(t *testing.T) {
	rec := write(func(w *written) {
		w.targets = []string{"host", "oci", "oci"}
		w.latency = func(name string, _ subject.Op, _, round int) int64 {
			factor := map[string]int64{"host0": 1, "oci1": 10, "oci2": 9}[name]
			return factor * (10*ms + int64(round)*1000)
		}
	})
	l := judged(t, rec)
	cells := l.All.Parts("target")
	if l.Baseline != "oci1" || cells[1][0].Versus != nil {
		t.Errorf("baseline %q, %+v", l.Baseline, cells[1][0].Versus)
	}
	for i, want := range map[int]float64{0: -0.9, 2: -0.1} {
		v := cells[i][0].Versus
		if v == nil || v.Baseline != "oci1" || math.Abs(v.Shift.Value-want) > 1e-9 || !v.Different() || !v.Shift.Bounded || v.Shift.Lo > want+1e-9 || v.Shift.Hi < want-1e-9 || v.Adjusted <= v.P || v.Why == "" {
			t.Errorf("%s: %+v", cells[i].Get("target"), v)
		}
	}
}

func TestOperationMissingFromBaselineIsNotCompared(t *testing.T) {
	rec := write(func(w *written) {
		w.sample = func(name string, _ subject.Op, _ int, s *record.Sample) {
			if name == "oci0" {
				s.Failure = &record.Failure{Kind: record.FailExit, Detail: "exit status 1"}
			}
		}
	})
	cells := judged(t, rec).All.Parts("target")
	if cells[0][0].Versus != nil || cells[1][0].Versus != nil || cells[0].Of("trimmed-mean").Known() || cells[0].Of("lane-latency").Known() {
		t.Errorf("%+v", cells)
	}
}

func TestUnsupportedOperationIsAbsentNotFailed(t *testing.T) {
	rec := write(func(w *written) {
		w.targets = []string{"host", "oci"}
		w.batch = func(b *record.Batch) {
			if b.Target == "host0" {
				b.Target = "elsewhere"
			}
		}
		w.change = func(rec *record.Record) {
			rec.Targets[0].Operations["run"] = record.Operation{Absent: "nothing to run"}
		}
	})
	l := judged(t, rec)
	if names := l.All.Parts("target"); len(names) != 1 || names[0].Get("target") != "oci1" || len(l.Found) != 0 {
		t.Errorf("%+v, findings %+v", names, l.Found)
	}
}

func TestUnsupportedOperationsHaveNoRows(t *testing.T) {
	for name, change := range map[string]func(ops map[string]record.Operation){
		"not listed":       func(ops map[string]record.Operation) { delete(ops, "runp") },
		"listed as absent": func(ops map[string]record.Operation) { ops["runp"] = record.Operation{Absent: "no pods"} },
	} {
		for _, all := range []bool{true, false} {
			l := judged(t, write(func(w *written) {
				w.plan.Ops = []subject.Op{subject.RunPod, subject.Run}
				w.change = func(rec *record.Record) {
					change(rec.Targets[0].Operations)
					if all {
						change(rec.Targets[1].Operations)
					}
				}
			}))
			rows := l.All.Parts("op")
			if all && (len(rows) != 1 || rows[0].Get("op") != "run") || !all && len(rows) != 2 {
				t.Errorf("%s: %+v", name, rows)
			}
			if !all && (len(rows[0].Parts("target")) != 1 || rows[0].Get("target") != "oci1") {
				t.Errorf("%s: %+v", name, rows[0])
			}
		}
	}
}

func TestPrecision(t *testing.T) {
	spread := func(w *written) {
		w.plan.Ops = []subject.Op{subject.Create, subject.Run}
		w.latency = func(name string, op subject.Op, _, round int) int64 {
			step := int64(ms)
			if name == "oci1" && op == subject.Run {
				step = 5 * ms
			}
			return 100*ms + []int64{5, 0, 8, 3, 9, 1, 6, 2, 7, 4}[round]*step
		}
	}
	fails := func(w *written, name string) {
		w.sample = func(n string, op subject.Op, _ int, s *record.Sample) {
			if n == name || name == "" {
				s.Failure = &record.Failure{Kind: record.FailExit, Detail: "exit status 1"}
			}
		}
	}
	for _, tt := range []struct {
		name    string
		change  func(*written)
		leftOut []string
		worst   float64
		where   string
	}{
		// With ten values, the stricter interval spans the first to the last.
		{"widest interval", spread, nil, 22.5 / 122.5, "oci1 run"},
		{"excluded targets are ignored", spread, []string{"oci1"}, 4.5 / 104.5, "oci0 run"},
		{"unknown before there is an interval", func(w *written) { spread(w); w.rounds = 5 }, nil, math.Inf(1), "oci1 run vs oci0"},
		{"target that never succeeds is ignored", func(w *written) { spread(w); fails(w, "oci1") }, nil, 4.5 / 104.5, "oci0 run"},
		{"not reached if nothing succeeds", func(w *written) { spread(w); fails(w, "") }, nil, math.Inf(1), "oci1 run"},
		{"perfect without targets", spread, []string{"oci0", "oci1"}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := write(tt.change)
			v := lifecycle.NewIntervals(rec.Targets, &judged(t, rec).Plan)
			for i := range rec.Batches {
				if rec.Batches[i].Phase == record.PhaseMeasure {
					v.Add(&rec.Batches[i])
				}
			}
			worst, where := v.Widest(tt.leftOut...)
			if math.Abs(worst-tt.worst) > 1e-9 || where != tt.where {
				t.Errorf("got %v of %q, want %v of %q", worst, where, tt.worst, tt.where)
			}
		})
	}
}

func TestJudgingDoesNotModifyTheRecord(t *testing.T) {
	rec := write(func(w *written) { w.plan.Lanes, w.plan.Ops = []int{1, 3}, subject.Ops })
	first := judged(t, rec)
	second := judged(t, rec)
	if a, b := len(first.All.Parts("lanes")), len(second.All.Parts("lanes")); a != 2 || b != 2 {
		t.Errorf("%d and %d tables", a, b)
	}
	if len(rec.Findings) != 0 || len(first.Found) != len(second.Found) {
		t.Errorf("findings were added to the record: %+v", rec.Findings)
	}
}
