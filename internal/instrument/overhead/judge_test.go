package overhead

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestKataFieldReport(t *testing.T) {
	t.Parallel()
	o := weighed(t, oversee(seed(false)))
	if got := fmt.Sprintf("%d %s %s %s %s", len(o.Tables), o.Tables[0].Phase, o.Tables[1].Phase, o.Tables[2].Phase, o.Tables[3].Phase); got != "4 idle 10M 1G 10G" {
		t.Errorf("tables %s", got)
	}
	f := found(o, "overhead-unlimited")
	check.That(t, f != nil && f.Target == "containerd/kata" && f.Op == "10G" && strings.Contains(f.Message, "/kata_overhead/0") &&
		strings.Contains(f.Message, "110.7 MiB idle to 1.90 GiB"), "%+v", f)
	if f := found(o, "charged-outside-pod"); f == nil || f.Level != "warning" || !strings.Contains(f.Message, "vmm 1.88 GiB in /kata_overhead/0") || !strings.Contains(f.Message, "1.90 GiB, without a limit") {
		t.Errorf("%+v", f)
	}
	must.That(t, len(o.Classes) == 2 && o.Classes[0].Handler == "kata", "%+v", o.Classes)
	// The container has at most 1 GiB of the 1.9 GiB in the guest at 10G.
	c := o.Classes[0]
	want := int64(math.Ceil(float64(1946-1024)*1.1/4)) * 4 * mi
	check.That(t, c.Memory == want && c.CPU == 30, "memory %d, want %d; cpu %dm", c.Memory>>20, want>>20, c.CPU)
	check.That(t, slices.ContainsFunc(c.Rule, func(s string) bool { return strings.Contains(s, "podFixed does not include") }), "%q", c.Rule)
	if k := o.Check[0]; k.Answer != NotEnough || k.Phases[0].MemoryAnswer != Enough || k.Phases[1].MemoryAnswer != Enough || k.Phases[3].MemoryAnswer != NotEnough || k.Phases[3].CPUAnswer != Enough {
		t.Errorf("%+v", k)
	}
	k := o.Check[1]
	check.That(t, k.Answer == Enough, "%+v", k)
	f = found(o, "check-not-enough")
	check.That(t, f != nil && strings.Contains(f.Message, "phase 10G with 1 sandbox needs memory 922.0 MiB"), "%+v", f)

	// With everything in the pod's group, nothing is outside and all phases fit.
	o = weighed(t, oversee(seed(true)))
	for _, f := range o.Findings {
		check.That(t, f.Target != "containerd/kata" || f.Code != "overhead-unlimited" && f.Code != "charged-outside-pod" && f.Code != "check-not-enough",
			"%+v", f)
	}
	k = o.Check[0]
	check.That(t, k.Answer == Enough, "%+v", k)
}

func TestCalibration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		box  box // under load; an idle box has 2 MiB
		off  string
	}{
		{"workload holds the requested memory", box{memory: 66 * mi, shim: 9 * mi, cpu: 0.5}, ""},
		{"workload holds too little", box{memory: 63 * mi, shim: 9 * mi, cpu: 0.5}, "61.0 MiB were measured"},
		{"guest holds the requested memory", box{vm: true, memory: 66 * mi, shim: 9 * mi, cpu: 0.5}, ""},
		{"sentry holds the requested memory", box{sentry: true, memory: 66 * mi, shim: 9 * mi, cpu: 0.5}, ""},
		{"sentry uses too much CPU", box{sentry: true, memory: 66 * mi, cpu: 0.52}, "0.52 were measured"},
		{"workload uses too much CPU", box{memory: 66 * mi, cpu: 0.52}, "0.52 were measured"},
		{"load reports less CPU than requested", box{memory: 66 * mi, cpu: 0.35}, ""},
		{"half of the reported CPU was measured", box{memory: 66 * mi, cpu: 0.17}, "the load reports 0.345 CPUs, but 0.17 were measured"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(func(w *oversight) {
				w.plan.Phases = []string{"idle", "hold 64MiB", "spin 0.5cpu"}
				w.plan.Sandboxes = []int{2, 4}
				w.box = func(_, phase string, _, _ int) box {
					b := tt.box
					if phase == "idle" {
						b.memory, b.cpu = 2*mi, 0
					}
					return b
				}
				w.reading = func(r *record.Reading) {
					switch {
					case r.Moment != record.MomentEnd:
					case r.Phase == "hold 64MiB":
						r.Work = &record.Work{Command: "/probe hold", Hold: 64 * mi}
					case r.Phase == "spin 0.5cpu":
						r.Work = &record.Work{Command: "/probe spin", Spin: 0.5, Spun: 0.5}
						if tt.box.cpu < 0.5 {
							r.Work.Spun = 0.345
						}
					}
				}
			}))
			hold := &o.Tables[1].Cells[0]
			check.That(t, hold.load("expected") == float64(64*mi) && hold.load("measured") == float64(tt.box.memory-2*mi), "%+v", hold.All)
			spin := &o.Tables[2].Cells[0]
			check.That(t, spin.load("expected") == 0.5 && math.Abs(spin.load("measured")-tt.box.cpu) <= 1e-9, "%+v", spin.All)
			idle := &o.Tables[0].Cells[0]
			check.That(t, idle.load("expected") == 0, "%+v", idle.All)
			switch f := found(o, "calibration-off"); {
			case tt.off == "" && f != nil, tt.off != "" && (f == nil || !strings.Contains(f.Message, tt.off)):
				t.Errorf("%+v", f)
			case f != nil && f.Op == "spin 0.5cpu" && f.Level == finding.Warning && !strings.Contains(f.Advice, "the load or the CPU figures"):
				t.Errorf("the advice does not name both figures: %s", f.Advice)
			}
			if short := tt.box.cpu < 0.5; (found(o, "load-short") != nil) != short || short && !strings.Contains(text(t, o, "md"), "| reported |") {
				t.Errorf("%+v", o.Findings)
			}
			check.That(t, o.Tables[1].Command == "/probe hold" && o.Tables[3].Phase == "idle" && o.Tables[3].Sandboxes == 4 && len(o.Tables) == 4,
				"%+v", o.Tables)
		})
	}
}

func TestRequestRateIsTheClients(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ said, want float64 }{
		"rate reported by the clients":              {1200, 1200},
		"rate over the whole time in older records": {0, 1000},
	} {
		j := weighed(t, oversee(func(w *oversight) {
			w.plan.URL, w.plan.Phases = "http://:8080/", []string{"idle", "load"}
			w.reading = func(r *record.Reading) {
				if r.Phase == "load" && r.Moment == record.MomentEnd {
					r.Work = &record.Work{Answers: 6000, QPS: c.said, Begun: r.Time - 6*sec, Ended: r.Time}
				}
			}
		}))
		got, above := j.Tables[1].Cells[0].All.Of("requests"), j.Tables[1].Cells[0].All.Of("memory-above-idle")
		check.That(t, got.Value == c.want && len(got.Rounds) != 0 && got.Unit == figure.PerSecond && above.Unit == figure.Bytes,
			"%s: %+v, %+v", name, got, above)
	}
}

func TestCellIsTheMedianRound(t *testing.T) {
	t.Parallel()
	sizes := []int64{30, 10, 20, 40}
	rec := oversee(func(w *oversight) {
		w.plan.Rounds = 4
		w.box = func(_, _ string, _, round int) box { return box{memory: sizes[round] * mi} }
	})
	c := weighed(t, rec).Tables[0].Cells[0]
	check.That(t, c.Rounds == 4 && c.Ledger.Sum == 20*mi && c.All.Of("memory").Value == float64(25*mi) && !c.All.Of("memory").Bounded, "%+v", c)
	for i := range rec.Readings {
		if r := &rec.Readings[i]; r.Round == 2 && r.Moment == record.MomentEnd {
			r.Processes[0].Read, r.Work = false, &record.Work{Command: "fio"}
		}
	}
	j := weighed(t, rec)
	c = j.Tables[0].Cells[0]
	check.That(t, c.Rounds == 3 && c.Ledger.Sum == 30*mi, "an incomplete round was counted: %+v", c)
	check.Equal(t, "Reasons", figure.Find(j.Figures(), "memory").Reasons, []string{"of the rounds that could be read whole", "inside: fio"})
}

func TestSeriesAreRates(t *testing.T) {
	t.Parallel()
	all := weighed(t, oversee(nil)).Tables[0].Cells[0].Series
	for name, want := range map[string]struct {
		unit   figure.Unit
		series figure.Series
	}{
		record.SeriesPodCPU:    {figure.CPUs, figure.Series{Times: []float64{2}, Values: []float64{0.5}}},
		record.SeriesNodeUsed:  {figure.Bytes, figure.Series{Times: []float64{1, 2, 3}, Values: []float64{5, 6, 7}}},
		record.SeriesNodeWrite: {figure.BytesPerSec, figure.Series{Times: []float64{2, 3}, Values: []float64{100, 300}}},
		record.SeriesNodeLoad:  {figure.Load, figure.Series{Times: []float64{1, 2, 3}, Values: []float64{1.5, 1.5, 1.5}}},
	} {
		f := figure.Find(all, "over-time", "series", name)
		check.That(t, f.Unit == want.unit && f.Series != nil && reflect.DeepEqual(*f.Series, want.series), "%s: %+v", name, f)
	}
	check.Equal(t, "series", len(all), 4)
}

func TestTruncatedRecordIsJudged(t *testing.T) {
	t.Parallel()
	whole := oversee(seed(false))
	for n := range len(whole.Readings) + 1 {
		rec := *whole
		rec.Readings, rec.Series, rec.End = whole.Readings[:n], whole.Series[:n/3], nil
		o := weighed(t, &rec)
		must.That(t, o.Failed == 0, "%d readings: %d failed", n, o.Failed)
	}
	rec := *whole
	rec.Readings = whole.Readings[1:] // its first visit has no begin
	o := weighed(t, &rec)
	check.That(t, o.Failed == 4, "%d failed", o.Failed)
}
