package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// run builds a record with times that are easy to verify.
type run struct {
	rec  *record.Record
	plan lifecycle.Options
}

func newRun(lanes []int, ops ...subject.Op) *run {
	r := &run{plan: lifecycle.Defaults(), rec: &record.Record{
		Header: record.Header{
			Type: record.TypeHeader, Schema: record.Schema, RunID: "k3v9x2", Experiment: "lifecycle",
			Started: time.Date(2025, 3, 1, 12, 30, 0, 0, time.UTC), Command: []string{"tare", "lifecycle"}, Version: "v0.1.0",
			Environment: record.Environment{
				Kernel: "6.8.0-31-generic", OS: "Ubuntu 24.04 LTS", Arch: "x86_64", CPUModel: "AMD EPYC 7B13", CPUs: 8,
				Governor: "performance", Memory: 32 << 30, Cgroup: "v2", RootFS: "ext4", ClockSource: "tsc", LoadStart: 0.12,
				MissingCaps: []string{"SYS_ADMIN"},
			},
		},
		End: &record.End{Type: record.TypeEnd, Status: "done", Why: "rounds", Elapsed: 92_300_000_000},
	}}
	r.plan.Lanes, r.plan.Ops, r.plan.Seed = lanes, ops, 42
	return r
}

func (r *run) judged(t *testing.T) (*record.Record, *lifecycle.Judgement) {
	t.Helper()
	for _, target := range r.rec.Targets {
		r.plan.Targets = append(r.plan.Targets, target.Name)
	}
	text := must.Get(json.Marshal(r.plan))(t)
	r.rec.Header.Plan = text
	l := must.Get(lifecycle.Judge(r.rec))(t)
	return r.rec, l
}

// runtime adds an OCI runtime with all operations.
func (r *run) runtime(name, version string) *record.Target {
	ops := map[string]record.Operation{}
	for op, arguments := range map[subject.Op]string{
		subject.Create: "create --bundle BUNDLE --pid-file FILE ID", subject.Start: "start ID", subject.Stop: "kill ID TERM",
		subject.Remove: "delete ID", subject.Run: "run --detach --bundle BUNDLE --pid-file FILE ID",
	} {
		def := record.Operation{Command: name + " --root DIR " + arguments, Done: record.StampReturned, Means: "the command has exited with 0"}
		if op == subject.Stop {
			def.Done, def.Means = record.StampExited, "the container's process has exited on SIGTERM"
		}
		ops[string(op)] = def
	}
	return r.add(record.Target{Name: name, Kind: "oci", Version: version, Clock: "host", Operations: ops})
}

func (r *run) host() *record.Target {
	start := record.Operation{Command: "fork and exec of PROBE ID", Done: record.StampReturned, Means: "the child has exec'd the workload"}
	absent := record.Operation{Absent: "a plain process has nothing to create or remove"}
	return r.add(record.Target{Name: "host", Kind: "host", Clock: "host", Operations: map[string]record.Operation{
		"create": absent, "rm": absent, "start": start, "run": start,
		"stop": {Command: "kill(PID, SIGTERM)", Done: record.StampExited, Means: "SIGTERM was sent and the process has exited"},
	}})
}

func (r *run) add(t record.Target) *record.Target {
	t.Type = record.TypeTarget
	r.rec.Targets = append(r.rec.Targets, t)
	return &r.rec.Targets[len(r.rec.Targets)-1]
}

// spreads are deviations of ten rounds around 0. Both their median and the mean of the
// middle eight are 0.
var spreads = []int64{-3, 1, 2, 9, -1, 0, 3, -2, 0, -9}

// times adds one round per element of spreads. Each lane takes about the given number of
// microseconds, the last lane exactly.
func (r *run) times(name string, op subject.Op, lanes int, micros, step int64) {
	for round, s := range spreads {
		r.batch(name, op, lanes, round, 1000*(micros+s*step))
	}
}

func (r *run) batch(name string, op subject.Op, lanes, round int, ns int64) {
	const released = 1_000_000_000
	b := record.Batch{Type: record.TypeBatch, Phase: record.PhaseMeasure, Round: round, Target: name, Op: string(op), Lanes: lanes, Released: released}
	for lane := range lanes {
		s := record.Sample{Lane: lane, Start: released}
		took := ns
		if lanes > 1 {
			s.Start += int64(lane) * 2000
			took = ns/2 + ns/2*int64(lane)/int64(lanes-1) - int64(lane)*2000
		}
		s.Returned, s.Exited = s.Start+took, s.Start+took
		if op == subject.Start || op == subject.Run {
			s.First, s.Seen = s.Start+took*9/10, s.Start+took*95/100
		}
		s.UserCPU, s.SysCPU, s.MaxRSS = took/4, took/2, 12<<20
		b.Samples = append(b.Samples, s)
	}
	if lanes > 1 {
		b.OwnCPU = ns / 10
	}
	r.rec.Batches = append(r.rec.Batches, b)
}

// fail makes the first lane of a round fail.
func (r *run) fail(name string, op subject.Op, round int, f record.Failure) {
	i := slices.IndexFunc(r.rec.Batches, func(b record.Batch) bool {
		return b.Target == name && b.Op == string(op) && b.Round == round
	})
	r.rec.Batches[i].Samples[0].Failure = &f
}

// pair returns a typical report: two runtimes and the host.
func pair(lanes ...int) *run {
	r := newRun(lanes, subject.ContainerOps...)
	r.host()
	r.runtime("runc", "1.1.12")
	r.runtime("crun", "1.14.4").Notes = []string{"needed --cgroup-manager=disabled here"}
	for _, n := range lanes {
		scale := int64(1)
		if n > 1 {
			scale = 20
		}
		for i, op := range subject.ContainerOps {
			base := int64(i+1) * 7000
			if op != subject.Create && op != subject.Remove {
				r.times("host", op, n, 420*scale, scale)
			}
			r.times("runc", op, n, base*scale, 100*scale)
			r.times("crun", op, n, (base/2+int64(i)*base/8)*scale, 100*scale)
		}
	}
	return r
}

func six() *run {
	r := newRun([]int{1}, subject.Create, subject.Run)
	for i := range 6 {
		name := fmt.Sprintf("containerd/runtime-%d", i+1)
		r.runtime(name, "1.0")
		r.times(name, subject.Create, 1, int64(i+3)*5000, 10)
		r.times(name, subject.Run, 1, int64(i+3)*9000, 10)
	}
	return r
}

// engines returns a run of Docker with a daemon and shims, and Podman with a monitor.
func engines(lanes ...int) *run {
	const mib = 1 << 20
	r := newRun(lanes, subject.Create, subject.Remove)
	r.runtime("docker/runc", "27.5.1")
	r.runtime("podman/runc", "5.3.1")
	for _, n := range lanes {
		r.times("docker/runc", subject.Create, n, int64(40000*n), 10)
		r.times("docker/runc", subject.Remove, n, int64(25000*n), 10)
		r.times("podman/runc", subject.Create, n, int64(90000*n), 10)
		r.times("podman/runc", subject.Remove, n, int64(70000*n), 10)
	}
	for i := range r.rec.Batches {
		b := &r.rec.Batches[i]
		n, before := int64(b.Lanes), int64(90+b.Round)*mib
		switch {
		case b.Target == "docker/runc" && b.Op == "create":
			b.Roles = []record.Usage{
				{Role: record.RoleDaemon, Before: 2, After: 2, CPU: 12_400_000 * n, PSSBefore: before, PSSPeak: before + 5*mib*n, PSSAfter: before + 3*mib*n/2},
				{Role: record.RoleShim, After: b.Lanes, CPU: 7_000_000 * n, PSSPeak: 4 * mib * n, PSSAfter: 4 * mib * n},
			}
		case b.Target == "docker/runc":
			b.Roles = []record.Usage{
				{Role: record.RoleDaemon, Before: 2, After: 2, CPU: 6_100_000 * n, PSSBefore: before + mib*n, PSSPeak: before + mib*n, PSSAfter: before},
				{Role: record.RoleShim, Before: b.Lanes, PSSBefore: 4 * mib * n, PSSPeak: 4 * mib * n},
			}
		case b.Op == "create":
			b.Roles = []record.Usage{{Role: record.RoleMonitor, After: b.Lanes, CPU: 900_000 * n, PSSPeak: mib * n / 4, PSSAfter: mib * n / 4, Unread: b.Round / 9}}
		}
	}
	return r
}

// pods returns a run of two CRI endpoints and an engine without pods.
func pods(lanes ...int) *run {
	r := newRun(lanes, subject.Ops...)
	r.plan.Title, r.plan.Subject = "Pods, and containers in them", "cri+containerd/runc"
	r.cri("cri+cri-o/runc", "1.33.0")
	r.cri("cri+containerd/runc", "2.1.0")
	plain := r.runtime("docker/runc", "27.5.1")
	for _, op := range subject.PodOps {
		plain.Operations[string(op)] = record.Operation{Absent: "containers of Docker have no pods"}
	}
	for _, n := range lanes {
		for i, op := range subject.Ops {
			base := int64(i+3) * 20_000 * int64(n)
			r.times("cri+cri-o/runc", op, n, base, 10)
			r.times("cri+containerd/runc", op, n, base*5/4, 10)
			if !slices.Contains(subject.PodOps, op) {
				r.times("docker/runc", op, n, base/2, 10)
			}
		}
	}
	return r
}

// cri adds an endpoint with containers in pods.
func (r *run) cri(name, version string) {
	ops := map[string]record.Operation{}
	for op, call := range map[subject.Op]string{
		subject.RunPod: "RunPodSandbox", subject.Create: "CreateContainer", subject.Start: "StartContainer", subject.Stop: "StopContainer",
		subject.Remove: "RemoveContainer", subject.StopPod: "StopPodSandbox", subject.RemovePod: "RemovePodSandbox",
		subject.Run: "RunPodSandbox, CreateContainer, StartContainer",
	} {
		ops[string(op)] = record.Operation{Command: "runtime.v1.RuntimeService/" + call, Done: record.StampReturned, Means: "the call has been answered"}
	}
	r.add(record.Target{Name: name, Kind: "cri", Version: version, Clock: "host", Operations: ops})
}

// cluster returns a run of two RuntimeClasses, with the stamps of a watch and of the
// node's engine.
func cluster(lanes ...int) *run {
	r := newRun(lanes, subject.Remove, subject.Run)
	for i, name := range []string{"kubernetes/runc", "kubernetes/crun"} {
		r.add(record.Target{Name: name, Kind: "kubernetes", Version: "v1.34.4", Clock: "host", Operations: map[string]record.Operation{
			"run": {Command: "POST /api/v1/namespaces/default/pods ID", Done: record.StampReady, Means: "the pod's condition Ready is true"},
			"rm":  {Command: "DELETE /api/v1/namespaces/default/pods/ID", Done: record.StampGone, Means: "the pod is gone"},
		}})
		for _, n := range lanes {
			r.times(name, subject.Run, n, int64(1_800_000-i*200_000)*int64(n), 100)
			r.times(name, subject.Remove, n, int64(1_200_000-i*100_000)*int64(n), 100)
		}
	}
	for i := range r.rec.Batches {
		for k := range r.rec.Batches[i].Samples {
			s := &r.rec.Batches[i].Samples[k]
			took := s.Returned - s.Start
			at := func(percent int64) int64 { return s.Start + took*percent/100 }
			s.Returned, s.Seen, s.UserCPU, s.SysCPU, s.MaxRSS = at(1), 0, 0, 0, 0
			if s.First == 0 {
				s.Exited, s.Gone = at(70), at(100)
				continue
			}
			s.Exited = 0
			s.Scheduled, s.NodeSandbox, s.Sandbox, s.NodeStarted, s.First, s.Running, s.Ready = at(2), at(40), at(42), at(61), at(60), at(63), at(100)
			s.Told = map[string]int64{"created": 1_767_225_600_000_000_000, "Ready": 1_767_225_602_000_000_000}
		}
	}
	return r
}

func failing() *run {
	r := pair(1)
	exit := record.Failure{Kind: record.FailExit, Detail: "exit status 1", Command: "crun start tare-7", Exit: 1, Output: "cannot open `/sys/fs/cgroup`: no space left\n"}
	for _, round := range []int{2, 5, 7} {
		r.fail("crun", subject.Start, round, exit)
	}
	for round := range spreads {
		r.fail("crun", subject.Run, round, exit)
	}
	r.rec.End = nil
	return r
}

// guest returns a run with a workload on its own clock and too few rounds.
func guest() *run {
	r := newRun([]int{1}, subject.Start, subject.Run)
	r.runtime("runc", "1.1.12")
	r.runtime("kata", "3.2.0").Clock = "guest"
	for _, name := range []string{"runc", "kata"} {
		for round, ns := range []int64{980_000, 999_600, 1_010_000} {
			if name == "kata" {
				ns *= 1900
			}
			r.batch(name, subject.Start, 1, round, ns)
			r.batch(name, subject.Run, 1, round, 2*ns)
		}
	}
	r.rec.End = &record.End{Status: "interrupted", Elapsed: 4_100_000_000}
	return r
}

// Hostile text that is dangerous if interpreted.
const (
	hostileName    = "=cmd|'/c calc'!A0\x1b]0;owned\a`x`<b>"
	hostileVersion = "1.0\n# heading\r\n\u202evil\x1b[2J [link](javascript:x) \u009b31m"
)

func hostile() *run {
	r := newRun([]int{1, 100}, subject.Create, subject.Start)
	r.rec.Header.Version, r.rec.Header.RunID = hostileVersion, hostileVersion
	r.rec.Header.Environment.Kernel, r.rec.Header.Environment.CPUModel = hostileVersion, hostileVersion
	r.plan.Title, r.plan.Subject = hostileVersion, hostileVersion // the names are not targets
	r.rec.Header.Environment.Cgroup, r.rec.Header.Environment.OS = hostileVersion, hostileVersion
	r.rec.End.Why = hostileVersion
	r.runtime("runc", hostileVersion)
	bad := r.runtime(hostileName, hostileVersion)
	bad.Notes = []string{hostileVersion}
	for op, def := range bad.Operations {
		def.Means = hostileVersion
		bad.Operations[op] = def
	}
	bad.Operations["start"] = record.Operation{Absent: hostileVersion}
	for _, lanes := range r.plan.Lanes {
		for _, name := range []string{"runc", hostileName} {
			r.times(name, subject.Create, lanes, 5000, 20)
		}
		r.times("runc", subject.Start, lanes, 6000, 20)
	}
	r.fail(hostileName, subject.Create, 1, record.Failure{Kind: record.FailExit, Detail: hostileVersion, Command: hostileName, Output: hostileVersion})
	for i := range r.rec.Batches {
		r.rec.Batches[i].Roles = []record.Usage{{Role: hostileVersion, Before: 1, After: 1, Unread: 1}}
	}
	r.rec.Findings = []record.Finding{{Code: finding.LeftBehind, Level: hostileVersion, Target: hostileName, Op: hostileVersion, Message: hostileVersion, Advice: hostileVersion}}
	return r
}
