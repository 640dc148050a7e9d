package overhead

import (
	"math"
	"slices"
	"testing"

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
	if len(s) != 1 || s[0].Slopes[ofMemory].N != 9 || !slices.Equal(s[0].Counts, []int{1, 5, 20}) {
		t.Fatalf("%+v", s)
	}
	if m := s[0].Slopes[ofMemory]; !m.Bounded || math.Abs(m.Value-8.25*float64(mi)) > 1 || m.Lo >= m.Value || m.Hi <= m.Value || math.Abs(m.Fixed) > 1e6 {
		t.Errorf("%+v", m)
	}
	if m := s[0].Slopes[ofDaemon]; math.Abs(m.Value-float64(mi/4)) > 1 {
		t.Errorf("%+v", m)
	}
	if c := s[0].Slopes[ofDaemonCPU]; math.Abs(c.Value-0.01) > 1e-9 {
		t.Errorf("%+v", c)
	}
	if f := s[0].Fit; f.Value != 1241 || f.Lo >= f.Value || f.Hi <= f.Value {
		t.Errorf("%+v", s[0])
	}
	t.Run("one count has no slope", func(t *testing.T) {
		if s := weighed(t, oversee(nil)).Scaling; len(s) != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a slope that may be 0 holds no number", func(t *testing.T) {
		s := weighed(t, oversee(func(w *oversight) {
			base(w)
			w.reading = nil
			w.box = func(_, _ string, n, round int) box { return box{memory: int64(round*round) * mi / int64(n)} }
		})).Scaling
		if len(s) != 1 || s[0].Fit.Known() {
			t.Errorf("%+v", s)
		}
	})
}

func TestRoomIsForAllThatASandboxTakes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		rounds      int
		uncharged   func(n, round int) int64 // of the node's slab, beyond what is charged
		fit         float64
		known, only bool
	}{
		{"what is charged", 3, func(int, int) int64 { return 0 }, 1274, true, false},
		{"and what no cgroup is charged for", 3, func(n, _ int) int64 { return int64(n) * 2 * mi }, 1020, true, false},
		{"unless that may be anything", 3, func(n, round int) int64 { return int64(n*(round-1)) * 100 * mi }, 1274, true, true},
		{"two rounds tell no room", 2, func(int, int) int64 { return 0 }, 0, false, false},
		{"nor does one", 1, func(int, int) int64 { return 0 }, 0, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := weighed(t, oversee(func(w *oversight) {
				w.plan.Sandboxes, w.plan.Rounds = []int{1, 5, 20}, tt.rounds
				w.box = func(string, string, int, int) box { return box{memory: 2 * mi, shim: 5 * mi, kernel: mi} }
				w.reading = func(r *record.Reading) {
					r.Host.Available = 8 * 1274 * mi
					if r.Moment == record.MomentBefore || r.Moment == record.MomentAfter {
						r.Host.Slab = 4 << 30
						return
					}
					more := tt.uncharged(r.Sandboxes, r.Round)
					r.Host.Slab += 4<<30 + more
					r.Host.Free -= more
				}
			})).Scaling
			if len(s) != 1 {
				t.Fatalf("%+v", s)
			}
			if f := s[0].Fit; tt.known && (f.Value < tt.fit-2 || f.Value > tt.fit) || f.Known() != tt.known || s[0].ChargedOnly != tt.only {
				t.Errorf("%+v", s[0])
			}
			if warned := len(s[0].Slopes[ofMemory].Reasons) > 0; warned != (tt.rounds == 2) {
				t.Errorf("%q", s[0].Slopes[ofMemory].Reasons)
			}
		})
	}
}
