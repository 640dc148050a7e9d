package run_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	overheadrun "github.com/tare-bench/tare/internal/instrument/overhead/run"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// scripted is a fake target that logs its calls.
type scripted struct {
	fake.Target
	log   *journal
	name  string
	fails func(op subject.Op, lane int) *record.Failure
	exec  func(ctx context.Context, lane int, args []string) (subject.Executed, error)
	over  func(lane int) bool // reports whether the workload of a lane has exited
	ended map[int]subject.Ended
	there func() int // number of sandboxes, nil if it is not open
}

type journal struct {
	mu     sync.Mutex
	events []string
}

func (j *journal) add(format string, a ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, fmt.Sprintf(format, a...))
}

func (t *scripted) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	t.Log = func(event string) { t.log.add("%s", event) }
	t.Script = func(op subject.Op, lane, _ int) (int64, *record.Failure) {
		if t.fails == nil {
			return 1, nil
		}
		return 1, t.fails(op, lane)
	}
	t.OnExec = func(ctx context.Context, lane int, args []string) (subject.Executed, error) {
		t.log.add("%s exec %d %s", t.name, lane, args[0])
		if t.exec == nil {
			<-ctx.Done()
			return subject.Executed{}, ctx.Err()
		}
		return t.exec(ctx, lane, args)
	}
	opened, err := t.Target.Open(ctx, env)
	s := &session{opened, opened.(subject.Executor), opened.(subject.Sandboxed), t}
	t.there = func() int {
		boxes, _ := s.Sandboxes(ctx)
		return len(boxes)
	}
	return s, err
}

type session struct {
	subject.Session
	subject.Executor
	subject.Sandboxed
	of *scripted
}

func (s *session) Over(_ context.Context, lanes []int) (over []int, first *record.Failure) {
	for _, n := range lanes {
		if s.of.over != nil && s.of.over(n) {
			over, first = append(over, n), &record.Failure{Kind: record.FailWorkload, Detail: "it ended"}
		}
	}
	return over, first
}

func (s *session) Reach(int) subject.Reached { return subject.Reached{} }

func (s *session) Ended(_ context.Context, lane int) subject.Ended { return s.of.ended[lane] }

func (s *session) Discard(ctx context.Context, lanes []int) error {
	s.of.log.add("%s discard %d %v", s.of.name, len(lanes), lanes)
	return s.Session.Discard(ctx, lanes)
}

func (s *session) Close(ctx context.Context) error {
	if n := s.of.there(); n > 0 {
		s.of.log.add("%s left %d", s.of.name, n)
	}
	return s.Session.Close(ctx)
}

// meter reads a simulated node on which each sandbox uses 100 MiB of 1000 MiB.
type meter struct {
	log   *journal
	there func() int // number of sandboxes on the node
}

func (m meter) Settle(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil }

func (m meter) Read(_ context.Context, boxes []subject.Sandbox, _ []int, memory bool) record.Reading {
	m.log.add("read %d memory %v", len(boxes), memory)
	used := int64(m.there()) * 100 << 20
	return record.Reading{Time: 1, Host: record.Host{Total: 1000 << 20, Free: 1000<<20 - used, Available: 1000<<20 - used}}
}

func (m meter) Watch(*record.Reading, time.Duration) func() record.Series {
	m.log.add("watch")
	return func() record.Series {
		m.log.add("stop")
		return record.Series{Interval: 1}
	}
}

func (m meter) Left(*record.Reading, []string) []string { return nil }

func (m meter) LeftBeside(*record.Reading, []string) *record.LeftBeside { return nil }

func (m meter) Around([]string) []record.Group { return nil }

func options(p func(*overhead.Options), targets ...*scripted) (overheadrun.Options, *journal) {
	log := &journal{}
	o := overhead.Defaults()
	o.Rounds, o.Sandboxes, o.Seed = 1, []int{1, 3}, 7
	o.Hold, o.Settle, o.Timeout = time.Millisecond, 0, time.Second
	if p != nil {
		p(&o)
	}
	there := func() (n int) {
		for _, t := range targets {
			if t.there != nil {
				n += t.there()
			}
		}
		return n
	}
	free := func() (int64, error) { return 1 << 30, nil }
	all := overheadrun.Options{Plan: o, Meter: meter{log, there}, Free: free, Options: run.Options{
		RunID: "test", Dirs: func(string) (string, string, error) { return "", "", nil },
	}}
	for _, t := range targets {
		t.log, t.Name = log, t.name
		all.Targets = append(all.Targets, t)
	}
	return all, log
}

func perform(ctx context.Context, t *testing.T, o overheadrun.Options) *record.Record {
	t.Helper()
	rec, _, err := overheadrun.Run(ctx, o)
	must.OK(t, err)
	return rec
}

// moments lists the readings in order.
func moments(rec *record.Record) (out []string) {
	for _, x := range rec.Readings {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %d", x.Moment, x.Phase, x.Sandboxes)))
	}
	return out
}

func codes(rec *record.Record) (out []string) {
	for _, f := range rec.Findings {
		out = append(out, f.Code)
	}
	return out
}

func TestVisitReadsBeforeAndAfterEveryPhase(t *testing.T) {
	ends := func(context.Context, int, []string) (subject.Executed, error) { return subject.Executed{}, nil }
	o, log := options(func(p *overhead.Options) { p.Phases = []string{"idle", "10M"} }, &scripted{name: "a", exec: ends})
	o.FioPath = "/usr/bin/fio"
	rec := perform(t.Context(), t, o)
	want := []string{"before  0", "begin idle 1", "end idle 1", "begin 10M 1", "end 10M 1", "begin idle 3", "end idle 3", "after  0"}
	check.Equal(t, "read", moments(rec), want)
	check.Equal(t, "series", len(rec.Series), 3)
	events := strings.Join(log.events, "\n")
	for _, part := range []string{
		"a run x1\nread 1 memory false\na stop x1\na rm x1\na discard 1 [0]\n", // the warm-up
		"read 0 memory true\nread 0 memory false\na run x1\nread 1 memory false\nwatch\nstop\nread 1 memory true\nread 1 memory false\nwatch\na exec 0 /usr/bin/fio\nstop\nread 1 memory true\nread 0 memory false\na run x2\n",
		"a stop x3\na rm x3\na discard 3 [0 1 2]\nread 0 memory true\nclose a",
	} {
		check.Contains(t, "wrong order", events, part)
	}
}

func TestFailingTargetIsAbandonedAlone(t *testing.T) {
	broken := &scripted{name: "broken", fails: func(op subject.Op, lane int) *record.Failure {
		if op == subject.Run && lane == 2 {
			return &record.Failure{Kind: record.FailExit, Detail: "exit status 1", Output: "no space"}
		}
		return nil
	}}
	o, log := options(func(p *overhead.Options) { p.Rounds = 3 }, broken, &scripted{name: "good"})
	rec := perform(t.Context(), t, o)
	visits := map[string]int{}
	for _, x := range rec.Readings {
		if x.Moment == record.MomentBefore {
			visits[x.Target]++
		}
	}
	check.That(t, visits["broken"] == 1 && visits["good"] == 3 && slices.Contains(codes(rec), "target-given-up"),
		"visits %v, findings %v", visits, codes(rec))
	for _, e := range log.events {
		check.Lacks(t, "sandboxes stayed", e, " left ")
	}
}

func TestPhasesWithoutRoomAreSkippedAndReported(t *testing.T) {
	for name, c := range map[string]struct {
		sandboxes []int
		phase     string
		most      int // maximum number of started sandboxes
		said      string
	}{
		"count above the node's memory":       {[]int{1, 5, 20}, "idle", 5, "sandboxes-not-reached"},
		"first count above the node's memory": {[]int{9}, "idle", 0, "sandboxes-not-reached"},
		"load above the node's memory":        {[]int{2}, "hold 400MiB", 2, "phase-skipped"},
		"file larger than the disk":           {[]int{1, 3}, "1G", 3, "phase-skipped"},
	} {
		o, log := options(func(p *overhead.Options) { p.Sandboxes, p.Phases = c.sandboxes, []string{c.phase} }, &scripted{name: "a"})
		rec := perform(t.Context(), t, o)
		most := 0
		for _, x := range rec.Readings {
			most = max(most, x.Sandboxes)
		}
		got := moments(rec)
		check.That(t, got[len(got)-1] == "after  0", "%s: the node was not read after the removal: %q", name, got)
		check.That(t, most == c.most && slices.Contains(codes(rec), c.said) && !strings.Contains(strings.Join(log.events, "\n"), "exec"),
			"%s: %d sandboxes were started, findings %v, events %v", name, most, codes(rec), log.events)
	}
}

func TestSkippedPhaseIsReportedOnce(t *testing.T) {
	ends := func(context.Context, int, []string) (subject.Executed, error) { return subject.Executed{}, nil }
	o, _ := options(func(p *overhead.Options) { p.Rounds, p.Sandboxes, p.Phases = 3, []int{1}, []string{"idle", "10M"} }, &scripted{name: "a", exec: ends})
	free := int64(1 << 30)
	o.Free = func() (int64, error) {
		defer func() { free = 0 }()
		return free, nil
	}
	said := slices.DeleteFunc(codes(perform(t.Context(), t, o)), func(code string) bool { return code != "phase-skipped" })
	check.Equal(t, "reports", len(said), 1)
}

func TestIncompleteLoadHasNoFigures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase string
		exec  func(ctx context.Context, lane int, args []string) (subject.Executed, error)
		want  record.Failure
	}{
		"load does not start": {"spin 0.5cpu", func(ctx context.Context, _ int, _ []string) (subject.Executed, error) {
			<-ctx.Done()
			return subject.Executed{Command: "runc exec a"}, ctx.Err()
		}, record.Failure{Kind: record.FailTimeout}},
		"load exits early": {"hold 64MiB", func(context.Context, int, []string) (subject.Executed, error) {
			return subject.Executed{Exit: 2, Stderr: "cannot allocate memory"}, nil
		}, record.Failure{Kind: record.FailExit, Exit: 2, Output: "cannot allocate memory"}},
	} {
		o, log := options(func(p *overhead.Options) {
			p.Phases, p.Sandboxes, p.Timeout = []string{"idle", c.phase}, []int{1}, 100*time.Millisecond
		}, &scripted{name: "a", exec: c.exec})
		rec := perform(t.Context(), t, o)
		i := slices.IndexFunc(rec.Readings, func(x record.Reading) bool { return x.Phase == c.phase && x.Moment == record.MomentEnd })
		must.That(t, i >= 0, "%s: read %v", name, moments(rec))
		f := rec.Readings[i].Failure
		check.That(t, f != nil && f.Kind == c.want.Kind && f.Exit == c.want.Exit && f.Output == c.want.Output, "%s: %+v", name, f)
		check.Equal(t, fmt.Sprintf("%s: starts", name), strings.Count(strings.Join(log.events, "\n"), "exec"), 1)
	}
}

func TestUnstoppableSandboxIsRemovedByForce(t *testing.T) {
	stubborn := &scripted{name: "a", fails: func(op subject.Op, lane int) *record.Failure {
		if op == subject.Stop && lane == 2 {
			return &record.Failure{Kind: record.FailTimeout, Detail: "timed out"}
		}
		return nil
	}}
	o, log := options(func(p *overhead.Options) { p.Sandboxes = []int{5} }, stubborn)
	rec := perform(t.Context(), t, o)
	events := strings.Join(log.events, "\n")
	check.That(t, strings.Contains(events, "a stop x5\na rm x4\na discard 5 [0 1 2 3 4]\nread 0") && !strings.Contains(events, " left "),
		"events\n%s", events)
	check.That(t, slices.Contains(codes(rec), "sandboxes-not-retired"), "findings %v", codes(rec))
}

func TestPhaseWithExitedWorkloadHasNoFigures(t *testing.T) {
	t.Parallel()
	for want, target := range map[string]*scripted{
		"1, 3, 1 of 3: it ended":                                   {over: func(lane int) bool { return lane == 2 }},
		"1, 3, sandbox 2 of 3 has ended: exit status 7, disk full": {ended: map[int]subject.Ended{1: {Exit: 7, Known: true, Why: "disk full"}}},
		"1, 3, sandbox 3 of 3 has ended: killed by SIGKILL":        {ended: map[int]subject.Ended{2: {Exit: 137, Known: true}}},
		"1, 3": {ended: map[int]subject.Ended{1: {Exit: 7}}},
	} {
		target.name = "a"
		o, _ := options(func(p *overhead.Options) { p.Phases = []string{"idle"} }, target)
		var said []string
		for _, x := range perform(t.Context(), t, o).Readings {
			if x.Moment == record.MomentEnd {
				said = append(said, fmt.Sprint(x.Sandboxes))
				if x.Failure != nil {
					said = append(said, x.Failure.Detail)
				}
			}
		}
		check.Equal(t, "readings", strings.Join(said, ", "), want)
	}
}

func TestShortLoadIsExtended(t *testing.T) {
	t.Parallel()
	var given []time.Duration
	short := func(ctx context.Context, _ int, args []string) (subject.Executed, error) {
		seconds, err := strconv.ParseFloat(args[len(args)-1], 64)
		check.Error(t, err, "")
		d := time.Duration(seconds * float64(time.Second))
		if given = append(given, d); len(given) == 1 {
			d = 900 * time.Millisecond // the phase begins after a second
		}
		_ = machine.Sleep(ctx, d)
		return subject.Executed{Output: fmt.Sprintf("tare-hold/1 %d 1000\ntare-held/1 %d\n", 1<<20, d)}, nil
	}
	o, _ := options(func(p *overhead.Options) { p.Phases, p.Sandboxes = []string{"idle", "hold 1MiB"}, []int{1} }, &scripted{name: "a", exec: short})
	rec := perform(t.Context(), t, o)
	var ends []record.Reading
	for _, x := range rec.Readings {
		if x.Phase == "hold 1MiB" {
			ends = append(ends, x)
		}
	}
	check.That(t, len(given) == 2 && given[1] > given[0] && len(ends) == 2 && ends[0].Moment == record.MomentBegin && ends[1].Failure == nil,
		"given %v, read %v", given, moments(rec))
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hangs := func(ctx context.Context, _ int, _ []string) (subject.Executed, error) {
		cancel()
		<-ctx.Done()
		return subject.Executed{}, ctx.Err()
	}
	o, log := options(func(p *overhead.Options) { p.Phases = []string{"idle", "10M"} }, &scripted{name: "a", exec: hangs})
	rec := perform(ctx, t, o)
	check.That(t, rec.End.Status == "interrupted" && log.events[len(log.events)-1] == "close a" && slices.Contains(log.events, "a discard 1 [0]"),
		"status %s, events %v", rec.End.Status, log.events)
	check.That(t, !slices.ContainsFunc(moments(rec), func(m string) bool { return strings.HasPrefix(m, "end 10M") }),
		"the interrupted phase was recorded: %v", moments(rec))
}
