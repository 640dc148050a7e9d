package startup

import (
	"fmt"
	"math"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/record"
)

// begun builds a judgement of starts with figures that are easy to check.
type begun struct {
	rec *record.Record
	v   Judgement
}

func newBegun(live bool) *begun {
	s := &begun{rec: &record.Record{
		Header: record.Header{Type: record.TypeHeader, Schema: record.Schema, RunID: "abc123", Version: "v1.0.0", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Environment: record.Environment{Kernel: "6.8.0", CPUs: 8, CPUModel: "AMD EPYC 7B13", Memory: 64 << 30, Cgroup: "v2"}},
		End: &record.End{Type: record.TypeEnd, Status: "done"},
	}}
	s.rec.Header.Experiment, s.rec.Header.Command = "startup", []string{"tare", "startup"}
	s.rec.End.Elapsed = 14_200_000_000
	s.v.Plan = Defaults()
	s.v.Record = s.rec
	s.v.Plan.Seed, s.v.Live = 42, live
	if !live {
		s.rec.Header.Environment = record.Environment{}
		s.rec.Header.Command = []string{"tare", "startup", "--log", "kata.log"}
	}
	return s
}

// monotonic is the time of the starts on the host's clock.
const monotonic = int64(81_234_000_000_000)

// ms converts milliseconds to ns.
func ms(v float64) int64 { return int64(v * 1e6) }

// lived is a process and its row.
type lived struct {
	pid, depth  int
	kind, name  string
	born, ended float64 // ms since the start
	cpu         float64 // ms
	exit        int     // -1: still running
	first       float64
}

// startOf builds an observed start of processes.
func startOf(target string, round int, wall, first float64, all []lived) *Drawn {
	s := &record.Start{Type: record.TypeStart, Round: round, Target: target, Method: record.MethodBPF, Clock: record.ClockMonotonic,
		Began: monotonic, First: monotonic + ms(first), Ended: monotonic + ms(wall), Command: "docker run --rm --runtime runc busybox true", Tracing: ms(0.9)}
	d := &Drawn{Start: s}
	for _, l := range all {
		p := record.StartProcess{Pid: l.pid, Kind: l.kind, Name: l.name, Program: l.name, Born: monotonic + ms(l.born), CPU: ms(l.cpu)}
		r := trace.Row{Part: trace.Part{Name: l.name, Kind: l.kind, Began: monotonic + ms(l.born), Ended: monotonic + ms(l.ended), CPU: ms(l.cpu)}, Depth: l.depth}
		if l.exit >= 0 {
			exit := l.exit
			p.Exit, p.Ended, r.Exit = &exit, r.Ended, &exit
		} else {
			r.Open, r.Ended = true, s.Ended
		}
		if l.first > 0 {
			r.First = monotonic + ms(l.first-0.3) // exec of the process
		}
		s.Processes, d.Rows = append(s.Processes, p), append(d.Rows, r)
	}
	return d
}

func part(d *Drawn, name, kind string, took, cpu float64) {
	began := d.Start.Began
	if n := len(d.Parts); n > 0 {
		began = d.Parts[n-1].Ended
	}
	d.Parts = append(d.Parts, trace.Part{Name: name, Kind: kind, Began: began, Ended: began + ms(took), CPU: ms(cpu)})
}

func step(name, kind string, tookMS, percent, cpuMS, wallMS float64) Step {
	s := Step{Name: name, Kind: kind, Took: around(tookMS*1e6, percent), Share: rounded(tookMS / wallMS), Times: 1}
	if cpuMS >= 0 {
		s.CPU = around(cpuMS*1e6, percent)
	}
	return s
}

// watched returns two observed starts: docker with runc, and a pod with CNI whose engine
// waits half a second.
func watched() *begun {
	s := newBegun(true)
	docker := startOf("docker/runc", 2, 243, 201, []lived{
		{4101, 0, record.KindClient, "docker run", 0, 243, 31, 0, 0},
		{811, 0, record.KindDaemon, "dockerd", 0, 243, 44, -1, 0},
		{4120, 1, record.KindHelper, "iptables", 38, 41.5, 2.8, 0, 0},
		{4133, 0, record.KindShim, "containerd-shim-runc-v2 start", 62, 81, 12, 0, 0},
		{4141, 1, record.KindShim, "containerd-shim-runc-v2", 79, 243, 18, -1, 0},
		{4150, 2, record.KindCall, "runc create", 90, 148, 33, 0, 0},
		{4158, 3, record.KindInit, "runc init", 104, 199, 21, 0, 0},
		{4158, 4, record.KindWorkload, "true", 199, 203, 0.9, 0, 201},
		{4166, 2, record.KindCall, "runc start", 190, 199, 6, 0, 0},
		{4171, 2, record.KindCall, "runc state", 210, 210.4, 0.4, 1, 0},
		{4177, 2, record.KindCall, "runc delete", 212, 226, 8, 0, 0},
	})
	part(docker, "docker", record.KindEngine, 90, 70)
	part(docker, "runc create", record.KindCall, 58, 33)
	part(docker, "docker", record.KindEngine, 42, 9)
	part(docker, "runc start", record.KindCall, 9, 6)
	part(docker, "docker", record.KindEngine, 44, 21)
	docker.Gaps = []record.Gap{
		{Began: monotonic + ms(148), Ended: monotonic + ms(190), After: "runc create exited", Before: "runc start was forked", In: "docker", CPU: ms(9)},
		{Began: monotonic + ms(226), Ended: monotonic + ms(243), After: "runc delete exited", Before: "docker run exited", In: "docker", CPU: ms(4)},
	}
	docker.Took = map[string]int64{record.KindCall: ms(67)}
	s.v.Targets = append(s.v.Targets, Target{
		Target: "docker/runc", Engine: "docker", Method: record.MethodBPF, Clock: record.ClockMonotonic, Command: docker.Start.Command,
		Starts: 5, Same: 4, Wall: around(243e6, 3), First: around(201e6, 2), Calls: around(67e6, 4), EngineTime: around(176e6, 3), Drawn: docker,
		Table: taking("docker", 90, "runc create", 58, "docker", 95), WatchingCPU: figure.Figure{Estimate: figure.Exactly(0.006)},
		Watching: figure.Figure{Estimate: figure.Estimate{N: 6, Value: 1.01, Lo: 0.98, Hi: 1.04, Bounded: true}},
	}, podStart())
	return s
}

// podStart returns the start of a pod with network plugins; one of them fails.
func podStart() Target {
	d := startOf("cri+containerd/crun", 0, 812, 790, []lived{
		{5001, 0, record.KindClient, "crictl runp", 0, 640, 22, 0, 0},
		{900, 0, record.KindDaemon, "containerd", 0, 812, 61, -1, 0},
		{5010, 1, record.KindCNI, "bridge ADD", 12, 54, 9, 0, 0},
		{5012, 2, record.KindCNI, "host-local ADD", 20, 26, 2, 0, 0},
		{5020, 1, record.KindCNI, "portmap ADD", 55, 71, 5, 1, 0},
		{5030, 0, record.KindShim, "containerd-shim-runc-v2", 72, 812, 20, -1, 0},
		{5041, 1, record.KindCall, "crun create", 80, 99, 8, 0, 0},
		{5050, 1, record.KindCall, "crun start", 100, 103, 2, 0, 0},
		{5080, 0, record.KindClient, "crictl create", 640, 700, 20, 0, 0},
		{5090, 1, record.KindCall, "crun create", 710, 730, 8, 0, 0},
		{5099, 1, record.KindCall, "crun start", 786, 789, 2, 0, 0},
		{5095, 1, record.KindWorkload, "sleep", 789, 812, 0.4, -1, 790},
	})
	d.Start.Command = "crictl runp pod.json && crictl create && crictl start"
	part(d, "containerd", record.KindEngine, 12, 6)
	part(d, "bridge ADD", record.KindCNI, 42, 9)
	part(d, "containerd", record.KindEngine, 758, 90)
	wait := record.Gap{Began: monotonic + ms(103), Ended: monotonic + ms(604), After: "crun start exited", Before: "containerd woke", In: "containerd", CPU: ms(1.2),
		Wait: &record.Wait{Timer: "500 ms timer", Nominal: ms(500), Why: `501.0 ms from "crun start exited" to "containerd woke"; nominal 500 ms, a round number; CPU used meanwhile: 1.2 ms`}}
	d.Gaps, d.Took = []record.Gap{wait}, map[string]int64{record.KindCall: ms(45), record.KindWorkload: ms(10)}
	return Target{
		Target: "cri+containerd/crun", Engine: "containerd", Method: record.MethodBPF, Clock: record.ClockMonotonic, Starts: 4, Same: 4,
		Wall: around(812e6, 1), First: around(790e6, 1), Calls: around(45e6, 6), EngineTime: around(767e6, 1), Drawn: d,
		Gaps: []Gap{{Gap: wait, Took: around(501e6, 0.1), Seen: 4}},
	}
}

// fromLogs returns a Kata pod read from logs. Its agent takes 7.4 s to respond.
func fromLogs() *begun {
	s := newBegun(false)
	began := time.Date(2026, 11, 21, 2, 46, 31, 875_558_208, time.UTC).UnixNano()
	st := &record.Start{Type: record.TypeStart, Round: 0, Target: "kata", Method: record.MethodLogs, Clock: record.ClockWall, Began: began, Ended: began + ms(9412),
		Name: "nginx", Sandbox: "956bf030d0a09b7325968cdc8812421ec082b1f0cf52a50fee4d320994f34e80", Source: "cripod.kata.log:1", Events: 1523,
		Guests:  []record.GuestClock{{Name: "956bf030d0a09b7325968cdc8812421ec082b1f0cf52a50fee4d320994f34e80", Offset: ms(26087.2), Uncertainty: -1, Pairs: 210}, {Name: "b1", Offset: -ms(3), Uncertainty: ms(1.2), Pairs: 1}},
		Missing: []record.Missing{{What: "suppressed", Count: 12, Detail: "cripod.kata.log:340"}},
	}
	d := &Drawn{Start: st}
	at := 0.0
	for _, l := range []struct {
		name, kind string
		took       float64
		depth      int
	}{{"engine", record.KindEngine, 210, 0}, {"shim", record.KindShim, 340, 0}, {"VMM launched", record.KindPhase, 620, 0}, {"VM booted", record.KindPhase, 130, 0},
		{"agent answers", record.KindPhase, 7420, 0}, {"container created", record.KindCall, 540, 0}, {"container started", record.KindCall, 152, 0}} {
		r := trace.Row{Part: trace.Part{Name: l.name, Kind: l.kind, Began: began + ms(at), Ended: began + ms(at+l.took), CPU: -1}, Depth: l.depth}
		at += l.took
		st.Spans = append(st.Spans, record.Span{Name: l.name, Kind: l.kind, Began: r.Began, Ended: r.Ended})
		d.Rows, d.Parts = append(d.Rows, r), append(d.Parts, r.Part)
	}
	gap := record.Gap{Began: began + ms(1302), Ended: began + ms(8713), After: "New client", Before: "Agent started in the sandbox", In: "kata_agent", CPU: -1, Others: 214, Source: "cripod.kata.log:301"}
	dial := record.Gap{Began: began + ms(200), Ended: began + ms(1202), After: "New client", Before: "sending request", In: "kata_agent", CPU: -1,
		Wait: &record.Wait{Timer: "gRPC dial, first back-off (1 s)", Nominal: ms(1000), Why: `1.002 s from "New client" to "sending request"; nominal 1 s, ±20 %, gRPC's connection-backoff.md; CPU time is not known`}}
	d.Gaps = []record.Gap{gap, dial}
	s.v.Targets = []Target{{Guests: st.Guests,
		Target: "kata", Engine: "kata", Method: record.MethodLogs, Clock: record.ClockWall, Starts: 1, NoEnd: 1, Same: 1, Wall: around(9412e6, 0), Calls: around(692e6, 0), EngineTime: around(8720e6, 0),
		Phases: []Step{step("engine", record.KindEngine, 210, 0, -1, 9412), step("agent answers", record.KindPhase, 7420, 0, -1, 9412), step("container created", record.KindCall, 540, 0, -1, 9412)},
		Gaps:   []Gap{{Gap: gap, Took: around(7411e6, 0), Seen: 1}, {Gap: dial, Took: around(1002e6, 0), Seen: 1}}, Drawn: d,
	}}
	s.v.Logs = &record.Logs{Type: record.TypeLogs, Files: []string{"cripod.kata.log", "cripod.containerd.log"}, Bytes: 1_482_113, Lines: 3120, Events: 2987,
		Forms: map[string]int64{"kata": 1523, "containerd": 1464}, Cut: 1, Unreadable: 132, Suppressed: 12, First: "cripod.containerd.log:17"}
	s.v.Total = 2
	s.v.Found = []record.Finding{{Code: "start-without-end", Level: "note", Target: "kata", Message: "1 of 2 starts has no end", Advice: "give the log of what came after it, too"}}
	return s
}

// kept loads and judges a record.
func kept(path string) *begun {
	rec, err := record.Load("../../../" + path)
	if err != nil {
		panic(err)
	}
	j, err := Judge(rec)
	if err != nil {
		panic(err)
	}
	return &begun{rec: rec, v: *j}
}

// everyStart returns starts of all kinds: simulated, stored, and from the published
// report on Kata's boot.
func everyStart() map[string]*begun {
	return map[string]*begun{
		"watched": watched(), "logs": fromLogs(), "crowded": crowded(), "failed": nothingStarted(),
		"notes": kept("published/kata-boot-2018/record.jsonl"), "stored": kept("record/testdata/v1/startup.jsonl"),
	}
}

// nothingStarted returns only failures.
func nothingStarted() *begun {
	s := newBegun(true)
	s.rec.Targets = []record.Target{{Type: record.TypeTarget, Name: "runsc", Version: "release-20250601.0"}}
	s.v.Targets = []Target{{Target: "runsc", Engine: "tare", Method: record.MethodTracefs, Clock: record.ClockMonotonic, Failed: 5,
		Failure: &record.Failure{Kind: record.FailExit, Detail: "runsc exited with 128", Command: "runsc --root /run/x run c-0", Exit: 128, Output: "cannot set up the sandbox: operation not permitted"}}}
	s.v.Failed, s.v.Total = 5, 5
	s.rec.End = nil
	return s
}

// crowded returns a start with two hundred short processes, and a start of several
// minutes.
func crowded() *begun {
	s := newBegun(true)
	all := []lived{{10, 0, record.KindClient, "make-everything", 0, 130_000, 20, 0, 0}}
	for i := range 200 {
		exit := 0
		if i == 150 {
			exit = 137
		}
		all = append(all, lived{100 + i, 1 + i%12, record.KindHelper, fmt.Sprintf("helper-with-a-name-that-goes-on-and-on-and-on-%03d", i), float64(600 * i), float64(600*i) + 1 + float64(i*i), 1, exit, 0})
	}
	all = append(all, lived{7, 1, record.KindCall, "runc start", 100, 100.5, 0.1, 0, 0})
	d := startOf("command", 0, 130_000, 129_000, all)
	s.v.Targets = []Target{{Target: "command", Engine: "make", Method: record.MethodConnector, Clock: record.ClockMonotonic, Command: "make everything", Starts: 1, Wall: around(130e9, 0), Drawn: d}}
	s.v.Plan.Rounds, s.v.Total = 1, 1
	return s
}

// around returns a figure with an interval of a given percentage on either side.
func around(v, percent float64) figure.Figure {
	f := figure.Figure{Experiment: Name, Quantity: "wall-time", Unit: figure.Nanoseconds}
	f.Estimate = figure.Estimate{N: 6, Value: rounded(v), Lo: rounded(v * (1 - percent/100)), Hi: rounded(v * (1 + percent/100)), Bounded: percent > 0}
	return f
}

// rounded removes the digits that differ between processors.
func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }
