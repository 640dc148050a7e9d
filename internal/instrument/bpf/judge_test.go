package bpf

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// weighing builds a record of BPF programs on a node with 8 CPUs.
type weighing struct {
	plan Options
	rec  record.Record
}

func newWeighing(p Options) *weighing {
	w := &weighing{plan: p, rec: record.Record{Header: record.Header{Experiment: "bpf", Environment: record.Environment{CPUs: 8}}, End: &record.End{Status: "done"}}}
	w.rec.Programs = []record.Program{
		{ID: 11, Kind: "cgroup_sock_addr", Name: "connect4", Memory: 4096, Maps: []record.ProgramMap{{ID: 1, Kind: "hash", Name: "services", Memory: 1 << 20, Shared: 2}, {ID: 2, Kind: "array", Name: "counts", Memory: 4096, Shared: 1}}},
		{ID: 12, Kind: "sock_ops", Name: "sockops", Memory: 8192, Maps: []record.ProgramMap{{ID: 1, Kind: "hash", Name: "services", Memory: 1 << 20, Shared: 2}}},
	}
	return w
}

const second = int64(time.Second)

// phase adds a phase of ten seconds without load.
func (w *weighing) phase(round int, asked record.Asked, phase string) *record.Point {
	if asked.Seconds == 0 {
		asked.Seconds = 10
	}
	w.rec.Points = append(w.rec.Points, record.Point{Type: record.TypePoint, Round: round, Case: w.plan.Case, Datapath: "reference", Phase: phase, Asked: asked,
		Begun: 100 * second, Ended: 110 * second, ClientCPU: -1, ServerCPU: -1, NodeCPU: -1, CPUs: 8})
	return &w.rec.Points[len(w.rec.Points)-1]
}

// measure adds the idle and load phases of a point with statistics enabled. Each request
// costs 500 ns in connect4 and 300 ns in sockops. An idle connect4 uses 1 % of a core.
func (w *weighing) measure(round int, asked record.Asked, requests int64) *record.Point {
	asked.Statistics = true
	idle := w.phase(round, asked, record.PhaseIdle)
	idle.Runs = []record.ProgramRun{{ID: 11, Name: "connect4", Count: 1000, Time: second / 10}, {ID: 12, Name: "sockops"}}
	load := w.phase(round, asked, record.PhaseLoad)
	load.Sent = &record.Sent{Requests: requests, QPS: float64(requests) / 10, P50: 1e6, P90: 2e6, P99: 3e6, P999: 4e6, Max: 5e6, Mean: 1e6}
	load.ClientCPU, load.ServerCPU, load.NodeCPU = 12*second, 8*second, 24*second
	load.Runs = []record.ProgramRun{{ID: 11, Name: "connect4", Count: 1000 + requests, Time: second/10 + 500*requests}, {ID: 12, Name: "sockops", Count: 2 * requests, Time: 300 * requests}}
	return load
}

func (w *weighing) without(round int, asked record.Asked, requests int64) *record.Point {
	load := w.phase(round, asked, record.PhaseLoad)
	load.Sent = &record.Sent{Requests: requests, QPS: float64(requests) / 10, P50: 1e6, P90: 2e6, P99: 3e6, P999: 4e6}
	return load
}

func (w *weighing) judge(t *testing.T) *Judgement {
	t.Helper()
	text := must.JSON(t, w.plan)
	w.rec.Header.Plan = text
	for i := range w.rec.Points {
		must.OK(t, record.Validate(&w.rec.Points[i]))
	}
	return must.Get(Judge(&w.rec))(t)
}

func near(t *testing.T, what string, e figure.Figure, want float64) {
	t.Helper()
	check.That(t, e.Known() && math.Abs(e.Value-want) <= 1e-9*math.Max(1, math.Abs(want)), "%s is %+v, want %v", what, e, want)
}

func codes(b *Judgement) (all []string) {
	for _, f := range b.Found {
		all = append(all, f.Code)
	}
	return all
}

func messageOf(t *testing.T, b *Judgement, code string) string {
	t.Helper()
	for _, f := range b.Found {
		if f.Code == code {
			return f.Message
		}
	}
	t.Errorf("no finding %s among %v", code, codes(b))
	return ""
}

func fourLoads(rounds int) *weighing {
	plan := DefaultsOfLoad()
	plan.Connections = []int{100, 500, 1000, 3000}
	w := newWeighing(plan)
	for round := range rounds {
		for _, n := range []int{3000, 100, 1000, 500} { // random order
			asked := record.Asked{Connections: n, URL: "http://127.0.0.1:8080/"}
			w.measure(round, asked, 100_000+int64(n))
			asked.URL = "http://127.0.0.1:9999/"
			w.without(round, asked, 101_000+int64(n))
		}
	}
	return w
}

func TestRowCombinesAPointOverAllRounds(t *testing.T) {
	b := fourLoads(2).judge(t)
	var order []int
	for _, r := range b.Rows {
		order = append(order, r.Asked.Connections)
		check.That(t, r.Rounds == 2 && r.Failed == 0, "%d rounds, %d failed", r.Rounds, r.Failed)
	}
	must.That(t, slices.Equal(order, []int{100, 500, 1000, 3000}), "rows %v are not in the order of the plan", order)
	check.That(t, b.Total == 16 && b.Failed == 0, "%d of %d failed", b.Failed, b.Total)
	r := &b.Rows[0]
	near(t, "QPS", *r.All.Of("requests"), 10_010)
	near(t, "the client's share of a core", *r.All.Of("cpu", "role", "client"), 1.2)
	near(t, "the server's share of a core", *r.All.Of("cpu", "role", "server"), 0.8)
	near(t, "the node's share", *r.All.Of("node-busy"), 0.3)
	near(t, "p99.9", *r.All.Of("latency", "quantile", "p99.9"), 4e6)
}

func TestIdleCostIsSubtracted(t *testing.T) {
	r := &fourLoads(2).judge(t).Rows[0]
	requests := 100_100.0
	near(t, "BPF's share of a core", *r.All.Of("cpu", "role", "bpf"), 800*requests/1e10)
	near(t, "BPF's share of the node", *r.All.Of("cpu-share", "role", "bpf"), 800*requests/1e10/8)
	near(t, "ns per request", *r.All.Of("bpf-time-per-request"), 800)
	must.That(t, len(r.Programs) == 2 && r.Programs[0].Name == "connect4", "programs: %+v", r.Programs)
	p := &r.Programs[0]
	near(t, "runs per second", p.Rate, requests/10)
	near(t, "runs per request", p.PerRequest, 1)
	near(t, "its share of a core", p.Core, 500*requests/1e10)
	near(t, "ns of a run", p.Each, (1e8+500*requests)/(1000+requests))
	near(t, "ns of a run", r.Programs[1].Each, 150)
	near(t, "runs per request", r.Programs[1].PerRequest, 2)
}

func TestRunsAndCPUCoverTheSamePeriod(t *testing.T) {
	w := fourLoads(1)
	for i := range w.rec.Points {
		if s := w.rec.Points[i].Sent; s != nil {
			s.QPS *= 1.25 // the client reports a load of 8 s within the 10 s phase
		}
	}
	p := &w.judge(t).Rows[0].Programs[1]
	near(t, "runs per second times ns of a run", p.Core, p.Rate.Value*p.Each.Value/1e9)
}

func TestIdlePhaseIsOfTheSameRound(t *testing.T) {
	w := newWeighing(DefaultsOfLoad())
	asked := record.Asked{Connections: 100}
	w.measure(0, asked, 1000)
	load := w.measure(1, asked, 1000)
	load.Runs[0].Time += 8 * second / 10
	w.rec.Points[2].Runs[0].Time = 9 * second / 10 // idle phase of the second round
	near(t, "ns per request", *w.judge(t).Rows[0].All.Of("bpf-time-per-request"), 800)
}

func TestNegativeLoadCostIsZero(t *testing.T) {
	w := newWeighing(DefaultsOfLoad())
	load := w.measure(0, record.Asked{Connections: 100}, 1000)
	load.Runs[0].Time, load.Runs[0].Count, load.Runs[1].Time = 1000, 10, 0
	r := &w.judge(t).Rows[0]
	near(t, "BPF's share", *r.All.Of("cpu", "role", "bpf"), 0)
	near(t, "runs per second", r.Programs[0].Rate, 0)
}

func TestReloadedProgramIsOneProgram(t *testing.T) {
	w := newWeighing(DefaultsOfLoad())
	w.rec.Programs = nil
	for round := range 2 {
		load := w.measure(round, record.Asked{Connections: 100}, 1000)
		idle := &w.rec.Points[len(w.rec.Points)-2]
		for _, p := range []*record.Point{idle, load} {
			for i := range p.Runs {
				p.Runs[i].ID += uint32(100 * round)
				p.Runs[i].Name = "sd_devices" // two programs with the same name
			}
		}
		for i := range load.Runs {
			w.rec.Programs = append(w.rec.Programs, record.Program{ID: load.Runs[i].ID, Kind: "cgroup_device", Name: "sd_devices", Memory: 4096})
		}
	}
	b := w.judge(t)
	r := &b.Rows[0]
	must.That(t, len(r.Programs) == 2 && r.Programs[0].ID == 11 && r.Programs[1].ID == 12, "programs: %+v", r.Programs)
	near(t, "runs per request", r.Programs[0].PerRequest, 1)
	near(t, "runs per request", r.Programs[1].PerRequest, 2)
	check.That(t, len(b.Programs) == 2 && b.Memory == 8192, "%d programs in %d bytes", len(b.Programs), b.Memory)
}

func TestSharedMapIsCountedOnce(t *testing.T) {
	w := fourLoads(1)
	b := w.judge(t)
	want := int64(4096 + 8192 + 1<<20 + 4096)
	check.That(t, b.Memory == want && b.Shared == 1, "%d bytes, %d shared; want %d, 1", b.Memory, b.Shared, want)
	w.rec.Maps = []record.Map{{Type: record.TypeMap, Holders: []string{"7 agent"}, Map: record.ProgramMap{ID: 9, Kind: "hash_of_maps", Name: "kept", Memory: 100, Inner: 2, InnerMemory: 200}}}
	more := w.judge(t)
	check.That(t, more.Memory == b.Memory+300, "%d bytes with a map that no program uses, want %d", more.Memory, b.Memory+300)
	if text := w.report(t, "md", page.Options{}); !strings.Contains(text, "1 used by no loaded program") || !strings.Contains(text, "| 7 agent |") {
		t.Errorf("unused map without its owner:\n%s", text)
	}
	w.rec.Programs[1].Maps[0].Memory = -1
	w.rec.Programs[0].Memory = -1
	if b = w.judge(t); b.Memory != -1 {
		t.Errorf("%d bytes with an unknown size", b.Memory)
	}
	messageOf(t, b, foundMemoryUnknown)
}

func TestProgramsThatDidNotRunHaveNoCost(t *testing.T) {
	w := newWeighing(DefaultsOfLoad())
	load := w.measure(0, record.Asked{Connections: 100}, 1000)
	for i := range load.Runs {
		load.Runs[i].Count, load.Runs[i].Time = 0, 0
	}
	r := &w.judge(t).Rows[0]
	check.That(t, !r.All.Of("cpu", "role", "bpf").Known() && !r.All.Of("cpu-share", "role", "bpf").Known() && !r.All.Of("bpf-time-per-request").Known() && r.All.Of("cpu", "role", "client").Known(),
		"core %+v, node %+v, per request %+v", r.All.Of("cpu", "role", "bpf"), r.All.Of("cpu-share", "role", "bpf"), r.All.Of("bpf-time-per-request"))
	p := &r.Programs[0]
	check.That(t, p.Rate.Value == 0 && p.Rate.Known() && !p.Core.Known() && !p.PerRequest.Known() && !p.Each.Known(), "%+v", p)
}

func TestStatisticsOverheadUsesPairs(t *testing.T) {
	r := &fourLoads(2).judge(t).Rows[0]
	check.That(t, r.All.Of("requests-with-statistics-ratio").Known() && !r.All.Of("requests-with-statistics-ratio").Versus.Different() && math.Abs(r.All.Of("requests-with-statistics-ratio").Value-100_100.0/101_100) <= 1e-9,
		"overhead %+v, different %v", r.All.Of("requests-with-statistics-ratio"), r.All.Of("requests-with-statistics-ratio").Versus)
	b := fourLoads(8).judge(t)
	check.That(t, b.Rows[0].All.Of("requests-with-statistics-ratio").Versus.Different() && b.Rows[0].All.Of("requests-with-statistics-ratio").Bounded, "no difference in 8 rounds: %s", b.Rows[0].All.Of("requests-with-statistics-ratio").Reasons)
	check.Contains(t, "message", messageOf(t, b, foundStatisticsShow), "-1.0 % QPS with 100 connections")
}

func TestFailedPointsAreInNoFigure(t *testing.T) {
	w := fourLoads(1)
	refused := &record.Failure{Kind: record.FailError, Detail: "connect: connection refused", Command: "fortio load http://127.0.0.1:8080/"}
	for i := range w.rec.Points {
		if p := &w.rec.Points[i]; p.Phase == record.PhaseLoad && p.Asked.Connections == 3000 {
			p.Failure, p.Sent, p.Runs = refused, nil, nil
		}
	}
	b := w.judge(t)
	check.That(t, b.Failed == 2 && b.Total == 8, "%d of %d failed", b.Failed, b.Total)
	r := &b.Rows[3]
	check.That(t, r.Rounds == 0 && r.Failed == 2 && r.Failure == refused && !r.All.Of("requests").Known(), "%+v", r)
	m := messageOf(t, b, finding.Failed)
	check.That(t, strings.HasPrefix(m, "2 of 8 points failed (3000 connections in round 1; 3000 connections in round 1): error: connect"), "%v", m)
}

func TestFailedPointsAreReported(t *testing.T) {
	asked := record.Asked{Connections: 100}
	on := record.Asked{Connections: 100, Statistics: true}
	refused := &record.Failure{Kind: record.FailError, Detail: "not permitted"}
	for claim, c := range map[string]struct {
		add           func(w *weighing)
		failed, total int
		rounds        int // rounds with figures
	}{
		"interrupted load is not counted": {func(w *weighing) {
			w.measure(0, asked, 1000)
			w.without(0, asked, 1000).Failure = &record.Failure{Kind: record.FailInterrupted, Detail: "tare was told to stop"}
		}, 0, 1, 1},
		"failure after the load is not counted": {func(w *weighing) {
			w.measure(0, asked, 1000)
			w.phase(0, on, record.PhaseCool).Failure = &record.Failure{Kind: record.FailTimeout, Detail: "slow"}
		}, 0, 1, 1},
		"failed load next to a successful one": {func(w *weighing) {
			w.phase(0, asked, record.PhaseLoad).Failure = refused
			w.without(0, asked, 1000)
		}, 1, 2, 0},
		"failed idle phase fails the load with statistics": {func(w *weighing) {
			w.measure(0, asked, 1000)
			w.rec.Points = w.rec.Points[1:] // without the load
			w.phase(0, asked, record.PhaseIdle).Failure = refused
			w.without(0, asked, 1000)
		}, 1, 2, 0},
		"both loads of a round":                  {func(w *weighing) { w.refuse(refused, on, asked) }, 2, 2, 0},
		"both loads of a round in an old record": {func(w *weighing) { w.refuse(refused, asked, asked) }, 2, 2, 0}, // in old records
	} {
		w := newWeighing(DefaultsOfLoad())
		c.add(w)
		b := w.judge(t)
		if r := &b.Rows[0]; b.Failed != c.failed || b.Total != c.total || r.Rounds != c.rounds || r.Failed != c.failed || slices.Contains(codes(b), finding.Damaged) {
			t.Errorf("%s: %d of %d failed, %d rounds, %v", claim, b.Failed, b.Total, r.Rounds, codes(b))
		}
	}
}

// refuse makes loads fail one after the other.
func (w *weighing) refuse(why *record.Failure, all ...record.Asked) {
	for i, asked := range all {
		p := w.phase(0, asked, record.PhaseLoad)
		p.Failure, p.Begun = why, p.Begun+int64(i)
	}
}

func TestFindingsOfLoads(t *testing.T) {
	for _, tt := range []struct {
		name, code, says string
		change           func(w *weighing, load *record.Point)
	}{
		{"client used all its CPUs", foundClientBound, "100 connections (7.7 CPUs of 8 CPUs)", func(_ *weighing, p *record.Point) { p.ClientCPU = 77 * second }},
		{"full node", foundNodeFull, "100 connections (96 %)", func(_ *weighing, p *record.Point) { p.NodeCPU = 77 * second }},
		{"error responses", foundLoadErrors, "7 with 100 connections", func(_ *weighing, p *record.Point) { p.Sent.Errors = 7 }},
		{"causes of error responses", foundLoadErrors, "7 with 100 connections: 5 status 503; 2 no connection", func(_ *weighing, p *record.Point) {
			p.Sent.Errors, p.Sent.Failures = 7, map[string]int64{"no connection": 2, "status 503": 5}
		}},
		{"unsent requests", foundUnsent, "9 with 100 connections", func(_ *weighing, p *record.Point) { p.Sent.OpenLoop, p.Sent.Unsent = true, 9 }},
		{"node usage above 100 % by its ticks", foundNodeFull, "100 connections (100 %)", func(_ *weighing, p *record.Point) { p.NodeCPU = 83 * second }},
		{"statistics of another process, reported as a problem", foundOthersCounted, "another process", func(w *weighing, p *record.Point) {
			off := w.without(0, p.Asked, 1)
			off.Asked.Statistics, off.Problems = false, []string{"statistics were on for another process"}
		}},
		{"closed loop", foundClosedLoop, "coordinated omission", func(*weighing, *record.Point) {}},
		{"new program", foundProgramsMoved, `in 1 of 2 phases the programs changed: program 77 "xdp" came`, func(_ *weighing, p *record.Point) { p.Problems = []string{`program 77 "xdp" came`} }},
		{"statistics enabled before the run", finding.StatisticsOn, "were on before", func(w *weighing, _ *record.Point) {
			w.rec.Findings = []record.Finding{{Code: finding.StatisticsOn, Message: "they were on before", Advice: "off with them"}}
		}},
		{"runs counted with statistics disabled", foundOthersCounted, "another process", func(w *weighing, p *record.Point) {
			w.without(0, p.Asked, 1).Runs = []record.ProgramRun{{ID: 11, Count: 5}}
			w.rec.Points[len(w.rec.Points)-1].Asked.Statistics = false
		}},
		{"missed runs", foundRecursion, "connect4 3 times with 100 connections", func(_ *weighing, p *record.Point) { p.Runs[0].Misses = 3 }},
		{"too few rounds", finding.FewRounds, "1 round gives no 95 % interval", func(*weighing, *record.Point) {}},
		{"tare's own cost", finding.OwnCost, "up to 12.5 %", func(_ *weighing, p *record.Point) { p.Own = 10 * second }},
		{"tail calls", foundTailCalls, "prog_array (connect4)", func(w *weighing, _ *record.Point) { w.rec.Programs[0].Maps[1].Kind = "prog_array" }},
		{"no program at all", foundNoPrograms, "100 connections", func(_ *weighing, p *record.Point) { p.Runs = nil }},
		{"no program ran", foundNoRuns, "100 connections", func(_ *weighing, p *record.Point) {
			for i := range p.Runs {
				p.Runs[i].Count, p.Runs[i].Time = 0, 0
			}
		}},
		{"missing connections", foundConnections, "70 requests with 100 connections", func(_ *weighing, p *record.Point) { p.Sent.Requests = 70 }},
		{"rate not reached", foundRateMissed, "100/s of 500 with 100 connections", func(w *weighing, p *record.Point) {
			for i := range w.rec.Points {
				w.rec.Points[i].Asked.QPS = 500
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeighing(DefaultsOfLoad())
			tt.change(w, w.measure(0, record.Asked{Connections: 100}, 1000))
			b := w.judge(t)
			check.Contains(t, "message", messageOf(t, b, tt.code), tt.says)
			for _, f := range b.Found {
				check.That(t, f.Advice != "", "%s has no advice", f.Code)
			}
		})
	}
}

func TestOpenLoopIsNotReportedAsClosed(t *testing.T) {
	w := newWeighing(DefaultsOfLoad())
	w.measure(0, record.Asked{Connections: 100, QPS: 100}, 1000).Sent.OpenLoop = true
	b := w.judge(t)
	check.That(t, b.Rows[0].Open && !slices.Contains(codes(b), foundClosedLoop) && !slices.Contains(codes(b), foundRateMissed),
		"open %v, %v", b.Rows[0].Open, codes(b))
}

func TestForeignStatisticsInvalidateOnlyTheirPair(t *testing.T) {
	for rounds, want := range map[int]int{1: 0, 3: 2} { // one pair is lost: the only one, or one of three
		w := fourLoads(rounds)
		w.rec.Findings = []record.Finding{{Code: finding.StatisticsOn, Message: "they were on already"}}
		for i := range w.rec.Points {
			if p := &w.rec.Points[i]; !p.Asked.Statistics && p.Round == 0 {
				p.Runs = []record.ProgramRun{{ID: 11, Count: 1}}
			}
		}
		r := &w.judge(t).Rows[0]
		check.That(t, r.PriceRounds == want && r.All.Of("requests-with-statistics-ratio").Known() == (want > 0), "%d rounds, overhead from %d: %+v", rounds, r.PriceRounds, r.All.Of("requests-with-statistics-ratio"))
	}
}

func TestMemoryGrowsByServices(t *testing.T) {
	w := newWeighing(DefaultsOfMemory())
	for round := range 2 {
		for _, n := range []int{1000, 1, 100} {
			asked := record.Asked{Connections: 100, Services: n}
			load := w.measure(round, asked, 1000)
			mem := []record.ProgramMem{{ID: 11, Name: "connect4", Memory: 4096}, {ID: 12, Name: "sockops", Memory: 4096},
				{ID: 1, Map: true, Name: "services", Memory: int64(n) * 100, Used: int64(n)}, {ID: 1, Map: true, Name: "services", Memory: int64(n) * 100}}
			w.rec.Points[len(w.rec.Points)-2].Memory = mem
			load.Memory = append(slices.Clone(mem), record.ProgramMem{ID: 9, Map: true, Name: "inner", Memory: 50 * int64(round)})
		}
	}
	b := w.judge(t)
	must.That(t, len(b.Growth) == 3, "%+v", b.Growth)
	for i, n := range []int{1, 100, 1000} {
		g := &b.Growth[i]
		check.That(t, g.Services == n && g.Programs == 8192 && g.Maps == int64(n)*100 && g.UnderLoad == 8192+int64(n)*100+50 && len(g.Each) == 4,
			"%+v", g)
	}
	check.That(t, len(b.Rows) == 3 && b.Rows[2].Asked.Services == 1000, "got %d load rows", len(b.Rows))
}

func TestMemoryWithoutLoadIsReported(t *testing.T) {
	w := newWeighing(DefaultsOfMemory())
	idle := w.phase(0, record.Asked{Services: 1, Statistics: true}, record.PhaseIdle)
	idle.Memory = []record.ProgramMem{{ID: 1, Memory: 5}, {ID: 2, Memory: -1, Map: true}}
	w.phase(0, record.Asked{Services: 100, Statistics: true}, record.PhaseIdle).Failure = &record.Failure{Kind: record.FailError, Detail: "no memory"}
	b := w.judge(t)
	check.That(t, len(b.Growth) == 1 && b.Growth[0].UnderLoad == -1 && b.Growth[0].Maps == -1 && b.Growth[0].Programs == 5, "%+v", b.Growth)
	check.That(t, b.Failed == 1 && b.Total == 2, "%d of %d failed", b.Failed, b.Total)
}

func TestEarlyFailureIsReported(t *testing.T) {
	w := newWeighing(DefaultsOfLoad())
	w.rec.End = &record.End{Status: "failed", Why: "no program is loaded that was chosen"}
	check.Contains(t, "message", messageOf(t, w.judge(t), foundRunFailed), "no program is loaded")
}

func TestStatisticsOverheadNeedsBothSides(t *testing.T) {
	w := fourLoads(3)
	for i := range w.rec.Points {
		if p := &w.rec.Points[i]; p.Round == 1 && !p.Asked.Statistics {
			p.Problems = []string{"statistics were on for another process"}
		}
	}
	b := w.judge(t)
	check.That(t, b.Rows[0].PriceRounds == 2 && !slices.Contains(codes(b), foundProgramsMoved),
		"overhead from %d rounds, %v", b.Rows[0].PriceRounds, codes(b))
}

func TestRequestsWithoutLatencyAreCounted(t *testing.T) {
	r := Row{Open: true, Errors: 7, Unsent: 4, Failures: map[string]int64{noAnswerInTime: 5, "status 503": 2}}
	check.That(t, r.uncounted() == 2 && r.Bounds() == 9, "%d, %d", r.uncounted(), r.Bounds())
	if r.Open = false; r.uncounted() != 7 {
		t.Errorf("%d in a closed loop", r.uncounted())
	}
}

func TestNodeUsageIsAtMostFull(t *testing.T) {
	w := newWeighing(DefaultsOfLoad())
	w.measure(0, record.Asked{Connections: 100}, 1000).NodeCPU = 83 * second // ticks are counted at both edges
	near(t, "the node's share", *w.judge(t).Rows[0].All.Of("node-busy"), 1)
}
