package overhead

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestScaling(t *testing.T) {
	t.Parallel()
	base := func(w *oversight) {
		w.plan.Sandboxes, w.plan.Rounds = []int{1, 5, 20}, 3
		w.box = func(_, _ string, _, round int) box {
			return box{memory: 2 * mi, shim: int64(4+round) * mi, kernel: mi}
		}
		w.reading = func(r *record.Reading) {
			d := record.Process{Pid: 9, Start: 1, Name: "containerd", Role: record.RoleDaemon, Rule: "made up", Lane: -1, Groups: []record.Membership{{Paths: map[string]string{"memory": "/system/containerd"}}},
				Read: true, PSSAnon: 50*mi + int64(r.Sandboxes)*mi/4}
			if r.Moment == record.MomentEnd {
				d.CPU = int64(r.Sandboxes) * sec / 10
			}
			r.Processes = append(r.Processes, d)
			r.Host.Free -= int64(r.Sandboxes) * mi / 4
		}
	}
	s := weighed(t, oversee(base)).Scaling
	must.That(t, len(s) == 1 && s[0].slope("memory").N == 9 && slices.Equal(s[0].Counts, []int{1, 5, 20}), "%+v", s)
	if m := s[0].slope("memory"); !m.Bounded || math.Abs(m.Value-8.25*float64(mi)) > 1 || m.Lo >= m.Value || m.Hi <= m.Value || math.Abs(s[0].Slopes.Of("fixed", "of", "memory").Value) > 1e6 {
		t.Errorf("%+v", m)
	}
	m := s[0].slope("daemon memory")
	check.That(t, math.Abs(m.Value-float64(mi/4)) <= 1, "%+v", m)
	c := s[0].slope("daemon CPU")
	check.That(t, math.Abs(c.Value-0.01) <= 1e-9, "%+v", c)
	if f := s[0].Fit; f.Value != 1241 || f.Lo >= f.Value || f.Hi <= f.Value {
		t.Errorf("%+v", s[0])
	}
	t.Run("single count has no slope", func(t *testing.T) {
		s := weighed(t, oversee(nil)).Scaling
		check.That(t, len(s) == 0, "%+v", s)
	})
	t.Run("slope that may be 0 has no fit", func(t *testing.T) {
		s := weighed(t, oversee(func(w *oversight) {
			base(w)
			w.reading = nil
			w.box = func(_, _ string, n, round int) box { return box{memory: int64(round*round) * mi / int64(n)} }
		})).Scaling
		check.That(t, len(s) == 1 && !s[0].Fit.Known(), "%+v", s)
	})
}

func TestRoomCountsEverythingASandboxUses(t *testing.T) {
	t.Parallel()
	nothing := func(int, int) int64 { return 0 }
	for _, tt := range []struct {
		name       string
		rounds     int
		uncharged  func(n, round int) int64 // uncharged slab of the node
		threads    int                      // threads of the workload
		tasks, max int64                    // tasks of the node and their limit
		fit        float64                  // 0 if unknown
		why        string
	}{
		{"charged memory", 3, nothing, 1, 100, 32768, 1274, "memory"},
		{"uncharged memory", 3, func(n, _ int) int64 { return int64(n) * 2 * mi }, 1, 100, 32768, 1020, "memory"},
		{"uncharged memory that varies too much", 3, func(n, round int) int64 { return int64(n*(round-1)) * 100 * mi }, 1, 100, 32768, 0, "uncharged kernel memory"},
		{"limit of processes", 3, nothing, 30, 1768, 32768, 1000, "processes"},
		{"unknown limit of processes, many processes", 3, nothing, 30, 0, 0, 0, "lacks the process limit"},
		{"unknown limit of processes, few processes", 3, nothing, 1, 0, 0, 1274, "memory"},
		{"two rounds are too few", 2, nothing, 1, 100, 32768, 0, "needs at least 3 rounds"},
		{"one round is too few", 1, nothing, 1, 100, 32768, 0, "needs at least 3 rounds"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := weighed(t, oversee(func(w *oversight) {
				w.plan.Sandboxes, w.plan.Rounds = []int{1, 5, 20}, tt.rounds
				w.box = func(string, string, int, int) box { return box{memory: 2 * mi, shim: 5 * mi, kernel: mi} }
				w.reading = func(r *record.Reading) {
					r.Host.Available, r.Host.Tasks, r.Host.MaxTasks = 8*1274*mi, tt.tasks, tt.max
					if r.Moment == record.MomentBefore || r.Moment == record.MomentAfter {
						r.Host.Slab = 4 << 30
						return
					}
					for i := range r.Processes {
						r.Processes[i].Threads = tt.threads
					}
					more := tt.uncharged(r.Sandboxes, r.Round)
					r.Host.Slab += 4<<30 + more
					r.Host.Free -= more
				}
			})).Scaling
			must.That(t, len(s) == 1, "%+v", s)
			// A sandbox is two processes with a given number of threads.
			want := tt.fit
			if tt.why == "processes" {
				want = math.Trunc(float64(tt.max-tt.tasks) / float64(2*tt.threads))
			}
			if f := s[0].Fit; tt.fit > 0 && (f.Value < want-2 || f.Value > want || f.Hi < f.Value || f.Lo > f.Value) || f.Known() != (tt.fit > 0) || len(f.Reasons) != 1 || !strings.Contains(f.Reasons[0], tt.why) {
				t.Errorf("%+v", f)
			}
			if warned := len(s[0].slope("memory").Reasons) > 0; warned != (tt.rounds == 1) {
				t.Errorf("%q", s[0].slope("memory").Reasons)
			}
		})
	}
}

func TestUncountedHelpersAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		count   func(n, round int) int
		related func(n int) *int // nil as in older records
		found   bool
	}{
		"one process per sandbox, older record":            {func(n, round int) int { return 100 + round + n }, nil, true},
		"one related process per sandbox":                  {func(n, round int) int { return 100 + n*round }, func(n int) *int { return new(n) }, true},
		"one unrelated process per sandbox":                {func(n, round int) int { return 100 + round + n }, func(int) *int { return new(0) }, false},
		"many processes per sandbox, more in later rounds": {func(n, round int) int { return 100 + 13*n + 7*n*round }, nil, false},
		"processes vary independently":                     {func(n, round int) int { return 100 + n*round - 10*round }, nil, false},
		"processes do not depend on the sandboxes":         {func(n, round int) int { return 100 + round }, nil, false},
	} {
		o := weighed(t, oversee(func(w *oversight) {
			w.plan.Sandboxes = []int{1, 5, 20}
			w.reading = func(r *record.Reading) {
				r.Host.OthersCount = c.count(r.Sandboxes, r.Round)
				r.Host.Others = int64(r.Host.OthersCount) * mi
				if c.related != nil {
					r.Host.Related = c.related(r.Sandboxes)
				}
				r.Host.Free -= r.Host.Others
			}
		}))
		f := found(o, "helpers-unclaimed")
		if (f != nil) != c.found || f != nil && !strings.Contains(f.Message, "1 other processes appear per sandbox (1…1), share its name, parent, cgroup or namespace, and are in no row; memory of all other processes grows by 1.0 MiB") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
