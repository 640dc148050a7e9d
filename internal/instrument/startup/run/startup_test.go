package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const ms = int64(time.Millisecond)

// own is the process of tare that starts the scripts' commands.
const own = 10

// scene is a run of scripted targets. Each start takes 100 ms and is one runtime create
// of 60 ms that begins 10 ms after the call.
type scene struct {
	clock   int64
	watches int   // number of opened watches
	open    int   // number of watches not closed
	tracked []int // argument of the last Track call
	lost    int64
	cpu     time.Duration
	file    bytes.Buffer
	plan    startup.Options
	targets []subject.Target
	script  fake.Script
	takeErr error
	busy    int64
	used    map[int]int64 // CPU time of processes
	probe   bool          // tare forks another process first
	daemons []proctree.Root
	logs    func(context.Context, []record.Start) ([]record.Start, *record.Logs, error)
	late    bool // the workload is executed after the call returns
	drop    func(context.Context) error
	node    func() record.Node
	watch   func() (Watch, error)
}

func play(rounds, warmup int, names ...string) *scene {
	p := startup.Defaults()
	p.Seed, p.Rounds, p.Warmup = 1, rounds, warmup
	s := &scene{clock: 1000 * ms, plan: p}
	s.script = func(subject.Op, int, int) (int64, *record.Failure) { return 100 * ms, nil }
	s.watch = func() (Watch, error) { s.watches++; s.open++; return &scripted{scene: s}, nil }
	for _, name := range names {
		s.targets = append(s.targets, &fake.Target{Name: name, Clock: &s.clock,
			Script: func(op subject.Op, lane, n int) (int64, *record.Failure) { return s.script(op, lane, n) }})
	}
	return s
}

func (s *scene) run(ctx context.Context, t *testing.T) (*record.Record, error) {
	t.Helper()
	w := record.NewWriter(&s.file)
	rec, _, err := Run(ctx, Options{
		Plan: s.plan, Targets: s.targets,
		Options: run.Options{RunID: "r", Write: w.Write, Drop: s.drop, Node: s.node, Dirs: func(string) (string, string, error) { return t.TempDir(), t.TempDir(), nil }},
		Callers: func() []int { return []int{own} },
		Daemons: func() []proctree.Root { return s.daemons },
		Logs:    s.logs,
		Watch:   s.watch,
	})
	check.Equal(t, "open watches", s.open, 0)
	return rec, err
}

// seen runs a scene without failures for the given number of starts.
func (s *scene) seen(t *testing.T, starts int) *record.Record {
	t.Helper()
	rec, err := s.run(t.Context(), t)
	if err != nil || len(rec.Starts) != starts {
		t.Fatalf("%v: %d starts, want %d", err, len(rec.Starts), starts)
	}
	return rec
}

type scripted struct {
	*scene
	taken bool // the events before the start were returned
	began int64
	more  int // calls of Take after the first
}

func (w *scripted) Busy() int64          { return w.busy }
func (w *scripted) Used() map[int]int64  { return maps.Clone(w.used) }
func (w *scripted) Lost() int64          { return w.lost }
func (w *scripted) CPU() time.Duration   { return w.cpu }
func (w *scripted) Close() error         { w.open--; return nil }
func (w *scripted) Track(p ...int) error { w.tracked, w.taken = p, false; return nil }

// Take returns the events of a start that ends now, by the clock of the scripts.
func (w *scripted) Take(int64) ([]tracer.Event, error) {
	if w.takeErr != nil {
		return nil, w.takeErr
	}
	if !w.taken {
		w.taken, w.began = true, 0
		return nil, nil
	}
	if w.began != 0 { // events after the return
		return w.after(), nil
	}
	w.lost, w.cpu = w.lost+1, w.cpu+2*time.Millisecond
	began := w.clock - 100*ms
	w.began, w.more = began, 0
	if w.late {
		return []tracer.Event{
			{Kind: tracer.Fork, Time: began + 1*ms, Pid: 20, Parent: own},
			{Kind: tracer.Exec, Time: began + 2*ms, Pid: 20, Parent: own, File: "/usr/bin/runc", Args: []string{"runc", "run", "-d", "--bundle", "/b", "c1"}},
			{Kind: tracer.Fork, Time: began + 10*ms, Pid: 21, Parent: 20},
			{Kind: tracer.Exec, Time: began + 11*ms, Pid: 21, Parent: 20, File: "/proc/self/exe", Args: []string{"runc", "init"}},
			{Kind: tracer.Exit, Time: began + 99*ms, Pid: 20, Parent: own},
		}, nil
	}
	var first []tracer.Event
	if w.probe {
		first = []tracer.Event{
			{Kind: tracer.Fork, Time: began + ms/4, Pid: 19, Parent: own},
			{Kind: tracer.Exit, Time: began + ms/2, Pid: 19, Parent: own},
		}
	}
	return append(first, []tracer.Event{
		{Kind: tracer.Fork, Time: began - 500*ms, Pid: 3, Parent: own}, // before the start
		{Kind: tracer.Fork, Time: began + 1*ms, Pid: 20, Parent: own},
		{Kind: tracer.Exec, Time: began + 2*ms, Pid: 20, Parent: own, File: "/bin/engine", Args: []string{"engine", "run"}, CPU: 0, Busy: 0},
		{Kind: tracer.Fork, Time: began + 10*ms, Pid: 21, Parent: 20, Busy: 5 * ms},
		{Kind: tracer.Exec, Time: began + 10*ms, Pid: 21, Parent: 20, File: "/usr/bin/runc", Args: []string{"runc", "create", "--bundle", "/b", "c1"}, Busy: 5 * ms},
		{Kind: tracer.Exit, Time: began + 70*ms, Pid: 21, Parent: 20, CPU: 20 * ms, Busy: 25 * ms},
		{Kind: tracer.Exit, Time: began + 99*ms, Pid: 20, Parent: own, CPU: 8 * ms, Busy: 30 * ms},
		{Kind: tracer.Fork, Time: began + 3*ms, Pid: 900, Parent: 800}, // event of another command
		{Kind: tracer.Exit, Time: began + 4*ms, Pid: 900, Parent: 800},
	}...), nil
}

// after returns the events after a start has returned. The workload is executed at the
// third call.
func (w *scripted) after() []tracer.Event {
	if w.more++; !w.late || w.more != 3 {
		return nil
	}
	return []tracer.Event{{Kind: tracer.Exec, Time: w.began + 104*ms, Pid: 21, Parent: 1, File: "/app", Args: []string{"/app"}}}
}

func TestWorkloadExecutedAfterReturnIsObserved(t *testing.T) {
	s := play(2, 0, "a")
	s.late = true
	for _, x := range s.seen(t, 2).Starts {
		last := x.Processes[len(x.Processes)-1]
		if x.First-x.Began != 104*ms || x.Ended-x.Began != 100*ms || last.Kind != record.KindWorkload || last.Name != "app" {
			t.Errorf("first after %d, ended after %d, last %+v", x.First-x.Began, x.Ended-x.Began, last)
		}
	}
}

func TestEveryTargetIsStartedOncePerRound(t *testing.T) {
	s := play(4, 1, "a", "b")
	rec := s.seen(t, 8)
	if rec.End == nil || rec.End.Status != "done" || rec.End.Why != "rounds" {
		t.Fatalf("end %+v", rec.End)
	}
	orders := map[string]bool{}
	for i, x := range rec.Starts {
		orders[x.Target] = orders[x.Target] || x.Order == 0
		switch {
		case x.Round != i/2 || x.Method != record.MethodBPF || x.Failure != nil || x.Ended-x.Began != 100*ms:
			t.Errorf("start %d: %+v", i, x)
		case x.Lost != 1 || x.Tracing != 2*ms:
			t.Errorf("start %d: lost %d, tracing used %d", i, x.Lost, x.Tracing)
		}
		var names []string
		for _, p := range x.Processes {
			names = append(names, p.Name)
		}
		if !slices.Contains(names, "runc create") || !slices.Equal(x.Containers, []string{"c1"}) || len(names) != 2 {
			t.Errorf("start %d: %v of %v", i, names, x.Containers)
		}
	}
	if !orders["a"] || !orders["b"] {
		t.Error("one target was always first")
	}
	check.Equal(t, "followed", s.tracked, []int{own})
	stored, err := record.Read(&s.file)
	if err != nil || len(stored.Problems) > 0 || len(stored.Starts) != 8 {
		t.Errorf("%v: stored %d, problems %v", err, len(stored.Starts), stored.Problems)
	}
}

// odd is a scripted target with overrides for a test.
type odd struct {
	*fake.Target
	pid     int                               // reported pid of the command
	prepare func(subject.Batch) subject.Batch // returns the batch to arm instead of the script's
	discard func(remove func() error) error   // replaces the removal
}

func (o *odd) Info() record.Target {
	info := o.Target.Info()
	if o.pid != 0 {
		info.Kind = "command"
	}
	return info
}

func (o *odd) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	s, err := o.Target.Open(ctx, env)
	return oddSession{s, o}, err
}

type oddSession struct {
	subject.Session
	odd *odd
}

func (s oddSession) Pid() int { return s.odd.pid }

func (s oddSession) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	armed, err := s.Session.Prepare(ctx, op, lanes)
	if s.odd.prepare != nil {
		armed = s.odd.prepare(armed)
	}
	return armed, err
}

func (s oddSession) Discard(ctx context.Context, lanes []int) error {
	remove := func() error { return s.Session.Discard(ctx, lanes) }
	if s.odd.discard != nil {
		return s.odd.discard(remove)
	}
	return remove()
}

// started is an armed batch.
type started func(ctx context.Context) (int64, []record.Sample, error)

func (f started) Start(ctx context.Context) (int64, []record.Sample, error) { return f(ctx) }

// oddly applies a test's overrides to the first target.
func (s *scene) oddly(o odd) {
	o.Target = s.targets[0].(*fake.Target)
	s.targets[0] = &o
}

// Go forks a child once to detect kernel features. This child is not the command.
func TestCommandIsIdentifiedByItsPID(t *testing.T) {
	s := play(1, 0, "a")
	s.probe = true
	s.oddly(odd{pid: 20})
	x := &s.seen(t, 1).Starts[0]
	if len(x.Processes) != 2 || x.Processes[0].Pid != 20 || x.Processes[0].Kind != record.KindClient || x.Processes[0].Name != "engine" {
		t.Errorf("%+v", x.Processes)
	}
}

// Work of daemons that did not serve a command is not part of its time.
func TestTimeOfUninvolvedDaemonsIsNotCounted(t *testing.T) {
	for name, c := range map[string]struct {
		roots []proctree.Root
		want  int64
	}{
		// The events have 30 ms of CPU time in total. The command's two processes used 28
		// ms of it.
		"no possible daemon":           {nil, 30 * ms},
		"daemon that did not serve it": {[]proctree.Root{{Pid: 800, Kind: record.KindDaemon, Name: "dockerd"}}, 28 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(1, 0, "a")
			s.daemons, s.busy = c.roots, -1
			s.oddly(odd{pid: 20})
			rec := s.seen(t, 1)
			busy := rec.Starts[0].Busy
			if got := busy[len(busy)-1].CPU - busy[0].CPU; got != c.want {
				t.Errorf("%d ns, want %d: %+v", got, c.want, busy)
			}
			for _, p := range rec.Starts[0].Processes {
				if p.Kind == record.KindDaemon || p.Pid == 900 {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

// Events from the run's logs are added to its starts. Unreadable logs do not affect the
// run.
func TestLogEventsAreAddedToStarts(t *testing.T) {
	for name, c := range map[string]struct {
		err         error
		lines, logs int
	}{
		"read":       {nil, 1, 1},
		"unreadable": {errors.New("no such file"), 0, 0},
	} {
		s := play(1, 0, "a")
		s.logs = func(_ context.Context, watched []record.Start) ([]record.Start, *record.Logs, error) {
			x := &watched[0]
			if len(watched) != 1 || x.Wall == 0 {
				t.Errorf("%s: %+v", name, watched)
			}
			return []record.Start{{Type: record.TypeStart, Target: "kata", Method: record.MethodLogs, Clock: record.ClockWall, Began: x.Wall, Ended: x.Wall + 50*ms, Sandbox: "c1",
				Spans: []record.Span{{Name: "a phase", Kind: record.KindPhase, Began: x.Wall + ms, Ended: x.Wall + 9*ms}}}}, &record.Logs{Type: record.TypeLogs}, c.err
		}
		rec := must.Get(s.run(t.Context(), t))(t)
		j, err := startup.Judge(rec)
		if err != nil || len(j.Targets) != 1 || j.Total != 1 || len(j.Targets[0].Drawn.Start.Spans) != c.lines || (rec.Logs != nil) != (c.logs == 1) {
			t.Errorf("%s: %v, %+v", name, err, j)
		}
		if told := slices.ContainsFunc(j.Found, func(f record.Finding) bool { return f.Code == "logs-not-read" }); told != (c.err != nil) {
			t.Errorf("%s: %+v", name, j.Found)
		}
	}
}

func TestUnobservedRoundsAreRecorded(t *testing.T) {
	s := play(6, 0, "a")
	s.plan.Untraced = true
	rec := s.seen(t, 12)
	plain := 0
	for _, x := range rec.Starts {
		if x.Method == record.MethodNone {
			plain++
			if len(x.Processes) > 0 || x.Events != 0 || x.Ended-x.Began != 100*ms {
				t.Errorf("%+v", x)
			}
		}
	}
	if plain != 6 || s.watches < 2 {
		t.Errorf("%d of %d starts were not observed, %d watches", plain, len(rec.Starts), s.watches)
	}
	j, err := startup.Judge(rec)
	if err != nil || !j.Targets[0].Watching.Known() || j.Targets[0].Watching.Value != 1 || j.Targets[0].Watching.Versus.Different() || j.Targets[0].Starts != 6 {
		t.Errorf("%v: %+v", err, j.Targets[0])
	}
}

func TestFailedStartHasNoTimes(t *testing.T) {
	s := play(3, 0, "a")
	s.script = func(_ subject.Op, _, n int) (int64, *record.Failure) {
		if n == 1 {
			return 0, &record.Failure{Kind: record.FailExit, Exit: 125, Detail: "exit status 125"}
		}
		return 100 * ms, nil
	}
	rec := s.seen(t, 3)
	j, err := startup.Judge(rec)
	if err != nil || rec.Starts[1].Failure == nil || j.Failed != 1 || j.Targets[0].Starts != 2 || rec.End.Failures != 1 {
		t.Errorf("%v: %+v, end %+v", err, rec.Starts, rec.End)
	}
}

func TestUnobservableTargetIsNotStarted(t *testing.T) {
	s := play(1, 0, "a")
	refused := errors.New("no way to watch")
	started := false
	s.script = func(subject.Op, int, int) (int64, *record.Failure) { started = true; return 1, nil }
	s.watch = func() (Watch, error) { return nil, refused }
	if _, err := s.run(t.Context(), t); !errors.Is(err, refused) || started {
		t.Errorf("%v, started %v", err, started)
	}
}

func TestTracerFailureFailsOnlyTheStart(t *testing.T) {
	s := play(2, 0, "a")
	s.takeErr = errors.New("the ring is broken")
	if x := s.seen(t, 2).Starts[0]; x.Failure == nil || !strings.Contains(x.Failure.Detail, "the ring is broken") {
		t.Errorf("%+v", x)
	}
}

func TestAbandonedTargetHasItsRound(t *testing.T) {
	for _, c := range []struct {
		from int
		want string
	}{{0, "given up in the warm-up: "}, {1, "given up in round 1: "}, {3, "given up in round 3: "}} {
		s, removed := play(4, 1, "a", "b"), 0
		s.oddly(odd{discard: func(remove func() error) error {
			if removed++; removed > c.from {
				return errors.New("device or resource busy")
			}
			return remove()
		}})
		rec := must.Get(s.run(t.Context(), t))(t)
		var said []string
		for _, f := range rec.Findings {
			if f.Code == finding.GivenUp {
				said = append(said, f.Message)
			}
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], c.want) {
			t.Errorf("from start %d on: %q, want %q", c.from, said, c.want)
		}
		for i, x := range rec.Starts {
			if i > 0 && x.Round < rec.Starts[i-1].Round || x.Round >= 4 {
				t.Errorf("start %d is of round %d", i, x.Round)
			}
		}
	}
}

func TestStartWithSeveralSamplesIsRefused(t *testing.T) {
	for _, n := range []int{0, 2} {
		s := play(1, 0, "a")
		s.oddly(odd{prepare: func(b subject.Batch) subject.Batch {
			return started(func(ctx context.Context) (int64, []record.Sample, error) {
				began, samples, err := b.Start(ctx)
				return began, slices.Repeat(samples, n), err
			})
		}})
		x := s.seen(t, 1).Starts[0]
		if x.Failure == nil {
			t.Fatalf("%+v", x)
		}
		if got := x.Failure.Detail; strings.Contains(got, "%!") || !strings.Contains(got, fmt.Sprintf("%d samples", n)) {
			t.Errorf("message %q", got)
		}
	}
}

func TestCPUTimeCoversTheCall(t *testing.T) {
	at := func(t, cpu int64) record.BusyAt { return record.BusyAt{At: t, CPU: cpu} }
	for _, test := range []struct {
		claim string
		edges [2]record.BusyAt
		seen  []record.BusyAt
		want  []record.BusyAt
	}{
		{"usage before the first event counts", [2]record.BusyAt{at(100, 50), at(200, 90)}, []record.BusyAt{at(150, 70)},
			[]record.BusyAt{at(100, 0), at(150, 20), at(200, 40)}},
		{"events outside the call are ignored", [2]record.BusyAt{at(100, 50), at(200, 90)}, []record.BusyAt{at(90, 45), at(150, 70), at(210, 95)},
			[]record.BusyAt{at(100, 0), at(150, 20), at(200, 40)}},
		{"decreases are ignored", [2]record.BusyAt{at(100, 50), at(200, 90)}, []record.BusyAt{at(150, 70), at(160, 60)},
			[]record.BusyAt{at(100, 0), at(150, 20), at(200, 40)}},
		{"unknown usage stays unknown", [2]record.BusyAt{at(100, -1), at(200, -1)}, nil, nil},
	} {
		check.Equal(t, test.claim, between(test.edges, test.seen), test.want)
	}
}

func TestCachesAreDroppedBeforeEveryColdStart(t *testing.T) {
	s := play(2, 1, "a", "b")
	s.plan.Untraced = true
	drops := 0
	s.drop = func(context.Context) error { drops++; return nil }
	rec, err := s.run(t.Context(), t)
	must.OK(t, err)
	if warmups := 2 * s.plan.Warmup; drops != len(rec.Starts)+warmups {
		t.Errorf("%d drops before %d starts and %d of the warm-up", drops, len(rec.Starts), warmups)
	}
	for _, x := range rec.Starts {
		if x.Dropped != record.DroppedNode || x.Failure != nil {
			t.Errorf("dropped %q before the start %+v", x.Dropped, x)
		}
	}

	s = play(5, 1, "a")
	s.drop = func(context.Context) error { return errors.New("read-only file system") }
	if rec, err = s.run(t.Context(), t); err == nil || rec.End.Status != "failed" || len(rec.Starts) != 0 {
		t.Errorf("drop fails: %v, end %+v, %d starts", err, rec.End, len(rec.Starts))
	}
}

func TestBusyMachineIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		node record.Node
		drop func(context.Context) error
		want bool
	}{
		"tasks wait for a CPU":                    {record.Node{PSICPU: 0.5}, nil, true},
		"idle machine":                            {record.Node{PSICPU: 0.1}, nil, false},
		"tasks wait for the disk":                 {record.Node{PSIIO: 0.5}, nil, true},
		"tasks wait for the disk in a cold start": {record.Node{PSIIO: 0.5}, func(context.Context) error { return nil }, false},
	} {
		s := play(2, 1, "a")
		s.drop = c.drop
		s.node = func() record.Node { n := c.node; n.Known, n.HavePSI = true, true; return n }
		rec := must.Get(s.run(t.Context(), t))(t)
		found := slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == finding.Pressure })
		if found != c.want || len(rec.Nodes) != 2+s.plan.Warmup {
			t.Errorf("%s: %d readings, findings %+v", name, len(rec.Nodes), rec.Findings)
		}
	}
}

func TestArmedStartIsDisarmedIfNotReleased(t *testing.T) {
	for name, c := range map[string]struct {
		drop func(stop func()) error
		end  string
	}{
		"cache cannot be dropped":     {func(func()) error { return errors.New("read-only file system") }, "failed"},
		"interrupted during the drop": {func(stop func()) error { stop(); return nil }, "interrupted"},
	} {
		s := play(5, 1, "a")
		armed, disarmed := 0, 0
		s.oddly(odd{prepare: func(subject.Batch) subject.Batch {
			armed++
			return started(func(ctx context.Context) (int64, []record.Sample, error) {
				if ctx.Err() != nil {
					disarmed++
				}
				return 0, nil, ctx.Err()
			})
		}})
		ctx, stop := context.WithCancel(t.Context())
		s.drop = func(context.Context) error { return c.drop(stop) }
		rec, err := s.run(ctx, t)
		stop()
		if rec.End.Status != c.end || (err != nil) != (c.end == "failed") || armed != 1 || disarmed != 1 || len(rec.Starts) != 0 {
			t.Errorf("%s: end %+v, %v, %d armed, %d disarmed, %d starts", name, rec.End, err, armed, disarmed, len(rec.Starts))
		}
	}
}
