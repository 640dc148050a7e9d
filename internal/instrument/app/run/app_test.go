package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/minder"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/ports"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) {
	if code, handled := load.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// server is a target with known latencies. Each answer takes a fixed time, and twice that
// time while a neighbour works.
type server struct {
	name   string
	takes  time.Duration
	fails  int64 // every n-th request is refused
	port   string
	starts func(lane int) *record.Failure
	over   *record.Failure // the failure injected while the server is queried
	noisy  *atomic.Bool    // shared by all sessions of the target
	loud   atomic.Int64    // requests received while a neighbour worked
	open   *atomic.Int64
}

func (t *server) Info() record.Target {
	return record.Target{Type: record.TypeTarget, Name: t.name, Kind: "fake", Version: "1", Clock: "host", Operations: map[string]record.Operation{
		string(subject.Run): {Command: "serve", Done: record.StampReturned, Means: "it was started"},
	}}
}

func (t *server) Open(_ context.Context, env subject.Env) (subject.Session, error) {
	t.open.Add(1)
	if neighbour := env.Lanes > 1; neighbour != (env.Limits == setting.Limits{}) {
		return nil, fmt.Errorf("limits %+v on lane %d", env.Limits, env.Lanes-1)
	}
	return &seat{server: t, workload: env.Lanes == 1}, nil
}

// seat is a session of the service or of its neighbour.
type seat struct {
	*server
	workload bool
	http     *httptest.Server
	count    atomic.Int64
}

func (s *seat) Prepare(_ context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	if op != subject.Run || len(lanes) != 1 {
		return nil, fmt.Errorf("%s of %v", op, lanes)
	}
	return s, nil
}

func (s *seat) Start(context.Context) (int64, []record.Sample, error) {
	now := machine.Now()
	sample := record.Sample{Start: now, Returned: now + 1, First: now + 1}
	if s.starts != nil {
		if sample.Failure = s.starts(serving); sample.Failure != nil {
			return now, []record.Sample{sample}, nil
		}
	}
	if !s.workload {
		s.noisy.Store(true) // a neighbour's work may start late
		return now, []record.Sample{sample}, nil
	}
	s.http = httptest.NewUnstartedServer(s)
	s.http.Listener.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:"+s.port)
	if err != nil {
		return now, nil, err
	}
	s.http.Listener = l
	s.http.Start()
	return now, []record.Sample{sample}, nil
}

func (s *seat) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	takes := s.takes
	if s.noisy.Load() {
		s.loud.Add(1)
		takes *= 2
	}
	time.Sleep(takes)
	if n := s.count.Add(1); s.fails > 0 && n%s.fails == 2 { // the first request is the readiness poll
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (s *seat) Over(_ context.Context, lanes []int) (over []int, first *record.Failure) {
	if s.workload && s.over != nil {
		return lanes, s.over
	}
	return nil, nil
}

func (s *seat) Reach(int) subject.Reached                        { return subject.Reached{Host: true} }
func (s *seat) Ended(context.Context, int) (ended subject.Ended) { return ended }

func (s *seat) Exec(ctx context.Context, lane int, args []string) (subject.Executed, error) {
	if s.workload || lane != 1 || args[1] != "spin" {
		return subject.Executed{}, fmt.Errorf("%v on lane %d", args, lane)
	}
	defer s.noisy.Store(false)
	<-ctx.Done()
	return subject.Executed{}, ctx.Err()
}

func (s *seat) Discard(context.Context, []int) error {
	if s.http != nil {
		s.http.Close()
		s.http = nil
	}
	return nil
}

func (s *seat) Close(ctx context.Context) error {
	s.open.Add(-1)
	return s.Discard(ctx, nil)
}

// meter simulates a node. In each window the service uses 3 ms of CPU and its shim 1 ms.
type meter struct{}

func (meter) Begin(context.Context, []subject.Sandbox, []int) *snapshot.Edge {
	return &snapshot.Edge{Reading: record.Reading{Time: machine.Now()}}
}
func (m meter) End(ctx context.Context, b []subject.Sandbox, d []int) *snapshot.Edge {
	return m.Begin(ctx, b, d)
}
func (meter) Seen(begin, end *snapshot.Edge, _ string) record.Observed {
	return record.Observed{Took: end.Reading.Time - begin.Reading.Time, CPU: []record.RoleTime{{Role: record.RoleWorkload, NS: 3e6}, {Role: record.RoleShim, NS: 1e6}}}
}

func runApp(t *testing.T, change func(*app.Options), targets ...*server) *app.Judgement {
	t.Helper()
	port := strconv.Itoa(ports.Held(t))
	p := app.Defaults()
	p.Limits.CPU = 1.5 // limits of the service; neighbours have none
	p.URL, p.Rounds, p.Seed, p.Warm, p.Duration, p.Connections, p.Timeout = "http://:"+port+"/", 2, 1, 0, time.Second, 2, time.Minute
	p.Answer = time.Minute
	change(&p)
	must.OK(t, option.Check(&p))
	var open, noisy = &atomic.Int64{}, &atomic.Bool{}
	o := Options{Plan: p, Meter: meter{}, Options: run.Options{RunID: "r", Dirs: func(string) (string, string, error) { return "", "", nil }}, Neighbours: make([]subject.Workload, len(p.Neighbours)),
		Pressure: func(int) (int64, int64, int64, error) { return 0, 0, 0, errors.New("not here") }}
	for _, target := range targets {
		target.open, target.noisy, target.port = open, noisy, port
		o.Targets = append(o.Targets, target)
	}
	rec, j, err := Run(t.Context(), o)
	must.OK(t, err)
	check.Equal(t, "open sessions", open.Load(), 0)
	for i, w := range record.All[app.Window](rec) {
		err := record.Validate(w)
		check.That(t, err == nil, "window %d: %v", i, err)
	}
	return j
}

func of(t *testing.T, j *app.Judgement, quantity string, labels ...string) figure.Figure {
	t.Helper()
	f := figure.Find(j.Figures(), quantity, labels...)
	if !f.Known() {
		t.Fatalf("no %s of %v: %+v", quantity, labels, j.Found)
	}
	return f
}

// in returns the value of one round.
func in(f figure.Figure, round int) float64 {
	i := slices.IndexFunc(f.Rounds, func(r figure.Round) bool { return r.Round == round })
	return f.Rounds[i].Value
}

// One of two servers is three times slower than the other.
func TestMeasuredLatencyMatchesServer(t *testing.T) {
	j := runApp(t, func(*app.Options) {}, &server{name: "fast", takes: 10 * time.Millisecond}, &server{name: "slow", takes: 30 * time.Millisecond})
	fast, slow := of(t, j, "throughput", "target", "fast"), of(t, j, "throughput", "target", "slow")
	check.That(t, fast.Value <= 2/0.010 && slow.Value <= 2/0.030, "%.1f and %.1f requests/s on two connections", fast.Value, slow.Value)
	for name, takes := range map[string]float64{"fast": 10e6, "slow": 30e6} {
		for _, q := range []figure.Figure{of(t, j, "latency", "target", name, "quantile", "p50"), of(t, j, "first-request", "target", name), of(t, j, "first-answer", "target", name)} {
			check.That(t, q.Value >= takes, "%s: %s %s is %g ns", name, q.Quantity, q.Labels, q.Value)
		}
		p50, cpu := of(t, j, "latency", "target", name, "quantile", "p50"), of(t, j, "cpu-per-request", "target", name, "role", "workload")
		for _, w := range record.All[app.Window](j.Record) {
			if w.Target != name {
				continue
			}
			// With two connections, a request takes on average twice the time between two
			// answers (Little's law), on any machine. A median is at most twice its mean.
			// The factor 1.5 allows for one more request in flight, which counts in
			// rounds with few requests.
			v, most := in(p50, w.Round), 1.5*2*2e9/w.Sent.QPS
			check.That(t, v <= most, "%s: median latency %g ns, want at most %g", name, v, most)
			v = in(cpu, w.Round) * float64(w.Sent.Requests)
			check.That(t, math.Abs(v-3e6) <= 1, "%s: CPU time of the service is %g ns in a window, want 3 ms", name, v)
		}
		check.That(t, of(t, j, "cpu-per-request", "target", name, "role", "client").Value > 0, "%s: the client used no CPU time", name)
	}
	failed, total, _ := j.Result()
	check.That(t, failed == 0 && total == 4, "%d of %d windows failed", failed, total)
}

// Only the lower bound is checked, because a disturbed machine delays answers and never
// makes them earlier. The server itself counts the requests that overlap a neighbour.
func TestNeighbourSlowdownIsMeasured(t *testing.T) {
	const takes = 10 * time.Millisecond
	targets := []*server{{name: "a", takes: takes}, {name: "b", takes: takes}}
	j := runApp(t, func(p *app.Options) { p.Neighbours = []string{"spin 1cpu"} }, targets...)
	windows := 0
	for _, target := range targets {
		beside := int64(0)
		for _, w := range record.All[app.Window](j.Record) {
			if w.Target != target.name || w.Sent == nil {
				continue
			}
			if windows++; w.Neighbour != "" {
				beside += w.Sent.Requests
			}
		}
		// With two connections and two windows, each may have one request in flight at
		// the end.
		if loud := target.loud.Load(); beside == 0 || loud < beside || loud > beside+4 {
			t.Errorf("%s: %d requests during a neighbour's work, %d sent in windows with one", target.name, loud, beside)
		}
		for _, neighbour := range []string{"", "spin 1cpu"} {
			least := map[bool]time.Duration{true: takes, false: 2 * takes}[neighbour == ""]
			for _, f := range j.Figures() {
				if f.Quantity == "latency" && f.Labels.Get("target") == target.name && f.Labels.Get("quantile") == "p50" && f.Labels.Get("neighbour") == neighbour && !(f.Value >= float64(least)) {
					t.Errorf("%s answers in %g ns with neighbour %q, want at least %v", target.name, f.Value, neighbour, least)
				}
			}
		}
		of(t, j, "throughput-kept", "target", target.name, "neighbour", "spin 1cpu")
	}
	_, total, _ := j.Result()
	check.That(t, total == 8 && windows == 8, "%d windows, %d with a load", total, windows)
}

func TestFailuresAreCountedByCause(t *testing.T) {
	refused := &record.Failure{Kind: record.FailExit, Detail: "exit status 1", Output: "no space"}
	crashed := &record.Failure{Kind: record.FailWorkload, Detail: "it ended", Output: "out of luck"}
	j := runApp(t, func(p *app.Options) { p.Rounds = 1 }, &server{name: "flaky", takes: time.Millisecond, fails: 5},
		&server{name: "broken", starts: func(int) *record.Failure { return refused }}, &server{name: "crashed", takes: time.Millisecond, over: crashed}, &server{name: "good", takes: time.Millisecond})
	for _, w := range record.All[app.Window](j.Record) {
		if w.Target != "flaky" {
			continue
		}
		if errored := of(t, j, "errors", "target", "flaky"); math.Abs(errored.Value-0.2)*float64(w.Sent.Requests) > 1 {
			t.Errorf("%g of %d requests failed, want one in five", errored.Value, w.Sent.Requests)
		}
	}
	failed, total, found := j.Result()
	check.That(t, failed == 3 && total == 4, "%d of %d windows failed", failed, total)
	for _, want := range []string{"status 503", "no space", "it ended: out of luck"} {
		check.That(t, slices.ContainsFunc(found, func(f record.Finding) bool { return strings.Contains(f.Message, want) && f.Level == "error" }),
			"no finding with %q: %+v", want, found)
	}
}

func TestMissedRateIsReported(t *testing.T) {
	j := runApp(t, func(p *app.Options) { p.Rounds, p.Rate, p.Answer = 1, 1000, 6*time.Second }, &server{name: "slow", takes: 200 * time.Millisecond})
	for _, code := range []string{"rate-not-reached", "requests-not-sent"} {
		check.That(t, slices.ContainsFunc(j.Found, func(f record.Finding) bool { return f.Code == code }), "no %s: %+v", code, j.Found)
	}
	p99 := of(t, j, "latency", "quantile", "p99").Value
	check.That(t, p99 >= 500e6, "p99 is %g ns, want the delay of a queue that grew for a second", p99)
}

func TestNeighbourUsageIsCompleteOrUnknown(t *testing.T) {
	const ms = int64(time.Millisecond)
	reading := func(at int64, processes ...record.Process) *record.Reading {
		return &record.Reading{Time: at, Host: record.Host{Total: 1 << 30}, Processes: processes}
	}
	process := func(pid int, role record.Role, cpu int64) record.Process {
		return record.Process{Pid: pid, Start: 1, Lane: 1, Role: role, CPU: cpu}
	}
	for name, c := range map[string]struct {
		begin, end *record.Reading
		want       int64 // -1 for unknown
	}{
		"all roles": {reading(1, process(7, record.RoleWorkload, 0), process(8, record.RoleShim, 1*ms)),
			reading(1e9, process(7, record.RoleWorkload, 500*ms), process(8, record.RoleShim, 3*ms)), 502 * ms},
		"nothing":                       {reading(1, process(7, record.RoleWorkload, 5*ms)), reading(1e9, process(7, record.RoleWorkload, 5*ms)), 0},
		"no known process":              {reading(1), reading(1e9), -1},
		"node not read":                 {&record.Reading{Time: 1}, &record.Reading{Time: 1e9}, -1},
		"process not read at the begin": {reading(1e9, process(7, record.RoleWorkload, 0)), reading(2e9, process(7, record.RoleWorkload, 500*ms), process(8, record.RoleShim, 3*ms)), -1},
	} {
		got := int64(-1)
		if ns := used(c.begin, c.end); ns != nil {
			got = *ns
		}
		check.Equal(t, name, got, c.want)
	}
}

func TestUnknownPressureHasItsOwnReason(t *testing.T) {
	box := func(pid int) []subject.Sandbox { return []subject.Sandbox{{Workload: pid}} }
	for name, c := range map[string]struct {
		own, beside    []subject.Sandbox
		neighbour      string
		service, noise string // the reasons
	}{
		"both known":              {box(1), box(1), "spin 1cpu", "", ""},
		"service unknown":         {box(2), box(1), "spin 1cpu", "not here", ""},
		"neighbour unknown":       {box(1), box(2), "spin 1cpu", "", "not here"},
		"neighbour without a pid": {box(1), nil, "spin 1cpu", "", "the target does not report the workload's process"},
		"no neighbour":            {box(2), nil, "", "not here", ""},
	} {
		v := &visit{schedule: &schedule{options: Options{Pressure: func(pid int) (int64, int64, int64, error) {
			return 0, 0, 0, map[int]error{2: errors.New("not here")}[pid]
		}}}}
		v.window.Neighbour = c.neighbour
		v.press(c.own, c.beside)(1e9)
		w := &v.window
		check.That(t, w.Unpressed == c.service && w.UnpressedBeside == c.noise && (w.Own == nil) == (c.service != "") &&
			(w.Beside == nil) == (c.noise != "" || c.neighbour == ""), "%s: %q, %q, %+v, %+v", name, w.Unpressed, w.UnpressedBeside, w.Own, w.Beside)
	}
}

func TestTooFewRoundsToCompareAreReportedBeforeTheRun(t *testing.T) {
	refused := &record.Failure{Kind: record.FailExit, Detail: "exit status 1"}
	for rounds, want := range map[int]string{7: "7 rounds cannot show a difference, however large it is: the comparisons in the table need 8: use --rounds 8 or more, 1.1 times as long", 8: ""} {
		var open, noisy, warned = &atomic.Int64{}, &atomic.Bool{}, ""
		o := Options{Plan: app.Defaults(), Meter: meter{}, Options: run.Options{RunID: "r", Dirs: func(string) (string, string, error) { return "", "", nil }, Warn: func(text string) { warned += text }}}
		o.Plan.Rounds, o.Plan.Limits.CPU = rounds, 1
		for _, name := range []string{"a", "b"} {
			o.Targets = append(o.Targets, &server{name: name, open: open, noisy: noisy, starts: func(int) *record.Failure { return refused }})
		}
		_, _, err := Run(t.Context(), o)
		check.That(t, err == nil && warned == want, "%d rounds: %q, %v", rounds, warned, err)
	}
}

// choosy is a target that accepts only its own image. Its workload is a process of the
// test that writes its output to a file.
type choosy struct {
	name, takes string
	pid         int
	log         string
}

func (c *choosy) Info() record.Target { return record.Target{Name: c.name, Kind: "fake"} }
func (c *choosy) Refuses(w *setting.Workload) *subject.Unavailable {
	if w.Image == c.takes {
		return nil
	}
	return &subject.Unavailable{Name: c.name, Reason: "it has an image of its own"}
}
func (c *choosy) Open(context.Context, subject.Env) (subject.Session, error) { return c, nil }
func (c *choosy) Prepare(context.Context, subject.Op, []int) (subject.Batch, error) {
	return c, nil
}
func (c *choosy) Start(context.Context) (int64, []record.Sample, error) {
	return 1, []record.Sample{{Lane: 1}}, nil
}
func (c *choosy) Discard(context.Context, []int) error { return nil }
func (c *choosy) Close(context.Context) error          { return nil }
func (c *choosy) Reach(int) subject.Reached {
	return subject.Reached{Pid: c.pid, Log: c.log, Plain: true, Own: func(pid int) bool { return pid == c.pid }}
}
func (c *choosy) Ended(context.Context, int) subject.Ended {
	return subject.Ended{Exit: 137, Known: true}
}

func TestTargetWithFixedImageRefusesNeighbourImage(t *testing.T) {
	all := []subject.Target{&choosy{name: "takes", takes: "redis:7"}, &choosy{name: "none", takes: "x"}}
	found := homeless(must.Get(app.ParseNeighbour("redis:7"))(t), all)
	check.That(t, len(found) == 1 && found[0].Target == "none" && strings.HasSuffix(found[0].Message, ": it has an image of its own"),
		"%+v", found)
	found = homeless(must.Get(app.ParseNeighbour("spin 1cpu"))(t), all)
	check.That(t, found == nil, "the probe's neighbour: %+v", found)
	for i, want := range []bool{true, false} {
		s, err := besides(t.Context(), all[i].(*choosy), all[i], subject.Env{}, []app.Neighbour{must.Get(app.ParseNeighbour("redis:7"))(t)}, []subject.Workload{{Cargo: &cargo.Cargo{}}})
		must.OK(t, err)
		if is := s.(*shared).rooms[0] != nil; is != want {
			t.Errorf("%s: room %v", all[i].Info().Name, is)
		}
		check.Error(t, s.Close(t.Context()), "")
	}
}

func TestNeighbourFloodingItsLogIsStopped(t *testing.T) {
	c := exec.Command("sleep", "1000")
	must.OK(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	in := &choosy{name: "a", pid: c.Process.Pid, log: filepath.Join(t.TempDir(), "log")}
	must.OK(t, os.WriteFile(in.log, nil, 0o600))
	r := must.Get(newRoom(t.Context(), in, subject.Env{}, subject.Workload{Cargo: &cargo.Cargo{}}, 1))(t)
	defer r.Close(t.Context())
	must.OK(t, started(subject.Operate(t.Context(), r, subject.Run, []int{1})))
	x := &noise{in: r}
	must.OK(t, x.over(t.Context()))
	must.OK(t, os.Truncate(in.log, minder.Most(1)))
	_ = c.Wait()
	check.Error(t, x.over(t.Context()), "ended before the window did: its output exceeded 256 MiB")
}

// filing is a target that executes commands. Layout commands return a given result;
// others run until their context ends.
type filing struct {
	choosy
	exit int
	ran  chan string
}

func (f *filing) Exec(ctx context.Context, _ int, args []string) (subject.Executed, error) {
	f.ran <- strings.Join(args, " ")
	if !slices.Contains(args, "--create_only=1") {
		<-ctx.Done()
	}
	return subject.Executed{Exit: f.exit}, ctx.Err()
}

func TestNeighbourFileIsLaidOutBeforeItsLoad(t *testing.T) {
	for _, exit := range []int{0, 1} {
		in := &filing{exit: exit, ran: make(chan string, 2)}
		s := &schedule{options: Options{FioPath: "/fio", Plan: app.Options{Timeout: time.Minute}}}
		v := &visit{schedule: s, turn: turn{Part: 1, Target: &run.Target[subject.Session]{Session: &shared{Session: in, rooms: []*room{{in, 1}}}}}}
		x, err := v.disturb(t.Context(), must.Get(app.ParseNeighbour("storage randread"))(t), time.Hour)
		first := <-in.ran
		check.That(t, strings.Contains(first, " --rw=randread ") && strings.HasSuffix(first, " --create_only=1"), "first command %s", first)
		if exit != 0 {
			check.That(t, err != nil && err.Error() == "the neighbour's file was not laid out: exit status 1" && len(in.ran) == 0,
				"%v, then %d more commands", err, len(in.ran))
			continue
		}
		must.OK(t, err)
		then := <-in.ran
		check.That(t, !strings.Contains(then, "create_only") && strings.Contains(then, " --direct=1 "), "second command %s", then)
		x.end()
	}
}
