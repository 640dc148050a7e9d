package startup

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const milli = int64(1e6)

func startHeader(t *testing.T) record.Header {
	t.Helper()
	text := must.Get(json.Marshal(Defaults()))(t)
	return record.Header{Experiment: "startup", Plan: text, Environment: record.Environment{Lanes: "SCHED_FIFO"}}
}

// dockerStart returns a start of the given duration in ms. runc create takes 50 ms and
// runc start 10 ms. Between them is a gap of 500 ms without activity.
func dockerStart(round int, wall int64) record.Start {
	zero := 0
	at := func(ms int64) int64 { return 1e12 + ms*milli }
	return record.Start{
		Target: "docker/runc", Method: record.MethodBPF, Clock: record.ClockMonotonic, Round: round,
		Began: at(0), Ended: at(wall), First: at(wall - 5), Tracing: 1 * milli,
		Processes: []record.StartProcess{
			{Pid: 5, Kind: record.KindDaemon, Name: "dockerd", Program: "dockerd", Born: 1, CPU: -1},
			{Pid: 7, Parent: 5, Kind: record.KindCall, Name: "runc create", Program: "runc", Verb: "create", Container: "c", Born: at(100), Exec: at(101), Ended: at(150), CPU: 20 * milli, Exit: &zero},
			{Pid: 9, Parent: 5, Kind: record.KindCall, Name: "runc start", Program: "runc", Verb: "start", Container: "c", Born: at(650), Exec: at(651), Ended: at(660), CPU: 5 * milli, Exit: &zero},
		},
		Busy: []record.BusyAt{{At: at(0)}, {At: at(100), CPU: 40 * milli}, {At: at(150), CPU: 65 * milli}, {At: at(650), CPU: 66 * milli}, {At: at(660), CPU: 75 * milli}, {At: at(wall), CPU: 100 * milli}},
	}
}

func judgeStarts(t *testing.T, starts ...record.Start) *Judgement {
	t.Helper()
	s := must.Get(Judge(&record.Record{Header: startHeader(t), Starts: starts, End: &record.End{Status: "done"}}))(t)
	return s
}

func about(t *testing.T, what string, e figure.Figure, ms float64) {
	t.Helper()
	if !e.Known() || math.Abs(e.Value-ms*1e6) > 1 {
		t.Errorf("%s is %+v, want %v ms", what, e, ms)
	}
}

func TestEngineTimeExcludesRuntimeCalls(t *testing.T) {
	var all []record.Start
	for i := range 7 {
		all = append(all, dockerStart(i, 700+int64(i)*10))
	}
	s := judgeStarts(t, all...)
	d := s.Targets[0]
	about(t, "wall", d.Wall, 730)
	about(t, "calls", d.Calls, 60)
	about(t, "credits", d.EngineTime, 670)
	about(t, "first instruction", d.First, 725)
	about(t, "CPU", d.CPU, 100)
	if d.Engine != "docker" || !d.Wall.Bounded || d.Starts != 7 || d.Same != 7 || !s.Live || s.Total != 7 {
		t.Errorf("%+v", d)
	}
	if math.Abs(d.WatchingCPU.Value-0.01) > 1e-9 {
		t.Errorf("watching %+v", d.WatchingCPU)
	}
	var way []string
	sum := 0.0
	for _, step := range d.Table {
		way = append(way, step.Name)
	}
	for _, step := range d.Phases {
		sum += step.Took.Value
	}
	check.Equal(t, "the way", strings.Join(way, " → "), "docker → runc create → docker → runc start → docker")
	if math.Abs(sum-730e6) > 1 {
		t.Errorf("phases add up to %v", sum)
	}
	if d.Drawn == nil || d.Drawn.Start.Round != 3 || len(d.Drawn.Rows) == 0 || len(d.Drawn.Parts) == 0 {
		t.Errorf("drawn is %+v", d.Drawn)
	}
}

func TestEngineWaitIsTheFirstGap(t *testing.T) {
	s := judgeStarts(t, dockerStart(0, 700), dockerStart(1, 710), dockerStart(2, 720))
	d := s.Targets[0]
	if len(d.Gaps) == 0 {
		t.Fatal("no gaps")
	}
	g := d.Gaps[0]
	if g.In != "docker" || g.Seen != 3 || math.Abs(g.Took.Value-500e6) > 1e6 || g.Wait == nil {
		t.Fatalf("first gap %+v (%+v)", g, g.Gap)
	}
	found := false
	for _, f := range s.Found {
		found = found || f.Code == foundWait && f.Target == "docker/runc" && strings.Contains(f.Message, g.Wait.Timer) && strings.Contains(f.Message, "3 of 3")
	}
	check.That(t, found, "findings %+v", s.Found)
}

func TestFailedStartsAreCountedWithoutFigures(t *testing.T) {
	bad := dockerStart(1, 10_000)
	bad.Failure = &record.Failure{Kind: record.FailExit, Detail: "exit status 125", Output: "a\nno such image", Command: "docker run x"}
	stopped := dockerStart(2, 10_000)
	stopped.Failure = &record.Failure{Kind: record.FailInterrupted}
	s := judgeStarts(t, dockerStart(0, 700), bad, stopped)
	if d := s.Targets[0]; s.Failed != 1 || s.Total != 2 || d.Failed != 1 || d.Starts != 1 || d.Wall.Value != 700e6 {
		t.Errorf("%+v of %d/%d", d, s.Failed, s.Total)
	}
	if f := s.Found[0]; f.Code != finding.Failed || !strings.Contains(f.Message, "1 of 2") || !strings.Contains(f.Message, "no such image") || !strings.Contains(f.Advice, "docker run x") {
		t.Errorf("%+v", f)
	}
}

func TestReadyAtFirstPollIsAnUpperBound(t *testing.T) {
	for first, want := range map[int][2]string{
		0: {"≤ ", "every workload was ready at the first poll"},
		1: {"≤ ", "known to within 2.00 ms at worst, at most (≤) in 3 of 4: ready when first asked"},
		3: {"", "known to within 2.00 ms at worst, at most (≤) in 1 of 4: ready when first asked"},
		4: {"", "known to within 2.00 ms at worst"},
	} {
		var all []record.Start
		for i := range 4 {
			s := dockerStart(i, 800)
			s.Ready, s.Polls = s.Ended+milli, 7
			if i < first {
				s.Unready = s.Ready - 2*milli
			}
			all = append(all, s)
		}
		j := judgeStarts(t, all...)
		if cell := tookCell(&j.Targets[0].Ready).Head; strings.HasPrefix(cell, "≤ ") != (want[0] != "") {
			t.Errorf("%d of 4 asked in vain: %s", first, cell)
		}
		if note := readyNote(j.Targets); !strings.Contains(note, want[1]) || first == 4 && strings.Contains(note, "≤") {
			t.Errorf("%d of 4 asked in vain: %s", first, note)
		}
	}
}

func TestUnobservedStartsShowTracingOverhead(t *testing.T) {
	var all []record.Start
	for i := range 12 {
		with, without := dockerStart(i, 800+int64(i%3)), dockerStart(i, 700+int64(i%4))
		without.Method, without.Processes, without.Busy, without.Tracing = record.MethodNone, nil, nil, 0
		all = append(all, with, without)
	}
	d := judgeStarts(t, all...).Targets[0]
	if d.Starts != 12 || !d.Watching.Versus.Different() || math.Abs(d.Watching.Value-1.143) > 0.01 {
		t.Errorf("%d starts, %+v, different %v", d.Starts, d.Watching, d.Watching.Versus)
	}
}

func TestLogStartsWithoutEndHaveNoTotals(t *testing.T) {
	s := record.Start{Target: "kata", Method: record.MethodLogs, Clock: record.ClockWall, Began: 1e18, Name: "p", Source: "kata.log:1",
		Spans: []record.Span{{Name: "a", Kind: record.KindPhase, Began: 1e18, Ended: 1e18 + 5}},
		Gaps: []record.Gap{{Began: 1e18, Ended: 1e18 + 1_001_400_000, After: "New client", Before: "New client connected", In: "kata_agent", CPU: -1, Source: "kata.log:3"},
			{Began: 1e18 + 2e9, Ended: 1e18 + 3_001_400_000, After: "New client", Before: "New client connected", In: "kata_agent", CPU: -1, Source: "kata.log:5"}},
		Waiting: &record.Waiting{In: "CreateContainer", Since: 1e18, Until: 1e18 + 240e9, Stage: "container creating", Last: "Creating container: d/a/c", Error: "context deadline exceeded", Source: "kata.log:1"},
		Missing: []record.Missing{{What: "no end", Count: 1}, {What: "cut", Count: 4, Detail: "kata.log:9"}}}
	j := judgeStarts(t, s)
	d := j.Targets[0]
	if d.NoEnd != 1 || d.Starts != 0 || d.Wall.Known() || len(d.Gaps) != 1 || d.Drawn == nil || j.Live {
		t.Fatalf("%+v", d)
	}
	text := ""
	for _, f := range j.Found {
		text += f.Code + ": " + f.Message + "\n"
	}
	check.Contains(t, "text", text, "1 s timer", "kata.log:3", "have no end", "(cut): 4; kata.log:9",
		"waiting in CreateContainer since 01:46:40.000 (4 min 0 s so far), p at kata.log:1; stage: container creating; last line: Creating container: d/a/c; error: context deadline exceeded")
	check.Lacks(t, "the missing end is reported twice", text, "(no end)")
}

func TestGapsAreGroupedIgnoringIDs(t *testing.T) {
	var all []record.Start
	for i, id := range []string{strings.Repeat("a1", 32), strings.Repeat("01", 32)} {
		all = append(all, record.Start{Target: "containerd", Method: record.MethodLogs, Clock: record.ClockWall, Round: i, Began: 1e18, Ended: 1e18 + 3e9,
			Gaps:   []record.Gap{{Began: 1e18, Ended: 1e18 + 2e9 + int64(i), After: "connecting to shim " + id, Before: `RunPodSandbox for name:"` + id[:8] + `" returns`, In: "containerd", CPU: -1}},
			Guests: []record.GuestClock{{Name: id, Offset: 5, Pairs: 1}}})
	}
	d := judgeStarts(t, all...).Targets[0]
	if len(d.Gaps) != 1 || d.Gaps[0].Seen != 2 || d.Gaps[0].Round != 1 || len(d.Guests) != 2 {
		t.Errorf("%+v, guests %+v", d.Gaps, d.Guests)
	}
}

func TestManyStartsUseBoundedMemory(t *testing.T) {
	h := startHeader(t)
	j := must.Get(NewJudging(&h, nil))(t)
	for i := range 3 * maxKept {
		s := dockerStart(i, 700+int64(i%100))
		j.Add(&s)
	}
	for i := range 2 * maxTargets {
		s := dockerStart(i, 700)
		s.Target = fmt.Sprint("other-", i)
		j.Add(&s)
	}
	d := j.Done(&record.Record{End: &record.End{}}).Targets[0]
	if d.Starts != 3*maxKept || len(j.targets) != maxTargets || len(j.targets[0].kept) != maxKept || len(j.targets[0].whole) != maxWhole {
		t.Errorf("%d starts, kept %d and %d of %d targets", d.Starts, len(j.targets[0].kept), len(j.targets[0].whole), len(j.targets))
	}
	if d.Wall.Value < 745e6 || d.Wall.Value > 755e6 {
		t.Errorf("median of the selected starts is %v", d.Wall.Value)
	}
}

func TestUnfinishedCallLeavesEngineTimeUnknown(t *testing.T) {
	var all []record.Start
	for i := range 3 {
		s := record.Start{Target: "containerd/kata", Method: record.MethodLogs, Clock: record.ClockWall, Round: i, Began: 1e18, Ended: 1e18 + 12e9, Spans: []record.Span{
			{Name: "kata create", Kind: record.KindCall, Began: 1e18, Ended: 1e18 + 11e9}, {Name: "kata start", Kind: record.KindCall, Began: 1e18 + 11e9, Ended: 1e18 + 12e9}}}
		if i == 1 {
			s.Spans, s.Missing = s.Spans[1:], []record.Missing{{What: record.MissingCall, Count: 1}}
		}
		all = append(all, s)
	}
	about(t, "the engine's time beside a whole start", judgeStarts(t, all...).Targets[0].EngineTime, 0)
	d := judgeStarts(t, all[1]).Targets[0]
	if d.EngineTime.Known() || d.Calls.Known() || has(d.Table, record.KindCall) {
		t.Errorf("call without an end: engine %+v, calls %+v, table %+v", d.EngineTime, d.Calls, d.Table)
	}
	about(t, "its wall time", d.Wall, 12e3)
	crowd := dockerStart(0, 700)
	crowd.Missing = []record.Missing{{What: record.MissingProcesses, Count: 1}}
	if d := judgeStarts(t, crowd).Targets[0]; d.EngineTime.Known() || d.Calls.Known() || len(d.Phases) > 0 || !d.Wall.Known() {
		t.Errorf("start with missing processes: %+v, %+v, %+v", d.Calls, d.EngineTime, d.Phases)
	}
}

func TestTenStartsHaveAP90(t *testing.T) {
	var all []record.Start
	for i := range 10 {
		all = append(all, record.Start{Target: "containerd/kata", Method: record.MethodLogs, Clock: record.ClockWall, Round: i, Began: 1e18, Ended: 1e18 + int64(i+1)*1e9, Sandbox: fmt.Sprint("box", i)})
	}
	for n, want := range map[int]string{9: "max 9.00 s", 10: "p90 9.00 s, max 10.0 s"} {
		j := judgeStarts(t, all[:n]...)
		if s := every(&j.Targets[0], 0, page.Options{}); s == nil || len(s.Notes) == 0 || s.Notes[0] != want {
			t.Errorf("%d starts: %+v", n, s)
		}
	}
}

func TestSelectedStartsAreListedAndTraced(t *testing.T) {
	var all []record.Start
	for i := range 40 {
		all = append(all, record.Start{Target: "containerd/kata", Method: record.MethodLogs, Clock: record.ClockWall, Round: i, Began: 1e18, Ended: 1e18 + int64(i+1)*1e9,
			Name: fmt.Sprintf("shop/web-%d", i), Sandbox: fmt.Sprintf("%02d%s", i, strings.Repeat("ab", 31)), Source: fmt.Sprint("kata.log:", i),
			Spans: []record.Span{{Name: "runtime called → VM started", Kind: record.KindPhase, Began: 1e18, Ended: 1e18 + int64(i+1)*9e8}}})
	}
	judged := func(plan string) *Judgement {
		j, err := Judge(&record.Record{Header: record.Header{Experiment: Name, Plan: []byte(plan)}, Starts: all, End: &record.End{Status: "done"}})
		must.OK(t, err)
		return j
	}
	for plan, want := range map[string][]string{
		`{}`: {"shop/web-19"}, `{"slowest":2}`: {"shop/web-39", "shop/web-38"}, `{"pod":"web-7"}`: {"shop/web-7"}, `{"pod":"shop/web-8"}`: {"shop/web-8"}, `{"id":"12ab"}`: {"shop/web-12"},
	} {
		var got []string
		for _, d := range judged(plan).Targets[0].traced() {
			got = append(got, d.Start.Name)
		}
		check.Equal(t, plan, got, want)
	}
	text := (&begun{rec: judged(`{}`).Record, v: *judged(`{}`)}).report(t, "text", page.Options{Width: 160})
	for _, want := range []string{"all starts, slowest first", "shop/web-39  40.0 s", "36.0 s", "kata.log:39", "p90 36.0 s, max 40.0 s", "35 more with --details"} {
		check.Contains(t, "text", text, want)
	}
	if failed, _, _ := judged(`{}`).Result(); failed != 0 {
		t.Error("failures in a log fail the read")
	}
}

func TestRuntimeWithoutEngineHasNoEngineTime(t *testing.T) {
	t.Parallel()
	for kind, has := range map[string]bool{"docker": true, "oci": false} {
		var targets []record.Target
		var all []record.Start
		for _, name := range []string{"a", "b"} {
			targets = append(targets, record.Target{Name: name, Kind: kind})
			for i := range 7 {
				s := dockerStart(i, 700+int64(i)*10)
				s.Target = name
				all = append(all, s)
			}
		}
		j := must.Get(Judge(&record.Record{Header: startHeader(t), Targets: targets, Starts: all, End: &record.End{Status: "done"}}))(t)
		if v := j.Targets[1].EngineTime; v.Known() != has || (v.Versus != nil) != has || !j.Targets[1].Calls.Known() {
			t.Errorf("%s: engine time %+v", kind, v)
		}
	}
}
