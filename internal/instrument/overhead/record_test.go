package overhead

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const (
	mi  = int64(1) << 20
	sec = int64(1e9)
)

// box is the usage of one simulated sandbox at the end of a phase.
type box struct {
	vm       bool  // has a VMM, and no workload on the host
	sentry   bool  // has a gVisor sentry
	memory   int64 // memory of the workload, VMM or sentry
	shim     int64
	kernel   int64
	cpu      float64 // CPUs of the workload, the VMM's vCPUs or the sentry
	shimCPU  float64
	overhead bool  // all but the vCPUs are in an overhead cgroup
	usage    int64 // usage of the charged cgroup; 0 for the sum
	extra    int64 // node memory that belongs to no role
	limit    int64
	cache    int64
}

// oversight builds overhead records.
type oversight struct {
	plan    Options
	kinds   []string // kind of each target in names
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

// boxes makes all boxes equal to b.
func boxes(b box) func(*oversight) {
	return func(o *oversight) { o.box = func(string, string, int, int) box { return b } }
}

// readings changes the readings.
func readings(change func(r *record.Reading)) func(*oversight) {
	return func(o *oversight) { o.reading = change }
}

// failed fails the phase of a reading.
func failed(r *record.Reading) {
	r.Failure = &record.Failure{Kind: record.FailExit, Detail: "it exited 1"}
}

// without drops some readings from a record.
func without(which func(r record.Reading) bool) func(*record.Record) {
	return func(rec *record.Record) { rec.Readings = slices.DeleteFunc(rec.Readings, which) }
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
				for _, phase := range withIdle(o.plan.Phases) {
					if i > 0 && phase != "idle" {
						continue
					}
					b := o.box(name, phase, n, round)
					add(record.MomentBegin, phase, n, b)
					s := record.Series{Type: record.TypeSeries, Round: round, Target: name, Phase: phase, Sandboxes: n, Interval: sec, Times: []int64{now, now + sec, now + 2*sec},
						Values: map[string][]int64{record.SeriesPodCPU: {0, sec / 2, -1}, record.SeriesNodeUsed: {5, 6, 7}, record.SeriesNodeWrite: {0, 100, 400}, record.SeriesNodeLoad: {1500, 1500, 1500}}}
					for i := int64(3); i < 10; i++ { // ticks without a reading
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

// sandbox adds one sandbox to a reading. Its shim is in the daemon's cgroup or in the
// VMM's.
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
	o := must.Get(Judge(rec))(t)
	for _, f := range o.Figures() {
		must.That(t, !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0), "NaN or infinity: %+v", f)
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

// seed sets Kata's usage in field report 000: the memory of the whole sandbox in each
// phase. The container limit is 1 GiB. only is Kata's sandbox_cgroup_only.
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
