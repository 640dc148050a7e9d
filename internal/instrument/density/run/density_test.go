package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/density"
	densityrun "github.com/tare-bench/tare/internal/instrument/density/run"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const mib = 1 << 20

// node is a simulated node with known free resources. It implements the target, session
// and meter, and the readings of the guard.
type node struct {
	mu    sync.Mutex // the guard reads concurrently with a start
	began time.Time
	free  int64                               // free bytes without sandboxes and other processes
	floor int64                               // bytes that must stay free
	costs func(n int) int64                   // bytes used by the n-th sandbox
	late  func(n int) time.Duration           // delay between the start and that use of memory
	takes func(there int) time.Duration       // duration of a start
	other func(elapsed time.Duration) int64   // bytes used by other processes
	fails func(n int) *record.Failure         // failure of the n-th start
	ends  func(n int) bool                    // reports whether the n-th workload exits by itself
	start func(n int)                         // called at the n-th start; may be nil
	stays time.Duration                       // timeout of a stop that ends no workload; 0: workloads end
	boxes map[int]*box                        // by lane
	made  int                                 // sandboxes ever started in this visit
	least int64                               // minimum of the free bytes at any reading
	most  int                                 // maximum number of concurrent sandboxes
	wild  int                                 // starts that began below the floor
	tasks func(there int) (left, total int64) // may be nil
	shim  int64                               // bytes of a shim that outlives the sandboxes
	shims map[string]bool                     // by sandbox id
	has   int64                               // bytes read for the process of a sandbox
	mute  bool                                // lists no sandboxes
	lost  map[int]bool                        // lanes whose start failed
	gone  []discarded                         // in order
}

type box struct {
	since time.Time
	takes int64
	late  time.Duration
	id    string
	nth   int
}

// discarded counts the complete and the broken sandboxes that are discarded in one call.
type discarded struct{ whole, broken int }

func (n *node) left() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := n.free - int64(len(n.shims))*n.shim
	for _, b := range n.boxes {
		if time.Since(b.since) >= b.late {
			left -= b.takes
		}
	}
	if n.other != nil {
		left -= n.other(time.Since(n.began))
	}
	n.least = min(n.least, left)
	return left
}

func (n *node) Levels() ([]densityrun.Level, error) {
	all := []densityrun.Level{{Name: density.Memory, Left: n.left(), Total: 8 << 30, Floor: n.floor, Least: 64 << 10}}
	if n.tasks != nil {
		left, total := n.tasks(n.there())
		all = append(all, densityrun.Level{Name: density.PIDs, Left: left, Total: total, Floor: 100, Least: 1})
	}
	return all, nil
}

func (n *node) there() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.boxes)
}

// remove removes the sandboxes on lanes. When none is left, the visit ends and the count
// of started sandboxes is reset.
func (n *node) remove(lanes []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, lane := range lanes {
		delete(n.boxes, lane)
		delete(n.lost, lane)
	}
	if len(n.boxes) == 0 {
		n.made = 0
	}
}

func (n *node) Info() record.Target {
	ops := map[string]record.Operation{}
	for _, op := range []subject.Op{subject.Run, subject.Stop, subject.Remove} {
		ops[string(op)] = record.Operation{Command: "made up", Done: record.StampReturned, Means: "the script says so"}
	}
	return record.Target{Name: "made-up", Kind: "fake", Version: "1", Clock: "host", Operations: ops}
}

func (n *node) Open(_ context.Context, env subject.Env) (subject.Session, error) {
	n.boxes, n.least, n.shims, n.lost = map[int]*box{}, n.free, map[string]bool{}, map[int]bool{}
	return &session{n, env.Lanes}, nil
}

type session struct {
	*node
	lanes int
}

func (s *session) Prepare(_ context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	for _, lane := range lanes {
		if lane >= s.lanes {
			return nil, fmt.Errorf("lane %d of %d", lane, s.lanes)
		}
	}
	return &batch{s, op, lanes}, nil
}

func (s *session) Sandboxes(ctx context.Context) (all []subject.Sandbox, err error) {
	if s.mute {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lost) > 0 {
		return nil, errors.New("one is not known")
	}
	for lane, b := range s.boxes {
		all = append(all, subject.Sandbox{Lane: lane, IDs: []string{b.id}, Workload: 7})
	}
	return all, nil
}

func (s *session) Over(_ context.Context, lanes []int) (over []int, first *record.Failure) {
	for _, lane := range lanes {
		if s.ends != nil && s.ends(s.boxes[lane].nth) {
			over, first = append(over, lane), &record.Failure{Kind: record.FailWorkload, Detail: "it ended", Output: "why"}
		}
	}
	return over, first
}

func (s *session) Discard(_ context.Context, lanes []int) error {
	var d discarded
	for _, lane := range lanes {
		if s.lost[lane] {
			d.broken++
		} else {
			d.whole++
		}
	}
	s.gone = append(s.gone, d)
	s.remove(lanes)
	return nil
}

func (s *session) Close(context.Context) error {
	if len(s.boxes) > 0 {
		return fmt.Errorf("%d sandboxes still exist", len(s.boxes))
	}
	return nil
}

type batch struct {
	*session
	op  subject.Op
	all []int
}

func (b *batch) Start(ctx context.Context) (int64, []record.Sample, error) {
	if b.op != subject.Run {
		time.Sleep(time.Millisecond)
		if b.op == subject.Remove {
			b.remove(b.all)
		}
		samples := make([]record.Sample, len(b.all))
		for i, lane := range b.all {
			samples[i] = record.Sample{Lane: lane, Start: 1, Returned: 2}
			if b.op == subject.Stop && b.stays > 0 {
				samples[i].Failure = &record.Failure{Kind: record.FailTimeout, Detail: "timed out"}
			}
		}
		if b.op == subject.Stop {
			time.Sleep(b.stays)
		}
		return 1, samples, nil
	}
	var samples []record.Sample
	for _, lane := range b.all {
		if b.left() < b.floor {
			b.wild++
		}
		b.made++
		took := b.takes(b.there())
		time.Sleep(took)
		s := record.Sample{Lane: lane, Start: 1, Returned: 1 + int64(took)}
		if b.fails != nil {
			s.Failure = b.fails(b.made)
		}
		if ctx.Err() != nil {
			s.Failure = &record.Failure{Kind: record.FailInterrupted, Detail: "interrupted"}
		}
		if s.Failure == nil {
			b.mu.Lock()
			b.boxes[lane] = &box{time.Now(), b.costs(b.made), b.late(b.made), strconv.Itoa(len(b.shims)), b.made}
			b.shims[b.boxes[lane].id] = true
			b.most = max(b.most, len(b.boxes))
			b.mu.Unlock()
		} else {
			b.lost[lane] = true
		}
		if b.start != nil {
			b.start(b.made)
		}
		b.left()
		samples = append(samples, s)
	}
	return 1, samples, nil
}

func (n *node) Settle(ctx context.Context, most time.Duration) bool {
	time.Sleep(most / 4)
	return ctx.Err() == nil
}

func (n *node) Read(_ context.Context, boxes []subject.Sandbox, _ []int, _ bool) record.Reading {
	free, others := n.left(), int64(len(n.shims))*n.shim
	if n.other != nil {
		others += n.other(time.Since(n.began))
	}
	for _, b := range boxes {
		others -= n.shim // memory of shims, which stays after the sandboxes are gone
		if len(n.boxes) == 0 && b.Workload != 0 {
			panic("a pid that another process may have by now")
		}
	}
	x := record.Reading{Time: time.Since(n.began).Nanoseconds() + 1, Host: record.Host{Total: 8 << 30, Free: free, Available: free, Others: others}}
	for i := range boxes {
		if n.has > 0 {
			x.Processes = append(x.Processes, record.Process{Pid: 100 + i, Role: record.RoleWorkload, Rule: "made up", Lane: boxes[i].Lane, Threads: 1, Read: true, PSSAnon: n.has})
		}
	}
	return x
}

func (n *node) Left(*record.Reading, []string) []string { return nil }

func (n *node) LeftBeside(*record.Reading, []string) *record.LeftBeside {
	return &record.LeftBeside{Processes: []string{}, Mounts: []string{}}
}

// plain returns a node with 256 MiB free above the floor. A sandbox allocates 2 MiB at
// once.
func plain() *node {
	return &node{
		free: 768 * mib, floor: 512 * mib,
		costs: func(int) int64 { return 2 * mib }, late: func(int) time.Duration { return 0 },
		takes: func(int) time.Duration { return 100 * time.Millisecond },
	}
}

// perform runs a density measurement on a node. The record must be readable and the node
// empty afterwards.
func perform(ctx context.Context, t *testing.T, n *node, change func(*density.Options)) (*record.Record, *density.Judgement) {
	t.Helper()
	o := density.Defaults()
	o.Rounds, o.Seed = 1, 1
	n.began = time.Now()
	if change != nil {
		change(&o)
	}
	var file bytes.Buffer
	w := record.NewWriter(&file)
	rec, j, err := densityrun.Run(ctx, densityrun.Options{Plan: o, Targets: []subject.Target{n}, Node: n, Meter: n,
		Options: run.Options{RunID: "test", Write: w.Write, Dirs: func(string) (string, string, error) { return "", "", nil }}})
	must.OK(t, err)
	stored, err := record.Read(bytes.NewReader(file.Bytes()))
	check.That(t, err == nil && stored.ProblemCount == 0 && len(stored.Density) == len(rec.Density), "stored: %v, %v", err, stored.Problems)
	check.That(t, len(n.boxes) == 0, "%d sandboxes are left", len(n.boxes))
	for _, f := range rec.Findings {
		check.That(t, f.Code != "left-behind", "left behind: %s", f.Message)
	}
	return rec, j
}

// each runs cases in parallel with separate virtual clocks.
func each[C any](t *testing.T, claims map[string]C, test func(t *testing.T, c C)) {
	t.Parallel()
	for name, c := range claims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, c) })
		})
	}
}

// last returns the end of the last visit.
func last(rec *record.Record) record.Density {
	if len(rec.Density) == 0 {
		return record.Density{}
	}
	return rec.Density[len(rec.Density)-1]
}

// shapes lists cost models that are hard to predict, seeded randomly.
var shapes = map[string]func(*node, *rand.Rand){
	"steady": func(n *node, r *rand.Rand) {
		each := 1 + r.Int64N(8*mib)
		n.costs = func(int) int64 { return each }
	},
	"jump": func(n *node, r *rand.Rand) { // from some count on, each costs up to three times as much
		each, at, times := 1+r.Int64N(3*mib), 5+r.IntN(60), 1+2*r.Float64()
		n.costs = func(i int) int64 {
			if i >= at {
				return int64(times * float64(each))
			}
			return each
		}
	},
	"lumps": func(n *node, r *rand.Rand) { // every n-th costs much more
		each, every := 1+r.Int64N(2*mib), 3+r.IntN(20)
		n.costs = func(i int) int64 {
			if i%every == 0 {
				return 8 * each
			}
			return each
		}
	},
	"late": func(n *node, r *rand.Rand) { // memory is allocated with a delay
		each, late := 1+r.Int64N(6*mib), time.Duration(r.Int64N(int64(3*time.Second)))
		n.costs, n.late = func(int) int64 { return each }, func(int) time.Duration { return late }
		n.takes = func(int) time.Duration { return 20 * time.Millisecond }
	},
	"noise": func(n *node, r *rand.Rand) { // others allocate and free memory all the time
		each, swing := 1+r.Int64N(4*mib), 1+r.Int64N(24*mib)
		n.costs = func(int) int64 { return each }
		n.other = func(time.Duration) int64 { return r.Int64N(swing) }
	},
	"eaten": func(n *node, r *rand.Rand) { // others use free memory at up to 16 MiB/s
		each, rate, most := 1+r.Int64N(3*mib), 1+r.Int64N(16*mib), 1+r.Int64N(150*mib)
		n.costs = func(int) int64 { return each }
		n.other = func(d time.Duration) int64 { return min(int64(d.Seconds()*float64(rate)), most) }
	},
}

func TestDensityStopsBeforeTheGuardForAnyCost(t *testing.T) { stopsBeforeTheGuard(t, 4) }

// stopsBeforeTheGuard runs a density measurement with n seeds for each hostile cost
// model.
func stopsBeforeTheGuard(t *testing.T, seeds uint64) {
	t.Parallel()
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				synctest.Test(t, func(t *testing.T) {
					n := plain()
					shape(n, rand.New(rand.NewPCG(seed, 1)))
					rec, _ := perform(t.Context(), t, n, nil)
					end := last(rec)
					if n.least < n.floor || n.wild > 0 || end.Trial || end.Why != record.EndResource && end.Why != record.EndOthers && end.Why != record.EndMost {
						t.Errorf("seed %d: %d MiB below the floor with %d sandboxes, %d started below it; ended by %s: %s", seed, (n.floor-n.least)/mib, n.most, n.wild, end.Why, end.Detail)
					}
					// If other processes use memory, earlier peaks are added to the
					// expected costs again, so the run may stop earlier.
					if used := float64(n.free-n.least) / float64(n.free-n.floor); end.Why == record.EndResource && used < map[bool]float64{true: 0.4, false: 0.5}[name == "eaten"] {
						t.Errorf("seed %d: stopped with %.0f %% of the room used: %s", seed, 100*used, end.Detail)
					}
				})
			}
		})
	}
}

func TestDensityStopsAtTheRequestedLimit(t *testing.T) {
	type claim struct {
		until    string
		node     func(*node)
		change   func(*density.Options)
		why      string
		resource string
		least    int
		most     int
		failed   int
		says     string // expected finding
	}
	each(t, map[string]claim{
		"requested count": {until: "37", why: record.EndAsked, least: 37, most: 37},
		"memory":          {until: "memory", why: record.EndResource, resource: density.Memory, least: 80, most: 128},
		"maximum number of sandboxes is reported":          {until: "memory", change: func(o *density.Options) { o.Most = 10 }, why: record.EndMost, least: 10, most: 10, says: "end-not-reached"},
		"requested failure is not a failure of the target": {until: "failure", node: func(n *node) { n.fails = after(30) }, why: record.EndFailure, least: 30, most: 30, says: "sandbox-failed"},
		"other failure is a failure of the target":         {until: "memory", node: func(n *node) { n.fails = after(30) }, why: record.EndFailure, least: 30, most: 30, failed: 1, says: "sandbox-failed"},
		"exited workloads are not counted":                 {until: "memory", node: func(n *node) { n.ends = func(i int) bool { return i > 30 } }, why: record.EndFailure, least: 30, most: 30, says: "sandbox-failed"},
		"exited workload takes precedence over the count":  {until: "37", node: func(n *node) { n.ends = func(i int) bool { return i == 37 } }, why: record.EndFailure, least: 36, most: 36, says: "sandbox-failed"},
		"guard before a failure is reported":               {until: "failure", why: record.EndResource, resource: density.Memory, least: 80, most: 128, says: "guard-stopped"},
		"process ids":                                      {until: "pids", node: pids(10), why: record.EndResource, resource: density.PIDs, least: 15, most: 30},
		"guard of process ids is reported":                 {until: "memory", node: pids(10), why: record.EndResource, resource: density.PIDs, least: 15, most: 30, says: "guard-stopped"},
		"starts twice as long":                             {until: "latency=2x", node: func(n *node) { n.takes = slower(16) }, why: record.EndAsked, least: 64, most: 64},
		"starts 1.5 times as long do not end it":           {until: "latency=2x", node: func(n *node) { n.takes = slower(1000) }, why: record.EndResource, resource: density.Memory, least: 80, most: 128, says: "guard-stopped"},
		"memory used by other processes": {until: "memory", node: func(n *node) {
			n.other = func(d time.Duration) int64 { return int64(min(max(d.Seconds()-12, 0)*40, 200) * mib) }
		}, change: func(o *density.Options) { o.Hold = 3 * time.Second }, why: record.EndOthers, least: 1, most: 16, says: "others-took-memory"},
		"floor touched during a start": {until: "memory", node: func(n *node) {
			n.costs = func(i int) int64 { return map[bool]int64{false: mib, true: 300 * mib}[i == 12] }
		}, why: record.EndTripped, least: 11, most: 12, says: "guard-tripped"},
		"requested step size": {until: "10", change: func(o *density.Options) { o.Step = 3 }, why: record.EndAsked, least: 10, most: 10},
		"concurrent starts":   {until: "10", change: func(o *density.Options) { o.AtOnce = 4 }, why: record.EndAsked, least: 10, most: 10},
	}, func(t *testing.T, c claim) {
		n := plain()
		if c.node != nil {
			c.node(n)
		}
		rec, j := perform(t.Context(), t, n, func(o *density.Options) {
			o.Until = c.until
			if c.change != nil {
				c.change(o)
			}
		})
		end := last(rec)
		failed, _, found := j.Result()
		if end.Why != c.why || end.Resource != c.resource && c.resource != "" || end.Sandboxes < c.least || end.Sandboxes > c.most || failed != c.failed {
			t.Errorf("%+v, %d failed", end, failed)
		}
		codes := ""
		for _, f := range found {
			codes += f.Code + " "
		}
		check.That(t, (c.says == "" || strings.Contains(codes, c.says)) && (c.says != "" || codes == ""), "findings %q", codes)
		check.That(t, c.why == record.EndTripped || end.Back > 0 && end.Removed >= 0, "memory was not reclaimed: %+v", end)
	})
}

// after makes starts fail once n are running.
func after(n int) func(int) *record.Failure {
	return func(i int) *record.Failure {
		if i > n {
			return &record.Failure{Kind: record.FailExit, Exit: 1, Detail: "exit status 1", Command: "made up"}
		}
		return nil
	}
}

// pids limits the tasks of a node. Each sandbox uses the given number of tasks.
func pids(each int64) func(*node) {
	return func(n *node) {
		n.tasks = func(there int) (left, total int64) { return 400 - each*int64(there), 1000 }
	}
}

// slower returns a start duration that grows linearly and has doubled at the given number
// of sandboxes.
func slower(double int) func(int) time.Duration {
	return func(there int) time.Duration {
		return time.Duration(float64(100*time.Millisecond) * (1 + float64(there)/float64(double)))
	}
}

func TestMemoryKeptByShimsIsNotReclaimed(t *testing.T) {
	type claim struct {
		shim      int64
		trips     int // number of the start that uses too much memory, 0 for none
		fails     int // number of the start that fails, 0 for none
		sandboxes int
		back      bool
		remaining int64
	}
	each(t, map[string]claim{
		"shims of 12 MiB each":            {12 * mib, 0, 0, 10, false, 120 * mib},
		"shims without memory":            {0, 0, 0, 10, true, 0},
		"step with a tripped guard":       {12 * mib, 7, 0, 7, false, 84 * mib},
		"first step with a tripped guard": {12 * mib, 2, 0, 2, false, 24 * mib},
		"step with a failed start":        {12 * mib, 0, 7, 6, false, 72 * mib},
	}, func(t *testing.T, c claim) {
		n := plain()
		n.shim = c.shim
		n.costs = func(i int) int64 {
			return map[bool]int64{false: 2 * mib, true: 300 * mib}[i == c.trips && len(n.shims) >= 3]
		} // after the trial
		if c.fails > 0 {
			n.fails = after(c.fails - 1)
		}
		rec, j := perform(t.Context(), t, n, func(o *density.Options) { o.Until = "10" })
		end := last(rec)
		said := slices.ContainsFunc(j.Findings, func(f record.Finding) bool { return f.Code == "memory-not-back" })
		if end.Sandboxes != c.sandboxes || (end.Why == record.EndTripped) != (c.trips > 0) || end.Remaining != c.remaining || (end.Back > 0) != c.back || said == c.back {
			t.Errorf("%+v, %+v", end, j.Findings)
		}
	})
}

func TestInterruptedDensityRemovesItsSandboxes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := plain()
		n.start = func(i int) {
			if i == 20 {
				cancel()
			}
		}
		rec, j := perform(ctx, t, n, nil)
		end := last(rec)
		check.That(t, end.Why == record.EndInterrupted && n.most <= 21 && rec.End.Status == "interrupted", "%+v, %+v", end, rec.End)
		failed, _, _ := j.Result()
		check.That(t, failed == 0, "%d failed", failed)
	})
}

// When the guard trips, memory is freed at once, even if a target does not respond.
// Sandboxes are removed a few at a time.
func TestAbortedStepIsRemovedInSmallGroups(t *testing.T) {
	type claim struct {
		trips   bool
		removed time.Duration // maximum
	}
	each(t, map[string]claim{
		"tripped guard: sandboxes with memory first": {true, 2 * time.Second},
		"failed start: incomplete sandboxes first":   {false, 40 * time.Second},
	}, func(t *testing.T, c claim) {
		n := plain()
		n.mute = true
		if c.trips {
			n.costs = func(i int) int64 { return map[bool]int64{false: 2 * mib, true: 300 * mib}[i == 10] }
		} else {
			n.fails = after(10)
		}
		rec, _ := perform(t.Context(), t, n, func(o *density.Options) { o.Until, o.Step, o.AtOnce = "100", 100, 100 })
		// whole has the total of complete sandboxes removed, and how many broken ones
		// were removed before the last complete one. broken is the same for broken
		// sandboxes.
		var whole, broken discarded
		for _, d := range n.gone[1:] { // after the trial
			check.That(t, d.whole+d.broken <= 8 && (d.whole == 0 || d.broken == 0), "removed together: %+v", d)
			if d.whole > 0 {
				whole = discarded{whole.whole + d.whole, broken.broken}
			} else {
				broken = discarded{whole.whole, broken.broken + d.broken}
			}
		}
		end := last(rec)
		check.That(t, (end.Why == record.EndTripped) == c.trips && whole.whole == end.Sandboxes && broken.broken > 8 &&
			(whole.broken == 0) == c.trips && (broken.whole == 0) != c.trips, "%+v, %+v, %+v", end, whole, broken)
		removed := time.Duration(end.Removed)
		check.That(t, removed <= c.removed, "removed in %v", removed)
	})
}

// Workloads that ignore a stop are waited for once, not once per group.
func TestHangingWorkloadsAreRemovedByForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := plain()
		n.stays = time.Minute
		rec, _ := perform(t.Context(), t, n, func(o *density.Options) { o.Until = "64" })
		said := 0
		for _, f := range rec.Findings {
			if strings.Contains(f.Message, "could not be ended") {
				said++
			}
		}
		end := last(rec)
		check.That(t, end.Sandboxes == 64 && time.Duration(end.Removed) <= 2*time.Minute && said != 0 && said <= 2, "%d findings, %+v", said, end)
	})
}

func TestDryRunCreatesOnlyATrial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := plain()
		rec, _ := perform(t.Context(), t, n, func(o *density.Options) { o.DryRun = true })
		end := last(rec)
		check.That(t, end.Trial && n.most == 3 && end.Fit >= 80 && end.Fit <= 128 && end.Resource == density.Memory && len(rec.Density) == 1,
			"%d sandboxes, %+v", n.most, end)
	})
}

// While other processes free memory, the node has more free memory with sandboxes than
// without.
func TestFreedMemoryOfOthersDoesNotReduceSandboxCost(t *testing.T) {
	type claim struct{ rate, has, least int64 }
	each(t, map[string]claim{
		"idle node: change of the node":                                          {0, 0, 2 * mib},
		"memory freed by others: own memory of the sandbox and the freed memory": {-8 * mib, 2 * mib, 2*mib + 4*mib},
		"memory freed by others, own memory unknown: freed memory":               {-8 * mib, 0, 4 * mib},
	}, func(t *testing.T, c claim) {
		n := plain()
		n.has = c.has
		n.other = func(d time.Duration) int64 { return int64(d.Seconds() * float64(c.rate)) }
		rec, _ := perform(t.Context(), t, n, func(o *density.Options) { o.DryRun = true })
		each := last(rec).Rooms[0].Each
		check.That(t, each >= c.least && each <= c.least+8*mib, "got at most %d KiB per sandbox, want at least %d KiB", each>>10, c.least>>10)
	})
}

// boxed is a node with a memory limit on tare's own cgroup.
type boxed struct {
	*node
	left int64
}

func (b boxed) Levels() ([]densityrun.Level, error) {
	all, err := b.node.Levels()
	return append(all, densityrun.Level{Name: "memory of tare's cgroup", Left: b.left, Total: 100 * mib, Floor: 64 * mib, Least: 4 << 10}), err
}

func TestNothingIsStartedWithoutRoom(t *testing.T) {
	t.Parallel()
	for free, says := range map[int64][2]string{
		10 * mib:  {"nothing was started: of memory 522 MiB are left", "use another node, or leave less with --keep-free"},
		256 * mib: {"of memory of tare's cgroup 64.0 MiB are left", "raise the limit of the cgroup that tare runs in, or run it in another"},
	} {
		n := plain()
		n.free = n.floor + free
		_, _, err := densityrun.Run(t.Context(), densityrun.Options{Plan: density.Defaults(), Targets: []subject.Target{n}, Node: boxed{n, 64 * mib}, Meter: n})
		check.That(t, err != nil && strings.Contains(err.Error(), says[0]) && strings.HasSuffix(err.Error(), says[1]) && n.most == 0,
			"%d sandboxes, %v", n.most, err)
	}
}

func TestBendIsLocated(t *testing.T) {
	type claim struct {
		costs    func(int) int64
		segments int
		at       int
	}
	each(t, map[string]claim{
		"constant cost has no bend": {func(int) int64 { return 2 * mib }, 1, 0},
		"doubled cost has a bend":   {func(i int) int64 { return map[bool]int64{false: mib, true: 2 * mib}[i > 32] }, 2, 32},
	}, func(t *testing.T, c claim) {
		n := plain()
		n.costs = c.costs
		r := rand.New(rand.NewPCG(1, 1))
		n.other = func(time.Duration) int64 { return r.Int64N(2 * mib) }
		_, j := perform(t.Context(), t, n, func(o *density.Options) { o.Rounds = 3 })
		slopes := slices.DeleteFunc(j.Figures(), func(f figure.Figure) bool { return f.Quantity != "memory-of-one-more" })
		check.That(t, len(slopes) == c.segments && (c.at == 0 || slopes[0].Labels.Get("to") == strconv.Itoa(c.at)), "%+v", slopes)
	})
}
