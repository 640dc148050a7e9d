package overhead

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

const (
	mi  = int64(1) << 20
	sec = int64(1e9)
)

// box is what one sandbox of a made-up target has at a phase's end.
type box struct {
	vm       bool  // has a VMM, and no workload on the host
	sentry   bool  // has gVisor's
	memory   int64 // of its workload, VMM or sentry
	shim     int64
	kernel   int64
	cpu      float64 // CPUs of the workload, the VMM's vCPUs or the sentry
	shimCPU  float64
	overhead bool  // all but the vCPUs are in a group of the sandbox's own beside the pod's
	usage    int64 // of the group that is charged; 0: the sum
	extra    int64 // of the node, in nobody's books
	limit    int64
	cache    int64
}

// oversight makes records of overhead by hand.
type oversight struct {
	plan    Options
	kinds   []string // of the targets, named by names
	names   []string
	box     func(target, phase string, n, round int) box
	reading func(r *record.Reading)
	series  func(s *record.Series)
	change  func(rec *record.Record)
}

func oversee(change func(*oversight)) *record.Record {
	o := oversight{plan: Defaults(), kinds: []string{"containerd"}, names: []string{"containerd/runc"}}
	o.plan.Sandboxes = []int{1}
	o.box = func(string, string, int, int) box { return box{memory: 2 * mi, shim: 5 * mi, kernel: mi} }
	if change != nil {
		change(&o)
	}
	return o.record()
}

func (o *oversight) record() *record.Record {
	text, err := json.Marshal(o.plan)
	if err != nil {
		panic(err)
	}
	rec := &record.Record{Header: record.Header{Type: record.TypeHeader, Schema: record.Schema, Experiment: "overhead", Plan: text, Environment: record.Environment{CPUs: 4}}}
	for i, kind := range o.kinds {
		rec.Targets = append(rec.Targets, record.Target{Type: record.TypeTarget, Name: o.names[i], Kind: kind})
	}
	now := 1000 * sec
	for round := range o.plan.Rounds {
		for order, name := range o.names {
			var cpu, shimCPU int64
			add := func(moment record.Moment, phase string, n int, b box) {
				r := record.Reading{Type: record.TypeReading, Time: now, Round: round, Order: order, Target: name, Phase: phase, Sandboxes: n, Moment: moment, Settled: true}
				r.Host = record.Host{Total: 16 << 30, Free: 12 << 30, Available: 10 << 30, Busy: now / 10, Refreshed: true}
				for lane := range n {
					o.sandbox(&r, lane, b, cpu, shimCPU)
				}
				r.Host.Free -= int64(n) * (b.memory + b.shim + b.kernel + b.extra)
				r.Host.Slab = int64(n) * b.kernel
				if o.reading != nil {
					o.reading(&r)
				}
				if err := record.Validate(&r); err != nil {
					panic(err)
				}
				rec.Readings = append(rec.Readings, r)
				now += sec
			}
			add(record.MomentBefore, "", 0, box{})
			for i, n := range o.plan.Sandboxes {
				for _, phase := range WithIdle(o.plan.Phases) {
					if i > 0 && phase != "idle" {
						continue
					}
					b := o.box(name, phase, n, round)
					add(record.MomentBegin, phase, n, b)
					s := record.Series{Type: record.TypeSeries, Round: round, Target: name, Phase: phase, Sandboxes: n, Interval: sec, Times: []int64{now, now + sec, now + 2*sec},
						Values: map[string][]int64{record.SeriesPodCPU: {0, sec / 2, -1}, record.SeriesNodeUsed: {5, 6, 7}, record.SeriesNodeWrite: {0, 100, 400}, record.SeriesNodeLoad: {1500, 1500, 1500}}}
					for i := int64(3); i < 10; i++ { // at which nothing was read
						s.Times = append(s.Times, now+i*sec)
						for name := range s.Values {
							s.Values[name] = append(s.Values[name], -1)
						}
					}
					if o.series != nil {
						o.series(&s)
					}
					rec.Series = append(rec.Series, s)
					now += 9 * sec
					cpu, shimCPU = cpu+int64(b.cpu*10e9), shimCPU+int64(b.shimCPU*10e9)
					add(record.MomentEnd, phase, n, b)
				}
			}
			add(record.MomentAfter, "", 0, box{})
		}
	}
	rec.End = &record.End{Type: record.TypeEnd, Status: "done", Why: "rounds"}
	if o.change != nil {
		o.change(rec)
	}
	return rec
}

// sandbox enters one sandbox into a reading. Its shim is in the daemon's group,
// or with the VMM.
func (o *oversight) sandbox(r *record.Reading, lane int, b box, cpu, shimCPU int64) {
	pod := fmt.Sprintf("/pod/%d", lane)
	own := pod
	if b.overhead {
		own = fmt.Sprintf("/kata_overhead/%d", lane)
	}
	in := func(path string) []record.Membership {
		return []record.Membership{{Paths: map[string]string{"memory": path, "cpuacct": path}}}
	}
	main := record.Process{Pid: 1000 + 2*lane, Start: 5, Name: "main", Role: record.RoleWorkload, Rule: "made up", Lane: lane, Groups: in(pod), CPU: cpu, Read: true, PSSAnon: b.memory}
	shim := record.Process{Pid: 1001 + 2*lane, Start: 5, Name: "shim", Role: record.RoleShim, Rule: "made up", Lane: lane, Groups: in("/system/containerd"), CPU: shimCPU, Read: true, PSSAnon: b.shim}
	switch {
	case b.vm:
		main.Role, main.VCPU, main.Groups = record.RoleVMM, cpu, in(own)
		main.Groups = append(main.Groups, record.Membership{Paths: map[string]string{"memory": pod, "cpuacct": pod}, Threads: []int{7}, Names: []string{"CPU 0/KVM"}})
		shim.Groups = in(own)
	case b.sentry:
		main.Role = record.RoleSentry
	}
	usage := b.memory + b.kernel + b.cache
	if b.vm {
		usage += b.shim
	}
	if b.usage > 0 {
		usage = b.usage
	}
	podTime, ownTime := cpu, shimCPU
	m := &record.GroupMemory{Usage: usage, Anon: b.memory, File: b.cache, Kernel: b.kernel, Limit: b.limit}
	if b.overhead {
		r.Groups = append(r.Groups, record.Group{Path: pod, Charge: record.ChargePod, Lane: lane, Controllers: []string{"memory"}, Memory: &record.GroupMemory{}, CPU: &podTime},
			record.Group{Path: own, Charge: record.ChargeOverhead, Lane: lane, Controllers: []string{"memory"}, Memory: m, CPU: &ownTime})
	} else {
		if b.vm {
			podTime += shimCPU
		}
		r.Groups = append(r.Groups, record.Group{Path: pod, Charge: record.ChargePod, Lane: lane, Controllers: []string{"memory"}, Memory: m, CPU: &podTime})
	}
	r.Processes = append(r.Processes, main, shim)
}

func weighed(t *testing.T, rec *record.Record) *Judgement {
	t.Helper()
	o, err := Judge(rec)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range o.Figures() {
		if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			t.Fatalf("no number: %+v", f)
		}
	}
	return o
}

func codesOf(o *Judgement) []string {
	var out []string
	for _, f := range o.Findings {
		out = append(out, f.Code)
	}
	return out
}

func found(o *Judgement, code string) *record.Finding {
	for i := range o.Findings {
		if o.Findings[i].Code == code {
			return &o.Findings[i]
		}
	}
	return nil
}

// seed is Kata as the field report 000 found it: memory of the whole sandbox by
// phase, in MiB, with a limit of 1 GiB on the container.
func seed(only bool) func(*oversight) {
	return func(o *oversight) {
		o.kinds, o.names = []string{"containerd", "containerd"}, []string{"containerd/kata", "containerd/runc"}
		o.plan.Phases, o.plan.Rounds = []string{"idle", "10M", "1G", "10G"}, 3
		o.plan.Limits = setting.Limits{Memory: 1 << 30, CPU: 1}
		o.plan.Check = &PodFixed{CPU: 250, Memory: 160 * mi}
		held := map[string]float64{"idle": 110.7, "10M": 138.7, "1G": 1126, "10G": 1946}
		if only {
			held = map[string]float64{"idle": 110.2, "10M": 134, "1G": 1126, "10G": 1127}
		}
		pods := map[string]float64{"idle": 0.7, "10M": 1.1, "1G": 8.7, "10G": 8.8}
		o.box = func(name, phase string, _, _ int) box {
			if name == "containerd/runc" {
				return box{memory: int64(pods[phase] * float64(mi)), shim: 5 * mi}
			}
			return box{vm: true, overhead: !only, memory: int64((held[phase] - 20) * float64(mi)), shim: 18 * mi, kernel: 2 * mi, cpu: 0.4, shimCPU: 0.03}
		}
	}
}

func TestTheFieldReportsKata(t *testing.T) {
	o := weighed(t, oversee(seed(false)))
	if got := fmt.Sprintf("%d %s %s %s %s", len(o.Tables), o.Tables[0].Phase, o.Tables[1].Phase, o.Tables[2].Phase, o.Tables[3].Phase); got != "4 idle 10M 1G 10G" {
		t.Errorf("tables %s", got)
	}
	f := found(o, "overhead-unlimited")
	if f == nil || f.Target != "containerd/kata" || f.Op != "10G" || !strings.Contains(f.Message, "/kata_overhead/0") || !strings.Contains(f.Message, "110.7 MiB idle to 1.90 GiB") {
		t.Errorf("%+v", f)
	}
	if f := found(o, "charged-outside-pod"); f == nil || f.Level != "warning" || !strings.Contains(f.Message, "vmm 1.88 GiB in /kata_overhead/0") || !strings.Contains(f.Message, "1.90 GiB, without a limit") {
		t.Errorf("%+v", f)
	}
	if len(o.Classes) != 2 || o.Classes[0].Handler != "kata" {
		t.Fatalf("%+v", o.Classes)
	}
	// Of 1.9 GiB in the guest at 10G 1 GiB at most is the container's own.
	c := o.Classes[0]
	if want := int64(math.Ceil(float64(1946-1024)*1.1/4)) * 4 * mi; c.Memory != want || c.CPU != 30 {
		t.Errorf("memory %d, want %d; cpu %dm", c.Memory>>20, want>>20, c.CPU)
	}
	if !slices.ContainsFunc(c.Rule, func(s string) bool { return strings.Contains(s, "podFixed does not contain") }) {
		t.Errorf("%q", c.Rule)
	}
	if k := o.Check[0]; k.Enough || !k.Phases[0].MemoryEnough || !k.Phases[1].MemoryEnough || k.Phases[3].MemoryEnough || !k.Phases[3].CPUEnough {
		t.Errorf("%+v", k)
	}
	if k := o.Check[1]; !k.Enough {
		t.Errorf("%+v", k)
	}
	if f := found(o, "check-not-enough"); f == nil || !strings.Contains(f.Message, "phase 10G with 1 sandbox needs memory 922.0 MiB") {
		t.Errorf("%+v", f)
	}

	// With everything in the pod's group, nothing is outside and all phases fit.
	o = weighed(t, oversee(seed(true)))
	for _, f := range o.Findings {
		if f.Target == "containerd/kata" && (f.Code == "overhead-unlimited" || f.Code == "charged-outside-pod" || f.Code == "check-not-enough") {
			t.Errorf("%+v", f)
		}
	}
	if k := o.Check[0]; !k.Enough {
		t.Errorf("%+v", k)
	}
}

func TestAClassIsWhatKubernetesTakes(t *testing.T) {
	o := weighed(t, oversee(func(w *oversight) {
		w.kinds, w.names = []string{"host", "floor", "containerd"}, []string{"host", "floor", "cri+containerd/Kata_qemu"}
		w.box = func(string, string, int, int) box {
			return box{vm: true, memory: 120 * mi, shim: 20 * mi, cpu: 0.1, shimCPU: 0.2412}
		}
	}))
	want := "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata:\n  name: \"kata-qemu\"\nhandler: \"kata-qemu\"\noverhead:\n  podFixed:\n    memory: \"156Mi\"\n    cpu: \"250m\"\n"
	if len(o.Classes) != 1 || o.Classes[0].YAML != want {
		t.Errorf("%+v", o.Classes)
	}
}

func TestCalibration(t *testing.T) {
	tests := []struct {
		name string
		box  box // while loaded; idle it has 2 MiB
		off  string
	}{
		{"a workload that holds what it was told", box{memory: 66 * mi, shim: 9 * mi, cpu: 0.5}, ""},
		{"one that holds too little", box{memory: 63 * mi, shim: 9 * mi, cpu: 0.5}, "61.0 MiB were found"},
		{"a guest that holds it", box{vm: true, memory: 66 * mi, shim: 9 * mi, cpu: 0.5}, ""},
		{"a sentry", box{sentry: true, memory: 66 * mi, shim: 9 * mi, cpu: 0.5}, ""},
		{"a sentry that needs more to run it", box{sentry: true, memory: 66 * mi, cpu: 0.52}, "0.52 were found"},
		{"one that spins too much", box{memory: 66 * mi, cpu: 0.52}, "0.52 were found"},
	}
	for _, tt := range tests {
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
						r.Work = &record.Work{Command: "/probe spin", Spin: 0.5}
					}
				}
			}))
			if hold := o.Tables[1].Cells[0]; hold.Expected != float64(64*mi) || hold.Measured != float64(tt.box.memory-2*mi) {
				t.Errorf("expected %g, measured %g", hold.Expected, hold.Measured)
			}
			if spin := o.Tables[2].Cells[0]; spin.Expected != 0.5 || math.Abs(spin.Measured-tt.box.cpu) > 1e-9 {
				t.Errorf("expected %g, measured %g", spin.Expected, spin.Measured)
			}
			if idle := o.Tables[0].Cells[0]; idle.Expected != 0 {
				t.Errorf("idle has %g", idle.Expected)
			}
			switch f := found(o, "calibration-off"); {
			case tt.off == "" && f != nil, tt.off != "" && (f == nil || !strings.Contains(f.Message, tt.off)):
				t.Errorf("%+v", f)
			}
			if o.Tables[1].Command != "/probe hold" || o.Tables[3].Phase != "idle" || o.Tables[3].Sandboxes != 4 || len(o.Tables) != 4 {
				t.Errorf("%+v", o.Tables)
			}
		})
	}
}

func TestScaling(t *testing.T) {
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

func TestOverheadFindings(t *testing.T) {
	end := func(change func(r *record.Reading)) func(*oversight) {
		return func(w *oversight) {
			w.reading = func(r *record.Reading) {
				if r.Moment == record.MomentEnd {
					change(r)
				}
			}
		}
	}
	quiet := []string{"charged-outside-pod"} // a shim of 5 MiB in containerd's group
	tests := []struct {
		name    string
		change  func(*oversight)
		want    []string
		message string
	}{
		{"a quiet node has its shims outside of the pod, and nothing else", nil, nil, "shim 5.0 MiB in /system/containerd"},
		{"cgroups that were left are told", func(w *oversight) {
			w.reading = func(r *record.Reading) {
				if r.Moment == record.MomentAfter {
					r.Left = []string{"/kata_overhead/0"}
				}
			}
		}, []string{"cgroup-leaked"}, "3 cgroups were still there"},
		{"memory in no book is a large residual", func(w *oversight) {
			w.box = func(string, string, int, int) box { return box{memory: 100 * mi, shim: 5 * mi, extra: 5 * mi} }
		}, []string{"residual-large"}, "5.0 MiB of the node's change of 110.0 MiB is unexplained"},
		{"a little of it is not", func(w *oversight) {
			w.box = func(string, string, int, int) box { return box{memory: 100 * mi, shim: 5 * mi, extra: 3 * mi} }
		}, nil, ""},
		{"2 % of a large change are not", func(w *oversight) {
			w.box = func(string, string, int, int) box { return box{memory: 1000 * mi, shim: 5 * mi, extra: 19 * mi} }
		}, nil, ""},
		{"an engine that sees little is blind", end(func(r *record.Reading) {
			r.Engine = []record.Statistic{{Lane: 0, Source: "docker stats", Memory: 2 * mi, CPU: -1}}
		}), []string{"engine-blind"}, "docker stats reports 2.0 MiB where the sandboxes have 8.0 MiB (25 %)"},
		{"one that sees half is not, and one that says nothing is not", end(func(r *record.Reading) {
			r.Engine = []record.Statistic{{Lane: 0, Source: "docker stats", Memory: 4 * mi, CPU: -1}, {Lane: 0, Source: "cri", Memory: -1, CPU: -1}}
		}), nil, ""},
		{"what could not be read is told", end(func(r *record.Reading) {
			r.Problems.Denied, r.Problems.Examples = 1, []string{"/proc/1/smaps_rollup"}
		}), []string{"incomplete"}, "3 of 3 phases: 3 not permitted; such as /proc/1/smaps_rollup"},
		{"what ended while it was read is a note", end(func(r *record.Reading) { r.Problems.Gone = 2 }), []string{"vanished-while-read"}, "6 processes or cgroups ended"},
		{"the host has no pod to be outside of", func(w *oversight) {
			w.kinds = append(w.kinds, "host")
			w.names = append(w.names, "host")
		}, nil, ""},
		{"the exec that brings a load in is not charged outside for long", func(w *oversight) {
			w.plan.Phases = []string{"idle", "hold 64MiB"}
			w.reading = func(r *record.Reading) {
				if r.Phase == "hold 64MiB" {
					r.Processes = append(r.Processes, record.Process{Pid: 77, Start: 7, Role: record.RoleRuntime, Rule: "made up", Groups: []record.Membership{{Paths: map[string]string{"memory": "/user"}}}, Read: true, PSSAnon: 30 * mi})
					r.Host.Free -= 30 * mi
				}
			}
		}, nil, "5.0 MiB a sandbox"},
		{"missed ticks are told", func(w *oversight) { w.series = func(s *record.Series) { s.Missed = 1 } }, []string{"missed-ticks"}, "3 of 33 ticks"},
		{"a node in motion is told", end(func(r *record.Reading) { r.Settled = false }), []string{"node-unsettled"}, "3 of 9 readings"},
		{"a node under pressure is told", func(w *oversight) {
			w.reading = func(r *record.Reading) {
				r.Host.HavePSI, r.Host.PSIIO = true, r.Time/5
			}
		}, []string{"node-pressure"}, "waited for I/O (PSI) in phases without I/O: median 20.0 %"},
		{"as is steal", func(w *oversight) { w.reading = func(r *record.Reading) { r.Host.Steal = r.Time / 10 } }, []string{"node-pressure"}, "steal"},
		{"page cache that outweighs all else is told", func(w *oversight) {
			w.box = func(string, string, int, int) box { return box{memory: 2 * mi, shim: 5 * mi, cache: 300 * mi} }
		}, []string{"page-cache-heavy"}, "300.0 MiB of page cache"},
		{"throttling is told", end(func(r *record.Reading) { r.Groups[0].Throttled = sec }), []string{"throttled"}, "10.0 % of the phase"},
		{"what others took by two counts is told", func(w *oversight) {
			w.reading = func(r *record.Reading) {
				r.Host.Anon = 4 << 30
				if r.Moment == record.MomentEnd {
					r.Host.Anon += 10 * mi
					r.Host.Others = 23 * mi
					r.Host.Free -= 3 * mi
				}
			}
		}, []string{"others-unclear"}, "23.0 MiB by their own RssAnon, 3.0 MiB by the node's anonymous memory"},
		{"two counts that agree are not", func(w *oversight) {
			w.reading = func(r *record.Reading) {
				r.Host.Anon = 4 << 30
				if r.Moment == record.MomentEnd {
					r.Host.Anon += 10 * mi
					r.Host.Others = 3 * mi
					r.Host.Free -= 3 * mi
				}
			}
		}, nil, ""},
		{"kernel memory that is counted beyond the node's is told", func(w *oversight) {
			w.box = func(string, string, int, int) box { return box{memory: 2 * mi, shim: 5 * mi, kernel: 9 * mi} }
			w.reading = func(r *record.Reading) { r.Host.Free, r.Host.Slab = r.Host.Free+r.Host.Slab, 1<<30 }
		}, []string{"kernel-overcounted"}, "9.0 MiB of kernel memory are counted by name, 9.0 MiB more than the node's grew by (allowed: 4.0 MiB"},
		{"a little beyond it is not", func(w *oversight) {
			w.box = func(string, string, int, int) box { return box{memory: 2 * mi, shim: 5 * mi, kernel: 3 * mi} }
			w.reading = func(r *record.Reading) { r.Host.Free, r.Host.Slab = r.Host.Free+r.Host.Slab, 1<<30 }
		}, nil, ""},
		{"nor is it on a node in motion", func(w *oversight) {
			w.box = func(string, string, int, int) box { return box{memory: 2 * mi, shim: 5 * mi, kernel: 9 * mi} }
			w.reading = func(r *record.Reading) {
				r.Host.Free, r.Host.Slab, r.Settled = r.Host.Free+r.Host.Slab, 1<<30, r.Moment != record.MomentEnd
			}
		}, []string{"node-unsettled"}, ""},
		{"a phase that failed is told and counted", end(func(r *record.Reading) {
			if r.Round == 1 {
				r.Failure = &record.Failure{Kind: record.FailExit, Detail: "it exited 1", Command: "fio"}
			}
		}), []string{"failed-operations"}, "phase idle failed in 1 of 3 rounds; the first: it exited 1"},
		{"one that was interrupted is not", end(func(r *record.Reading) {
			if r.Round == 1 {
				r.Failure = &record.Failure{Kind: record.FailInterrupted}
			}
		}), nil, ""},
		{"a record without an end is told", func(w *oversight) { w.change = func(rec *record.Record) { rec.End = nil } }, []string{"cut-off"}, ""},
		{"what the experiment found is taken over, and nothing else", func(w *oversight) {
			w.change = func(rec *record.Record) {
				rec.Findings = []record.Finding{{Code: finding.NotReached}, {Code: finding.PhaseSkipped}, {Code: "engine-blind"}}
			}
		}, []string{"sandboxes-not-reached", "phase-skipped"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(tt.change))
			got, want := codesOf(o), slices.Concat(tt.want, quiet)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v\n%+v", got, want, o.Findings)
			}
			code := "charged-outside-pod"
			if tt.want != nil {
				code = tt.want[0]
			}
			if f := found(o, code); f != nil && !strings.Contains(f.Message, tt.message) {
				t.Errorf("message %q lacks %q", f.Message, tt.message)
			}
			for _, f := range o.Findings {
				if f.Level != "" && f.Advice == "" {
					t.Errorf("no advice: %+v", f)
				}
			}
		})
	}
}

func TestACellIsItsMedianRound(t *testing.T) {
	sizes := []int64{30, 10, 20, 40}
	rec := oversee(func(w *oversight) {
		w.plan.Rounds = 4
		w.box = func(_, _ string, _, round int) box { return box{memory: sizes[round] * mi} }
	})
	c := weighed(t, rec).Tables[0].Cells[0]
	if c.Rounds != 4 || c.Ledger.Sum != 20*mi || c.Sum.Value != float64(25*mi) || c.Sum.Bounded {
		t.Errorf("%+v", c)
	}
	for i := range rec.Readings {
		if r := &rec.Readings[i]; r.Round == 2 && r.Moment == record.MomentEnd {
			r.Processes[0].Read = false
		}
	}
	if c := weighed(t, rec).Tables[0].Cells[0]; c.Rounds != 3 || c.Ledger.Sum != 30*mi {
		t.Errorf("a round that is incomplete counts: %+v", c)
	}
}

func TestSeriesAreRates(t *testing.T) {
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
		if f := figure.Find(all, "over-time", "series", name); f.Unit != want.unit || f.Series == nil || !reflect.DeepEqual(*f.Series, want.series) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d series", len(all))
	}
}

func TestAnyCutOfARecordIsJudged(t *testing.T) {
	whole := oversee(seed(false))
	for n := range len(whole.Readings) + 1 {
		rec := *whole
		rec.Readings, rec.Series, rec.End = whole.Readings[:n], whole.Series[:n/3], nil
		o := weighed(t, &rec)
		if o.Failed != 0 {
			t.Fatalf("%d readings: %d failed", n, o.Failed)
		}
	}
	rec := *whole
	rec.Readings = whole.Readings[1:] // its first visit has no beginning
	if o := weighed(t, &rec); o.Failed != 4 {
		t.Errorf("%d failed", o.Failed)
	}
	rec = *whole
	rec.Header.Experiment = "lifecycle"
	if _, err := Judge(&rec); err == nil {
		t.Error("a lifecycle record is judged for overhead")
	}
}

func TestACheckCountsOnlyWhatWasMeasured(t *testing.T) {
	at := func(phase string, change func(r *record.Reading)) func(*record.Reading) {
		return func(r *record.Reading) {
			if r.Phase == phase && r.Moment == record.MomentEnd {
				change(r)
			}
		}
	}
	tests := []struct {
		name    string
		reading func(*record.Reading)
		change  func(*record.Record)
		missing string
	}{
		{"phases that were all measured are enough", nil, nil, ""},
		{"a phase that was left out is not", nil, func(rec *record.Record) {
			rec.Readings = slices.DeleteFunc(rec.Readings, func(r record.Reading) bool { return r.Phase == "1G" })
		}, "phase 1G with 1 sandbox was not measured"},
		{"a phase that failed in all rounds is not", at("1G", func(r *record.Reading) {
			r.Failure = &record.Failure{Kind: record.FailExit, Detail: "it exited 1"}
		}), nil, "phase 1G with 1 sandbox was not measured"},
		{"one that failed in some rounds is judged by the others", at("1G", func(r *record.Reading) {
			if r.Round == 0 {
				r.Failure = &record.Failure{Kind: record.FailExit, Detail: "it exited 1"}
			}
		}), nil, ""},
		{"a phase that was not read whole is not", at("idle", func(r *record.Reading) { r.Problems.Denied = 1 }), nil, "phase idle with 1 sandbox was not measured"},
		{"a count that was not reached is not", nil, func(rec *record.Record) {
			rec.Readings = slices.DeleteFunc(rec.Readings, func(r record.Reading) bool { return r.Sandboxes == 5 })
		}, "phase idle with 5 sandboxes was not measured"},
		{"a target without any figure is not", nil, func(rec *record.Record) { rec.Readings, rec.Series = nil, nil }, "phase 1G with 1 sandbox was not measured"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(func(w *oversight) {
				w.plan.Phases, w.plan.Sandboxes = []string{"idle", "1G"}, []int{1, 5}
				w.plan.Check = &PodFixed{CPU: 250, Memory: 160 * mi}
				w.reading, w.change = tt.reading, tt.change
			}))
			if len(o.Check) != 1 || len(o.Check[0].Phases) != 3 || o.Check[0].Enough != (tt.missing == "") {
				t.Fatalf("%+v", o.Check)
			}
			for _, p := range o.Check[0].Phases {
				if !p.Measured && (p.MemoryEnough || p.CPUEnough) {
					t.Errorf("%+v", p)
				}
			}
			if f := found(o, "check-not-enough"); (f == nil) != (tt.missing == "") || f != nil && !strings.Contains(f.Message, tt.missing) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestWhatAClassIsMadeOf(t *testing.T) {
	at := func(phase string, change func(r *record.Reading)) func(*record.Reading) {
		return func(r *record.Reading) {
			if r.Phase == phase && r.Moment == record.MomentEnd {
				change(r)
			}
		}
	}
	tests := []struct {
		name    string
		change  func(*oversight)
		memory  int64 // MiB
		cpu     int64
		rule    string
		unknown bool // some phase's CPU
		enough  bool // 90m
	}{
		{"the most of all phases", nil, 44, 80, "cpu: the most that a sandbox used beside its workload, 80.0m in phase 1G", false, true},
		{"a daemon's memory is no pod's", func(w *oversight) {
			w.reading = func(r *record.Reading) {
				r.Processes = append(r.Processes, record.Process{Pid: 9, Start: 1, Name: "containerd", Role: record.RoleDaemon, Rule: "made up", Lane: -1, Read: true, PSSAnon: 50*mi + int64(r.Sandboxes)*100*mi})
			}
		}, 44, 80, "the daemon's memory is no pod's", false, true},
		{"a phase that failed is named", func(w *oversight) {
			w.reading = at("1G", func(r *record.Reading) {
				r.Failure = &record.Failure{Kind: record.FailExit, Detail: "it exited 1"}
			})
		}, 24, 20, "phases 1G with 1 sandbox gave no figures and are not in it", false, false},
		{"a phase that was left out is named", func(w *oversight) {
			w.change = func(rec *record.Record) {
				rec.Readings = slices.DeleteFunc(rec.Readings, func(r record.Reading) bool { return r.Phase == "1G" })
			}
		}, 24, 20, "phases 1G with 1 sandbox gave no figures and are not in it", false, false},
		{"of a phase with few ticks no CPU is taken", func(w *oversight) {
			w.series = func(s *record.Series) {
				if s.Phase == "1G" {
					s.Times = s.Times[:9]
				}
			}
		}, 44, 20, "cpu: not taken from phase 1G with 1 sandbox, which lasted under 1s or had fewer than 10 ticks", true, true},
		{"nor of one that was over at once", func(w *oversight) {
			w.change = func(rec *record.Record) {
				var begin int64
				for i := range rec.Readings {
					r := &rec.Readings[i]
					if r.Phase == "1G" && r.Moment == record.MomentBegin {
						begin = r.Time
					} else if r.Phase == "1G" {
						r.Time = begin + sec - 1
					}
				}
				for i := range rec.Series {
					if s := &rec.Series[i]; s.Phase == "1G" {
						first := s.Times[0] - sec // the phase's begin
						for k := range s.Times {
							s.Times[k] = first + int64(k)
						}
					}
				}
			}
		}, 44, 20, "cpu: not taken from phase 1G with 1 sandbox", true, true},
		{"where no phase was long enough nothing is enough", func(w *oversight) { w.series = func(s *record.Series) { s.Times = nil } }, 44, 0, "and none is recommended\ncpu: not taken from phase idle", true, false},
		{"a VMM whose vCPUs were not told has the guest's work in it", func(w *oversight) {
			w.reading = func(r *record.Reading) {
				for i := range r.Processes {
					if p := &r.Processes[i]; p.Role == record.RoleVMM {
						p.VCPU, p.Groups = 0, p.Groups[:1]
					}
				}
			}
		}, 44, 80, "the guest's own work is in it", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(func(w *oversight) {
				w.plan.Phases = []string{"idle", "1G"}
				w.plan.Check = &PodFixed{CPU: 90, Memory: 160 * mi}
				w.box = func(_, phase string, _, _ int) box {
					if phase == "idle" {
						return box{vm: true, memory: 10 * mi, shim: 10 * mi, cpu: 0.4, shimCPU: 0.02}
					}
					return box{vm: true, memory: 29 * mi, shim: 10 * mi, cpu: 0.4, shimCPU: 0.08}
				}
				if tt.change != nil {
					tt.change(w)
				}
			}))
			if len(o.Classes) != 1 {
				t.Fatalf("%+v", o.Classes)
			}
			c := o.Classes[0]
			if c.Memory != tt.memory*mi || c.CPU != tt.cpu || !strings.Contains(strings.Join(c.Rule, "\n"), tt.rule) {
				t.Errorf("%d MiB, %dm\n%s", c.Memory/mi, c.CPU, strings.Join(c.Rule, "\n"))
			}
			unknown := slices.ContainsFunc(o.Check[0].Phases, func(p CheckPhase) bool { return p.CPUUnknown })
			if unknown != tt.unknown || o.Check[0].Enough != tt.enough || (found(o, "check-not-enough") == nil) != tt.enough {
				t.Errorf("%+v", o.Check[0])
			}
		})
	}
}

func TestRoomIsForAllThatASandboxTakes(t *testing.T) {
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

func TestAnOverheadGroupGrewByTheMostItHad(t *testing.T) {
	tests := []struct {
		name   string
		peaks  map[record.Moment]int64 // MiB, in the phase 10M
		series []int64
		to     string
	}{
		{"what it has back to idle's at the end is told by its peak", map[record.Moment]int64{record.MomentBegin: 120, record.MomentEnd: 900}, nil, "110.0 MiB idle to 900.0 MiB"},
		{"a peak from before the phase is not the phase's", map[record.Moment]int64{record.MomentBegin: 900, record.MomentEnd: 900}, nil, ""},
		{"without a peak by its series", nil, []int64{110, 700, 110}, "110.0 MiB idle to 700.0 MiB"},
		{"a group that stays as it is did not grow", nil, []int64{110, 120, 110}, ""},
	}
	for _, tt := range tests {
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
			if f := found(o, "overhead-unlimited"); (f == nil) != (tt.to == "") || f != nil && !strings.Contains(f.Message, tt.to) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestALoadAboveItsLimitIsExplained(t *testing.T) {
	tests := []struct {
		name  string
		exit  int
		limit int64
		want  string
	}{
		{"killed above its limit", 137, 32 * mi, "the limit of 32.0 MiB is below what the load holds, 64.0 MiB"},
		{"killed at it, for the program needs some too", 137, 64 * mi, "the limit of 64.0 MiB is below what the load holds, 64.0 MiB and its own program"},
		{"killed below it has another cause", 137, 128 * mi, "run it by hand"},
		{"killed without one too", 137, 0, "run it by hand"},
		{"another exit is not the limit's doing", 1, 32 * mi, "run it by hand"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := weighed(t, oversee(func(w *oversight) {
				w.plan.Phases, w.plan.Limits = []string{"idle", "hold 64MiB"}, setting.Limits{Memory: tt.limit}
				w.reading = func(r *record.Reading) {
					if r.Phase == "hold 64MiB" && r.Moment == record.MomentEnd {
						r.Failure = &record.Failure{Kind: record.FailExit, Exit: tt.exit, Detail: "exit status", Command: "/probe hold"}
					}
				}
			}))
			if f := found(o, "failed-operations"); f == nil || !strings.Contains(f.Advice, tt.want) {
				t.Errorf("%+v", f)
			}
		})
	}
}
