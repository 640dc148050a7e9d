package run

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/datapath"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// scene is a simulated machine. Each load sends 1000 requests. Each request runs program
// 1 once for 500 ns and program 2 twice for 100 ns.
type scene struct {
	plan       bpf.Options
	statistics int // open descriptors that keep statistics enabled
	counters   map[uint32]*bpfstat.Counters
	gone       uint32 // program that disappears with the first load
	held       bool   // the counters of the gone program stay readable until the next listing, because the meter holds it
	stays      bool   // the gone program stays loaded but is no longer selected
	came       bool   // a program appears with the first load
	others     bool   // another process enables statistics all the time
	attached   datapath.Options
	failAttach error
	failRemove error // error of removing the clients' groups
	unsent     int64
	heavy      int64
	services   int
	asked      []load.ClientOptions
	open       int // resources created and not yet removed
	loads      int
	failStart  error
	anyError   bool // run returns an error
	file       bytes.Buffer
	onRun      func()
	lock       sync.Mutex // memory is read concurrently with a load
	listed     int
}

func (s *scene) made() { s.open++ }
func (s *scene) end() error {
	s.open--
	return nil
}

func newScene() *scene {
	p := bpf.DefaultsOfLoad()
	p.Seed, p.Duration, p.Idle, p.Connections, p.Rounds = 1, 100*time.Millisecond, time.Millisecond, []int{10, 20}, 2
	return &scene{plan: p, counters: map[uint32]*bpfstat.Counters{1: {ID: 1}, 2: {ID: 2}}}
}

func (s *scene) run(ctx context.Context, t *testing.T) *record.Record {
	t.Helper()
	w := record.NewWriter(&s.file)
	busy := int64(0)
	rec, _, err := Run(ctx, Options{
		Plan: s.plan, Options: run.Options{RunID: "r", Write: w.Write}, Meter: s,
		Place: func() (string, func() error, error) { s.made(); return "/place", s.end, nil },
		Attach: func(o datapath.Options) (Datapath, error) {
			if s.failAttach != nil {
				return nil, s.failAttach
			}
			s.made()
			s.attached = o
			return path{s}, nil
		},
		Serve: func(context.Context) (Server, error) { s.made(); return server{s}, nil },
		Start: func(_ context.Context, o load.ClientOptions) (Clients, error) {
			if s.failStart != nil {
				return nil, s.failStart
			}
			s.made()
			s.asked = append(s.asked, o)
			return clients{s}, nil
		},
		Limit: func(place string, cpus float64, n int) (Groups, error) { s.made(); return groups{s, n}, nil },
		Node:  func() (int64, int, error) { busy += 1e6; return busy, 8, nil },
		Own:   func() int64 { return 0 },
	})
	must.That(t, (err != nil) == s.anyError, "%v", err)
	check.That(t, s.open == 0 && s.statistics == 0, "%d resources and %d descriptors of statistics left", s.open, s.statistics)
	stored, err := record.Read(&s.file)
	check.That(t, err == nil && len(stored.Problems) == 0 && len(stored.Points) == len(rec.Points) && len(stored.Programs) == len(rec.Programs),
		"%v: stored %d of %d points; %v", err, len(stored.Points), len(rec.Points), stored.Problems)
	return rec
}

func (s *scene) Statistics() (func() error, bool, error) {
	s.statistics++
	return func() error { s.statistics--; return nil }, false, nil
}

func (s *scene) List(f bpfstat.Filter) (*bpfstat.Listing, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.listed++
	l := &bpfstat.Listing{}
	ids := []uint32{1, 2}
	if s.came && s.loads > 0 {
		ids = append(ids, 3)
		if s.counters[3] == nil {
			s.counters[3] = &bpfstat.Counters{ID: 3}
		}
	}
	if s.loads > 0 && s.gone > 0 {
		ids = slices.DeleteFunc(ids, func(id uint32) bool { return id == s.gone })
		if s.held && !s.stays {
			l.Went, s.held = append(l.Went, *s.counters[s.gone]), false
		}
	}
	for _, id := range ids {
		l.Programs = append(l.Programs, record.Program{ID: id, Kind: "cgroup_sock_addr", Name: string(rune('a' + id)), Attached: []string{}, Maps: []record.ProgramMap{{ID: 9, Kind: "hash", Name: "m", Memory: 100}}})
	}
	return l, nil
}

func (s *scene) Describe(*bpfstat.Listing) error { return nil }

func (s *scene) Counters(ids []uint32, into []bpfstat.Counters) ([]bpfstat.Counters, error) {
	for _, id := range ids {
		if id == s.gone && s.loads > 0 && !s.held {
			continue
		}
		into = append(into, *s.counters[id])
	}
	return into, nil
}

type path struct{ *scene }

func (p path) Service(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)}), 80)
}
func (p path) IDs() []uint32           { return []uint32{1, 2} }
func (p path) SetHeavy(n int64) error  { p.heavy = n; return nil }
func (p path) SetServices(n int) error { p.services = n; return nil }
func (p path) Close() error            { return p.end() }

type server struct{ *scene }

func (s server) Addr() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:1234") }
func (s server) URL() string          { return "http://127.0.0.1:1234/" }
func (s server) CPU() int64           { return int64(s.loads) * 5e6 }
func (s server) Close() error         { return s.end() }

type clients struct{ *scene }

func (c clients) Run(context.Context) (load.Result, error) {
	c.lock.Lock()
	c.loads++
	c.lock.Unlock()
	if c.onRun != nil {
		c.onRun()
	}
	if c.statistics > 0 || c.others {
		c.counters[1].Count, c.counters[1].Time = c.counters[1].Count+1000, c.counters[1].Time+500_000
		c.counters[2].Count, c.counters[2].Time = c.counters[2].Count+2000, c.counters[2].Time+200_000
	}
	return load.Result{Sent: record.Sent{Requests: 1000, QPS: 10_000, Mean: 5, P50: 5, P90: 6, P99: 7, P999: 8, Max: 9, Sockets: 1000, Errors: 1, Unsent: c.unsent, Lag: 4, Failures: map[string]int64{"status 503": 1}}, CPU: 7e6}, nil
}
func (c clients) Close() error { return c.end() }

type groups struct {
	*scene
	n int
}

func (g groups) Folders() [][]string { return make([][]string, g.n) }
func (g groups) Close() error        { return errors.Join(g.end(), g.failRemove) }
func (g groups) Read() (record.GroupCPU, error) {
	return record.GroupCPU{Version: 1, Limit: 1, Usage: int64(g.loads) * 9e6, Ticks: int64(g.loads) * 1e7, Periods: int64(g.loads) * 10, Throttled: int64(g.loads) * 4, Held: 5}, nil
}

func TestEveryPointHasAllPhases(t *testing.T) {
	s := newScene()
	rec := s.run(t.Context(), t)
	count := map[string]int{}
	for _, p := range rec.Points {
		must.That(t, p.Failure == nil, "%+v", p.Failure)
		key := p.Phase
		if !p.Asked.Statistics {
			key += " without"
		}
		count[key]++
		switch {
		case key == "load":
			check.That(t, len(p.Runs) == 2 && p.Runs[0].Count == 1000 && p.Runs[0].Time == 500_000 && p.Runs[1].Count == 2000 &&
				p.ClientCPU == 7e6 && p.ServerCPU == 5e6 && p.Sent.Requests == 1000 && p.CPUs == 8, "%+v", p)
		case key == "load without":
			check.That(t, len(p.Runs) == 0 && p.Sent != nil, "%+v", p)
		case p.Sent != nil || len(p.Runs) != 2 || p.Runs[0].Count != 0:
			t.Errorf("%+v", p)
		}
		check.That(t, p.Datapath == "reference" && p.Case == record.CaseLoad, "%+v", p)
	}
	want := 4
	check.That(t, count["idle"] == want && count["load"] == want && count["load without"] == want && count["cool-down"] == want, "%v", count)
	check.That(t, len(rec.Programs) == 2 && rec.End.Status == "done" && rec.End.Why == "rounds",
		"%d programs, end %+v", len(rec.Programs), rec.End)
	check.That(t, s.asked[0].URL == "http://198.18.0.1:80/" && s.asked[0].Instances == 1, "asked %+v", s.asked[0])
	j, err := bpf.Judge(rec)
	check.That(t, err == nil && len(j.Rows) == 2 && j.Rows[0].Rounds == 2 && j.Memory == 100, "%v: %+v", err, j)
}

func TestQuotaHasUnlimitedControls(t *testing.T) {
	s := newScene()
	s.plan = bpf.DefaultsOfQuota()
	s.plan.Seed, s.plan.Duration, s.plan.Idle, s.plan.Rounds, s.plan.Instances = 1, 100*time.Millisecond, time.Millisecond, 1, 4
	rec := s.run(t.Context(), t)
	controls, limited := 0, 0
	for _, p := range rec.Points {
		switch {
		case p.Phase != record.PhaseLoad:
		case p.Asked.CPUs == 0:
			controls++
			check.That(t, p.Asked.Heavy == slices.Max(s.plan.Heavy) && p.Group == nil, "%+v", p.Asked)
		default:
			limited++
			check.That(t, p.Group != nil && p.Group.Usage == 9e6 && p.Group.Ticks == 1e7 && p.Group.Throttled == 4, "%+v", p.Group)
		}
	}
	check.That(t, controls == 2 && limited == 2*len(s.plan.Heavy), "%d controls, %d limited", controls, limited) // with and without statistics
	got := s.asked[0]
	check.That(t, len(got.Groups) == 4 && got.Instances == 4, "asked %+v", got)
}

func TestAppearingAndDisappearingProgramsAreReported(t *testing.T) {
	s := newScene()
	s.plan.Datapath, s.plan.Names, s.plan.URL, s.plan.Rounds = "", []string{"a*"}, "http://10.0.0.1/", 1
	s.gone, s.came = 2, true
	rec := s.run(t.Context(), t)
	text := ""
	for _, p := range rec.Points {
		text += strings.Join(p.Problems, "\n")
		check.Equal(t, "chosen by", p.Datapath, "name a*")
	}
	check.That(t, strings.Contains(text, "program 2 c was unloaded") && strings.Contains(text, "program 3 d was loaded") && len(rec.Programs) == 3,
		"%d programs; %s", len(rec.Programs), text)
	check.That(t, s.asked[0].URL == "http://10.0.0.1/", "asked %+v", s.asked[0])
}

// The meter keeps listed programs alive, so counters alone do not show that one is gone.
func TestProgramHeldOnlyByMeterIsReportedGone(t *testing.T) {
	for name, c := range map[string]struct {
		held bool
		want string
	}{
		"unloaded":                 {true, "program 2 c was unloaded: its runs count until then"},
		"unloaded and released":    {false, "program 2 c was unloaded"},
		"not chosen by the filter": {true, "program 2 c no longer matches the selection"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.plan.Datapath, s.plan.Names, s.plan.URL, s.plan.Rounds = "", []string{"a*"}, "http://10.0.0.1/", 1
			s.gone, s.held = 2, c.held
			s.stays = name == "not chosen by the filter"
			rec := s.run(t.Context(), t)
			said, after := 0, 0
			for _, p := range rec.Points {
				said += strings.Count(strings.Join(p.Problems, "\n"), c.want)
				if said > 0 && len(p.Problems) == 0 && slices.ContainsFunc(p.Runs, func(r record.ProgramRun) bool { return r.ID == 2 }) {
					after++
				}
			}
			check.That(t, said == 1 && after == 0, "reported %d times, and present in %d later phases", said, after)
		})
	}
}

func TestForeignStatisticsAreReportedAndKept(t *testing.T) {
	s := newScene()
	s.others = true
	rec := s.run(t.Context(), t)
	without := 0
	for _, p := range rec.Points {
		if p.Asked.Statistics {
			continue
		}
		without++
		check.That(t, len(p.Runs) == 2 && p.Runs[0].Count == 1000 &&
			strings.Contains(strings.Join(p.Problems, "\n"), "statistics were on for another process"), "%+v", p)
	}
	j, err := bpf.Judge(rec)
	check.That(t, err == nil && without == 4 && !j.Rows[0].All.Of("requests-with-statistics-ratio").Known(),
		"%v: %d loads without statistics, overhead %+v", err, without, j.Rows[0].All.Of("requests-with-statistics-ratio"))
}

func TestServicesUseThePlannedServer(t *testing.T) {
	s := newScene()
	s.plan.URL, s.plan.Services = "http://localhost:8080/a?b=c", []int{3}
	s.run(t.Context(), t)
	check.Equal(t, "services lead to", s.attached.Backend.String(), "127.0.0.1:8080")
	got := s.asked[0]
	check.That(t, got.URL == "http://198.18.0.3:80/a?b=c" && got.Host == "localhost:8080", "asked for %s as %s", got.URL, got.Host)
}

func TestRunFailureIsReported(t *testing.T) {
	s := newScene()
	s.failRemove, s.anyError = errors.New("the kernel says no"), true
	rec := s.run(t.Context(), t)
	if !slices.ContainsFunc(rec.Findings, func(f record.Finding) bool {
		return f.Level == "error" && strings.Contains(f.Message, "ended by an error after 0 points: remove the clients' cgroups: the kernel says no")
	}) || len(rec.Points) == 0 || rec.End.Status != "failed" {
		t.Errorf("%d points, %+v, end %+v", len(rec.Points), rec.Findings, rec.End)
	}
}

func TestUnsentRequestsAreRecorded(t *testing.T) {
	s := newScene()
	s.unsent = 3
	for _, p := range s.run(t.Context(), t).Points {
		check.That(t, p.Sent == nil || p.Sent.Unsent == 3 && p.Sent.Lag == 4 && p.Sent.Failures["status 503"] == 1, "%+v", p.Sent)
	}
}

func TestRunThatCannotStartHasAFinding(t *testing.T) {
	refused := errors.New("the verifier says no")
	for name, c := range map[string]struct {
		url    string
		attach error
		want   string
	}{
		"attach fails":               {"", refused, "the verifier says no"},
		"IPv6 server":                {"http://[::1]:8080/", nil, "lead to IPv4 addresses, and the URL's host is at ::1"},
		"unknown server host":        {"http://nowhere.invalid/", nil, "find where the services lead"},
		"unspecified server address": {"http://0.0.0.0:80/", nil, "lead to IPv4 addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.plan.URL, s.failAttach, s.anyError = c.url, c.attach, true
			rec := s.run(t.Context(), t)
			check.That(t, len(rec.Findings) == 1 && rec.Findings[0].Level == "error" && strings.Contains(rec.Findings[0].Message, c.want) &&
				rec.End.Status == "failed", "%+v, end %+v", rec.Findings, rec.End)
		})
	}
}

func TestFailedLoadFailsOnlyItsPoint(t *testing.T) {
	s := newScene()
	s.failStart = errors.New("nobody answers")
	rec := s.run(t.Context(), t)
	failed := 0
	for _, p := range rec.Points {
		if p.Failure != nil {
			failed++
			check.That(t, strings.Contains(p.Failure.Detail, "nobody answers"), "%+v", p.Failure)
		}
	}
	check.That(t, failed != 0 && rec.End.Failures != 0, "%d failed, end %+v", failed, rec.End)
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	s := newScene()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.onRun = cancel
	rec := s.run(ctx, t)
	check.That(t, rec.End.Status == "interrupted" && len(rec.Points) <= 3, "%d points, end %+v", len(rec.Points), rec.End)
}

func TestMemoryIsReadForEveryNumberOfServices(t *testing.T) {
	s := newScene()
	s.plan = bpf.DefaultsOfMemory()
	s.plan.Seed, s.plan.Duration, s.plan.Idle = 1, 100*time.Millisecond, time.Millisecond
	count := func() int {
		s.lock.Lock()
		defer s.lock.Unlock()
		return s.listed
	}
	during := 0
	s.onRun = func() { // a load lasts until the memory was read
		for before, end := count(), time.Now().Add(s.plan.Duration); s.statistics > 0; time.Sleep(time.Millisecond) {
			if count() > before {
				during++
				return
			}
			if time.Now().After(end.Add(time.Minute)) {
				return
			}
		}
	}
	rec := s.run(t.Context(), t)
	loaded := 0
	for _, p := range rec.Points {
		if p.Phase == record.PhaseLoad && len(p.Memory) == 3 {
			loaded++
		}
	}
	check.That(t, during == 3 && loaded == 3, "memory was read during %d of 3 loads and recorded for %d", during, loaded)
	seen := map[int]bool{}
	for _, p := range rec.Points {
		if p.Phase == record.PhaseIdle {
			seen[p.Asked.Services] = true
			check.That(t, len(p.Memory) == 3, "%+v", p.Memory) // two programs and the map they share
		}
	}
	check.That(t, len(seen) == 3, "services %v", seen)
}
