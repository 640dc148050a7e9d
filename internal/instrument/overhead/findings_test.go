package overhead

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

func TestOverheadFindings(t *testing.T) {
	t.Parallel()
	end := func(change func(r *record.Reading)) func(*oversight) {
		return readings(func(r *record.Reading) {
			if r.Moment == record.MomentEnd {
				change(r)
			}
		})
	}
	others := func(byProcesses int64) func(*oversight) { // other processes used 3 MiB by the node's figures
		return readings(func(r *record.Reading) {
			r.Host.Anon = 4 << 30
			if r.Moment == record.MomentEnd {
				r.Host.Anon, r.Host.Others, r.Host.Free = r.Host.Anon+10*mi, byProcesses, r.Host.Free-3*mi
			}
		})
	}
	uncharged := func(kernel int64, settled bool) func(*oversight) { // settled at the end of a phase
		return func(w *oversight) {
			boxes(box{memory: 2 * mi, shim: 5 * mi, kernel: kernel})(w)
			w.reading = func(r *record.Reading) {
				r.Host.Free, r.Host.Slab, r.Settled = r.Host.Free+r.Host.Slab, 1<<30, settled || r.Moment != record.MomentEnd
			}
		}
	}
	quiet := []string{"charged-outside-pod"} // a shim of 5 MiB in the cgroup of containerd
	for _, tt := range []struct {
		name    string
		change  func(*oversight)
		want    []string
		message string
	}{
		{"idle node has only the finding on the shim outside the pod", nil, nil, "shim 5.0 MiB in /system/containerd"},
		{"small memory per sandbox is large in total", func(w *oversight) {
			w.plan.Sandboxes = []int{1, 5}
			w.box = func(_, _ string, n, _ int) box { return box{memory: 2 * mi, shim: (1000 - 40*int64(n)) << 10} }
		}, nil, "800 KiB per sandbox is charged outside the pod's cgroup"},
		{"remaining cgroups are reported", readings(func(r *record.Reading) {
			if r.Moment == record.MomentAfter {
				r.Left = []string{"/kata_overhead/0"}
			}
		}), []string{"cgroup-leaked"}, "3 cgroups remained"},
		{"cgroups removed by the run are reported once", func(w *oversight) {
			readings(func(r *record.Reading) {
				if r.Moment == record.MomentAfter {
					r.Left = []string{"/kata_overhead/0"}
				}
			})(w)
			w.change = func(rec *record.Record) {
				rec.Findings = append(rec.Findings, record.Finding{Code: "runtime-left", Level: "warning", Target: rec.Targets[0].Name, Message: "tare removed them at the end", Advice: "x"})
			}
		}, []string{"runtime-left"}, "tare removed them at the end"},
		{"large unexplained memory is reported", boxes(box{memory: 100 * mi, shim: 5 * mi, extra: 5 * mi}), []string{"residual-large"}, "5.0 MiB of the node's change of 110.0 MiB is unexplained"},
		{"small unexplained memory is not reported", boxes(box{memory: 100 * mi, shim: 5 * mi, extra: 3 * mi}), nil, ""},
		{"2 % of a large change is not reported", boxes(box{memory: 1000 * mi, shim: 5 * mi, extra: 19 * mi}), nil, ""},
		{"engine reporting a quarter is reported", end(func(r *record.Reading) {
			r.Engine = []record.Statistic{{Lane: 0, Source: "docker stats", Memory: 2 * mi, CPU: -1}}
		}), []string{"engine-blind"}, "docker stats reports 2.0 MiB, but the sandboxes use 8.0 MiB (25 %)"},
		{"engine reporting half or nothing is not reported", end(func(r *record.Reading) {
			r.Engine = []record.Statistic{{Lane: 0, Source: "docker stats", Memory: 4 * mi, CPU: -1}, {Lane: 0, Source: "cri", Memory: -1, CPU: -1}}
		}), nil, ""},
		{"unreadable files are reported", end(func(r *record.Reading) {
			r.Problems.Denied, r.Problems.Examples = 1, []string{"/proc/1/smaps_rollup"}
		}), []string{"incomplete"}, "3 of 3 phases: 3 denied; such as /proc/1/smaps_rollup"},
		{"exit during the reading is a note", end(func(r *record.Reading) { r.Problems.Gone = 2 }), []string{"vanished-while-read"}, "6 processes or cgroups ended"},
		{"host has no pod cgroup", func(w *oversight) {
			w.kinds = append(w.kinds, "host")
			w.names = append(w.names, "host")
		}, nil, ""},
		{"exec of a load does not count as outside the pod", func(w *oversight) {
			w.plan.Phases = []string{"idle", "hold 64MiB"}
			w.reading = func(r *record.Reading) {
				if r.Phase == "hold 64MiB" {
					r.Processes = append(r.Processes, record.Process{Pid: 77, Start: 7, Role: record.RoleRuntime, Rule: "made up", Groups: []record.Membership{{Paths: map[string]string{"memory": "/user"}}}, Read: true, PSSAnon: 30 * mi})
					r.Host.Free -= 30 * mi
				}
			}
		}, nil, "5.0 MiB per sandbox"},
		{"missed ticks are reported", func(w *oversight) { w.series = func(s *record.Series) { s.Missed = 1 } }, []string{"missed-ticks"}, "3 of 33 ticks"},
		{"unsettled node is reported", end(func(r *record.Reading) { r.Settled = false }), []string{"node-unsettled"}, "3 of 9 readings"},
		{"pressure is reported", readings(func(r *record.Reading) { r.Host.HavePSI, r.Host.PSIIO = true, r.Time/5 }), []string{"node-pressure"}, "waited for I/O (PSI) in phases without I/O: median phase 20.0 %"},
		{"pressure in a load phase is not reported", func(w *oversight) {
			w.plan.URL, w.plan.Phases = "http://:8080/", []string{"idle", "load"}
			w.reading = func(r *record.Reading) {
				if r.Host.HavePSI = true; r.Phase == "load" && r.Moment == record.MomentEnd {
					r.Host.PSICPU = 5 * sec
				}
			}
		}, nil, ""},
		{"steal in a load phase is reported", func(w *oversight) {
			w.plan.URL, w.plan.Phases = "http://:8080/", []string{"idle", "load"}
			w.reading = func(r *record.Reading) {
				if r.Phase == "load" && r.Moment == record.MomentEnd {
					r.Host.Steal += 5 * sec
				}
			}
		}, []string{"node-pressure"}, "steal"},
		{"steal is reported", readings(func(r *record.Reading) { r.Host.Steal = r.Time / 10 }), []string{"node-pressure"}, "steal"},
		{"steal in some rounds is reported", func(w *oversight) {
			w.plan.Rounds = 20
			w.reading = func(r *record.Reading) {
				if r.Round < 9 {
					r.Host.Steal = r.Time / 10
				}
			}
		}, []string{"node-pressure"}, "median phase 0.0 %, worst 2.5 %; above the bound of 1 % in 9 of 20"},
		{"large page cache is reported", boxes(box{memory: 2 * mi, shim: 5 * mi, cache: 300 * mi}), []string{"page-cache-heavy"}, "300.0 MiB of page cache"},
		{"throttling is reported", end(func(r *record.Reading) { r.Groups[0].Throttled = sec }), []string{"throttled"}, "10.0 % of the phase"},
		{"two figures of other usage that differ are reported", others(23 * mi), []string{"others-unclear"}, "23.0 MiB by their own RssAnon, 3.0 MiB by the node's anonymous memory"},
		{"two figures of other usage that agree are not reported", others(3 * mi), nil, ""},
		{"kernel memory beyond the node's is reported", uncharged(9*mi, true), []string{"kernel-overcounted"},
			"9.0 MiB of kernel memory are charged, 9.0 MiB more than the growth of the node's (allowed: 4.0 MiB"},
		{"kernel memory slightly beyond the node's is not reported", uncharged(3*mi, true), nil, ""},
		{"kernel memory on an unsettled node is not reported", uncharged(9*mi, false), []string{"node-unsettled"}, ""},
		{"failed phase is reported and counted", end(func(r *record.Reading) {
			if r.Round == 1 {
				r.Failure = &record.Failure{Kind: record.FailExit, Detail: "it exited 1", Command: "fio"}
			}
		}), []string{"failed-operations"}, "phase idle failed in 1 of 3 rounds; the first: it exited 1"},
		{"interrupted phase is not reported", end(func(r *record.Reading) {
			if r.Round == 1 {
				r.Failure = &record.Failure{Kind: record.FailInterrupted}
			}
		}), nil, ""},
		{"record without an end is reported", func(w *oversight) { w.change = func(rec *record.Record) { rec.End = nil } }, []string{"cut-off"}, ""},
		{"findings of the run are kept, others recomputed", func(w *oversight) {
			w.change = func(rec *record.Record) {
				rec.Findings = []record.Finding{{Code: finding.NotReached}, {Code: finding.PhaseSkipped}, {Code: "engine-blind"}}
			}
		}, []string{"sandboxes-not-reached", "phase-skipped"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(tt.change))
			got, want := codesOf(o), slices.Concat(tt.want, quiet)
			slices.Sort(got)
			slices.Sort(want)
			check.That(t, slices.Equal(got, want), "%v, want %v\n%+v", got, want, o.Findings)
			code := "charged-outside-pod"
			if tt.want != nil {
				code = tt.want[0]
			}
			if f := found(o, code); f != nil && !strings.Contains(f.Message, tt.message) {
				t.Errorf("message %q lacks %q", f.Message, tt.message)
			}
			for _, f := range o.Findings {
				check.That(t, f.Level == "" || f.Advice != "", "no advice: %+v", f)
			}
		})
	}
}

func TestOverheadGroupGrowthUsesItsPeak(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		peaks  map[record.Moment]int64 // MiB, in the phase 10M
		series []int64
		to     string
	}{
		{"growth within the phase is found by the peak", map[record.Moment]int64{record.MomentBegin: 120, record.MomentEnd: 900}, nil, "110.0 MiB idle to 900.0 MiB"},
		{"peak before the phase is ignored", map[record.Moment]int64{record.MomentBegin: 900, record.MomentEnd: 900}, nil, ""},
		{"growth without a peak is found by the series", nil, []int64{110, 700, 110}, "110.0 MiB idle to 700.0 MiB"},
		{"constant cgroup did not grow", nil, []int64{110, 120, 110}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(func(w *oversight) {
				w.plan.Phases = []string{"idle", "10M"}
				w.box = func(string, string, int, int) box {
					return box{vm: true, overhead: true, memory: 100 * mi, shim: 10 * mi}
				}
				w.reading = func(r *record.Reading) {
					for i := range r.Groups {
						if g := &r.Groups[i]; g.Charge == record.ChargeOverhead && r.Phase == "10M" {
							g.Memory.Peak = tt.peaks[r.Moment] * mi
						}
					}
				}
				w.series = func(s *record.Series) {
					if s.Phase == "10M" && tt.series != nil {
						values := slices.Repeat([]int64{-1}, len(s.Times))
						for i, n := range tt.series {
							values[i] = n * mi
						}
						s.Values[record.SeriesOverheadMemory] = values
					}
				}
			}))
			f := found(o, "overhead-unlimited")
			check.That(t, (f == nil) == (tt.to == "") && (f == nil || strings.Contains(f.Message, tt.to)), "%+v", f)
		})
	}
}

func TestLoadAboveItsLimitIsExplained(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		exit  int
		limit int64
		want  string
	}{
		{"killed with a load above the limit", 137, 32 * mi, "the limit of 32.0 MiB is below the load's memory, 64.0 MiB"},
		{"killed with a load at the limit", 137, 64 * mi, "the limit of 64.0 MiB is below the load's memory, 64.0 MiB plus its program"},
		{"killed with a load below the limit", 137, 128 * mi, "run it by hand"},
		{"killed without a limit", 137, 0, "run it by hand"},
		{"other exit code", 1, 32 * mi, "run it by hand"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(func(w *oversight) {
				w.plan.Phases, w.plan.Limits = []string{"idle", "hold 64MiB"}, setting.Limits{Memory: tt.limit}
				w.reading = func(r *record.Reading) {
					if r.Phase == "hold 64MiB" && r.Moment == record.MomentEnd {
						r.Failure = &record.Failure{Kind: record.FailExit, Exit: tt.exit, Detail: "exit status", Command: "/probe hold"}
					}
				}
			}))
			f := found(o, "failed-operations")
			check.That(t, f != nil && strings.Contains(f.Advice, tt.want), "%+v", f)
		})
	}
}
