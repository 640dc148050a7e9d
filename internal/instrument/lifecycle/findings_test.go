package lifecycle_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

// firstTimes returns latencies with noise of 1 % and a first round that is slower by a
// factor.
func firstTimes(factor float64) func(string, subject.Op, int, int) int64 {
	r := rand.New(rand.NewPCG(5, 5))
	return func(_ string, _ subject.Op, _, round int) int64 {
		v := 100 * ms * math.Exp(0.01*r.NormFloat64())
		if round == 0 {
			v *= factor
		}
		return int64(v)
	}
}

func TestFirstRoundAdviceIsApplicable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		factor   float64
		imported bool
		want     string // part of the advice
		not      string
	}{
		{"slow first round is a cold cache", 1.5, false, "raise --warmup", ""},
		{"imported record has no warm-up advice", 1.5, true, "caches may have been cold", "warm"},
		{"fast first round is not a cold cache", 0.4, false, "what the rounds leave behind", "cold"},
	} {
		l := judged(t, write(func(w *written) {
			w.rounds, w.latency = 12, firstTimes(tt.factor)
			if tt.imported {
				w.batch = func(b *record.Batch) { b.Source = "old.json:1" }
			}
		}))
		if len(l.Found) != 1 || l.Found[0].Code != "first-round" {
			t.Fatalf("%s: found %+v", tt.name, l.Found)
		}
		if f := l.Found[0]; !strings.Contains(f.Advice, tt.want) || tt.not != "" && strings.Contains(f.Message+f.Advice, tt.not) {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}

func TestFindingOfOneTargetNamesIt(t *testing.T) {
	t.Parallel()
	noise, slow := firstTimes(1), firstTimes(1.3)
	l := judged(t, write(func(w *written) {
		w.targets, w.rounds, w.plan.Ops = []string{"oci", "oci", "oci", "oci", "oci", "oci", "oci", "oci"}, 20, subject.ContainerOps
		w.latency = func(name string, op subject.Op, lane, round int) int64 {
			if name == "oci3" {
				return slow(name, op, lane, round)
			}
			return noise(name, op, lane, round)
		}
	}))
	if len(l.Found) != 1 || l.Found[0].Code != "first-round" || l.Found[0].Target != "oci3" || !strings.Contains(l.Found[0].Message, "1.29 times as long as the others (geometric mean of 5 rows") {
		t.Errorf("found %+v", l.Found)
	}
}

func TestOwnLimitIsFirstFindingAndPressureCause(t *testing.T) {
	t.Parallel()
	for _, throttled := range []bool{false, true} {
		l := judged(t, write(func(w *written) {
			w.change = func(rec *record.Record) {
				for i := range rec.Nodes {
					rec.Nodes[i].PSICPU = 0.9
				}
				rec.Findings = append(rec.Findings, record.Finding{Code: finding.OpenFailed, Level: "error", Message: "m", Advice: "a"}, record.Finding{Code: finding.OwnLimit, Level: "note", Message: "m", Advice: "a"})
				if throttled {
					rec.Findings = append(rec.Findings, record.Finding{Code: finding.OwnThrottled, Level: "warning", Message: "m", Advice: "a"})
				}
			}
		}))
		first, last := l.Found[0], l.Found[len(l.Found)-1]
		if throttled != (first.Code == finding.OwnThrottled) || slices.Contains(codes(l), finding.OwnLimit) == throttled ||
			last.Code != finding.Pressure || strings.Contains(last.Advice, "something else runs") == throttled {
			t.Errorf("throttled %v: %+v", throttled, l.Found)
		}
	}
}

// early makes every call of target oci1 return after 10 ms. The first instruction of the
// workload runs at first, also counted from the start of the call.
func early(first int64) func(*written) {
	return func(w *written) {
		w.sample = func(name string, _ subject.Op, round int, s *record.Sample) {
			if name == "oci1" {
				s.Returned, s.First = s.Start+10*ms, s.Start+first+int64(round%3)*1000
			}
		}
	}
}

func TestFindings(t *testing.T) {
	noisy := func(seed uint64, sigma float64) func(string, subject.Op, int, int) int64 {
		r := rand.New(rand.NewPCG(seed, 1))
		return func(string, subject.Op, int, int) int64 { return int64(100 * ms * math.Exp(sigma*r.NormFloat64())) }
	}
	node := func(change func(n *record.Node)) func(*written) {
		return func(w *written) {
			w.change = func(rec *record.Record) {
				for i := range rec.Nodes {
					change(&rec.Nodes[i])
				}
			}
		}
	}
	fail := func(kind string) func(*written) {
		return func(w *written) {
			w.sample = func(name string, _ subject.Op, round int, s *record.Sample) {
				if name == "oci1" && round == 4 {
					s.Failure = &record.Failure{Kind: kind, Detail: "it broke", Command: "do run", Output: " first words\n"}
				}
			}
		}
	}
	for _, tt := range []struct {
		name    string
		change  func(*written)
		want    []string
		message string
	}{
		{"idle machine and steady targets have none", nil, nil, ""},
		{"noise of 10 % has none", func(w *written) { w.rounds, w.latency = 20, noisy(1, 0.1) }, nil, ""},
		{"pressure from twenty lanes has none", func(w *written) {
			w.plan.Lanes = []int{20}
			w.change = func(rec *record.Record) {
				for i := range rec.Nodes {
					rec.Nodes[i].PSICPU, rec.Nodes[i].PSIIO, rec.Nodes[i].PSIMemory = 0.9, 0.9, 0.9
				}
			}
		}, nil, ""},
		{"rising times are a drift", func(w *written) {
			w.rounds = 20
			w.latency = func(n string, _ subject.Op, _, round int) int64 { return 100*ms + int64(round)*3*ms }
		}, []string{"drift"}, "+26 % off the first (geometric mean of 2 rows, p<0.001)"},
		{"slow first round of all rows", func(w *written) { w.rounds, w.latency = 12, firstTimes(1.5) }, []string{"first-round"}, "the first round took 1.50 times as long as the others (geometric mean of 2 rows, p"},
		{"fast first round of all rows", func(w *written) { w.rounds, w.latency = 12, firstTimes(0.4) }, []string{"first-round"}, "the first round took 0.40 times"},
		{"slow first round of a single row has no mean", func(w *written) { w.targets, w.rounds, w.latency = []string{"oci"}, 12, firstTimes(1.5) }, []string{"first-round"}, "(1 row, p"},
		{"call that returns before the workload ran", early(200 * ms), []string{"returned-early"}, "returned 190ms before the workload ran"},
		{"call that returns after the workload ran", early(5 * ms), nil, ""},
		{"call that returns before by the duration of an exec", early(105 * ms / 10), nil, ""},
		{"two modes are bimodal", func(w *written) {
			w.rounds = 40
			noise, pick := noisy(2, 0.02), rand.New(rand.NewPCG(3, 3))
			w.latency = func(n string, op subject.Op, lane, round int) int64 {
				return noise(n, op, lane, round) * int64(1+pick.IntN(2))
			}
		}, []string{"bimodal"}, "two groups of times: about 1"},
		{"five rounds are too few", func(w *written) { w.rounds = 5 }, []string{"too-few-rounds"}, "5 rounds give no 95 % interval"},
		{"six rounds are enough", func(w *written) { w.rounds = 6 }, nil, ""},
		{"steal in every round", node(func(n *record.Node) { n.Steal = 0.02 }), []string{"steal"}, "median round 2.0 %"},
		{"large steal in one round", node(func(n *record.Node) {
			if n.Round == 3 {
				n.Steal = 0.2
			}
		}), []string{"steal"}, "worst 20.0 %"},
		{"small steal in many rounds", node(func(n *record.Node) {
			if n.Round%2 == 1 {
				n.Steal = 0.03
			}
		}), []string{"steal"}, "above the bound of 1 % in"},
		{"small steal in one round is ignored", node(func(n *record.Node) {
			if n.Round == 3 {
				n.Steal = 0.03
			}
		}), nil, ""},
		{"unknown steal is ignored", node(func(n *record.Node) { n.Steal, n.Known = 0.9, false }), nil, ""},
		{"steal in the warm-up is ignored", node(func(n *record.Node) { n.Steal, n.Phase = 0.9, record.PhaseWarmup }), nil, ""},
		{"steal with many lanes", func(w *written) {
			w.plan.Lanes = []int{20}
			node(func(n *record.Node) { n.Steal = 0.02 })(w)
		}, []string{"steal"}, ""},
		{"waiting for a CPU is pressure", node(func(n *record.Node) { n.PSICPU = 0.4 }), []string{"pressure"}, "for a CPU"},
		{"waiting for I/O is pressure", node(func(n *record.Node) { n.PSIIO = 0.2 }), []string{"pressure"}, "for I/O"},
		{"waiting for memory is pressure", node(func(n *record.Node) { n.PSIMemory = 0.02 }), []string{"pressure"}, "for memory"},
		{"kernel without PSI has no pressure", node(func(n *record.Node) { n.PSICPU, n.HavePSI = 0.9, false }), nil, ""},
		{"late lanes are a release skew", func(w *written) {
			w.plan.Lanes = []int{10}
			w.sample = func(_ string, _ subject.Op, _ int, s *record.Sample) { s.Start += int64(s.Lane) * 5 * ms }
		}, []string{"release-skew"}, "45ms pass, 45 % of the makespan"},
		{"own CPU time with one lane is ignored", func(w *written) {
			w.batch = func(b *record.Batch) { b.OwnCPU = 40 * ms }
		}, nil, ""},
		{"own CPU time with many lanes is reported", func(w *written) {
			w.plan.Lanes = []int{10}
			w.batch = func(b *record.Batch) { b.OwnCPU = 40 * ms } // 4 CPUs for 100 ms
		}, []string{"own-cost"}, "of the machine's CPU time"},
		{"own CPU time of host and floor is the operation", func(w *written) {
			w.targets = []string{"host", "floor"}
			w.plan.Lanes = []int{10}
			w.batch = func(b *record.Batch) { b.OwnCPU = 40 * ms }
		}, nil, ""},
		{"failed command", fail(record.FailExit), []string{"failed-operations"}, "1 of 10 failed, warm-up included; the first: it broke: first words"},
		{"interrupted operation is not a failure", fail(record.FailInterrupted), nil, ""},
		{"record without an end is truncated", func(w *written) {
			w.change = func(rec *record.Record) { rec.End = nil }
		}, []string{"cut-off"}, "has no end"},
		{"interrupted run", func(w *written) {
			w.change = func(rec *record.Record) { rec.End.Status = "interrupted" }
		}, []string{"interrupted"}, ""},
		{"unreadable lines", func(w *written) {
			w.change = func(rec *record.Record) {
				rec.ProblemCount, rec.Problems = 2, []record.Problem{{Line: 7, Reason: "not JSON"}}
			}
		}, []string{"damaged-record"}, "lines of the record that could not be read: 2, the first: line 7: not JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := judged(t, write(tt.change))
			if got := codes(l); !slices.Equal(got, tt.want) {
				t.Fatalf("found %v, want %v: %+v", got, tt.want, l.Found)
			}
			said := false
			for _, f := range l.Found {
				said = said || strings.Contains(f.Message, tt.message)
				if f.Advice == "" || f.Message == "" || f.Type != record.TypeFinding || !slices.Contains([]string{"note", "warning", "error"}, f.Level) {
					t.Errorf("incomplete finding: %+v", f)
				}
			}
			if !said && tt.message != "" {
				t.Errorf("no message %q: %+v", tt.message, l.Found)
			}
		})
	}
}

func TestEachFailureKindHasItsAdvice(t *testing.T) {
	seen := map[string]string{}
	for _, kind := range []string{record.FailExit, record.FailTimeout, record.FailExec, record.FailState, record.FailWorkload} {
		l := judged(t, write(func(w *written) {
			w.sample = func(_ string, _ subject.Op, _ int, s *record.Sample) {
				s.Failure = &record.Failure{Kind: kind, Detail: "it broke", Command: "do run"}
			}
		}))
		f := l.Found[0]
		if other, twice := seen[f.Advice]; twice {
			t.Errorf("%s and %s have the same advice: %s", kind, other, f.Advice)
		}
		seen[f.Advice] = kind
		check.Equal(t, kind, f.Tried, "do run")
	}
}

func TestInterruptedSamplesAreNotInFindingTotals(t *testing.T) {
	l := judged(t, write(func(w *written) {
		w.sample = func(_ string, _ subject.Op, round int, s *record.Sample) {
			switch round {
			case 8:
				s.Failure = &record.Failure{Kind: record.FailExit, Detail: "exit status 1"}
			case 9:
				s.Failure = &record.Failure{Kind: record.FailInterrupted}
			}
		}
	}))
	if f := l.Found[0]; !strings.HasPrefix(f.Message, "1 of 9 failed") {
		t.Errorf("%q", f.Message)
	}
	if c := l.All; c[0].Failed != 1 || c[0].Total != 9 || c[0].Estimate.N != 8 || l.Failed != 2 || l.Total != 18 {
		t.Errorf("%+v; %d of %d", c, l.Failed, l.Total)
	}
}

func TestRunFindingsAreKeptAndSampleFindingsRecomputed(t *testing.T) {
	fromRun := slices.DeleteFunc(slices.Clone(finding.FromRun), func(code string) bool { return code == finding.OwnLimit }) // the other record has it
	rec := write(func(w *written) {
		w.change = func(rec *record.Record) {
			for _, code := range append(slices.Clone(fromRun), "drift", "a-code-of-a-later-version") {
				rec.Findings = append(rec.Findings, record.Finding{Type: record.TypeFinding, Code: code, Level: "note", Message: "m", Advice: "a"})
			}
		}
	})
	check.Equal(t, "found", codes(judged(t, rec)), slices.Sorted(slices.Values(fromRun)))
}
