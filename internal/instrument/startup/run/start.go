package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// start performs one start and removes its container. It returns nil if the run was
// interrupted.
func (r *schedule) start(ctx context.Context, t turn) (*record.Start, error) {
	info := &t.Target.Info
	s := &record.Start{Round: t.Number, Target: info.Name, Method: record.MethodNone, Clock: record.ClockMonotonic, Command: info.Operations[string(subject.Run)].Command}
	if err := r.watching(t.Part == watched); err != nil {
		return nil, fmt.Errorf("watch the processes of starts: %w", err)
	}
	armed, err := t.Target.Session.Prepare(ctx, subject.Run, []int{0})
	if err == nil {
		if s.Dropped, err = r.Cold(ctx); err == nil { // the cache drop runs before the call, so its work is not part of the start
			err = r.release(ctx, t, armed, s)
		} else if subject.Disarm(ctx, armed); ctx.Err() == nil {
			return nil, errors.Join(err, r.discard(ctx, t))
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		s.Began = max(s.Began, machine.Now())
		s.Failure = &record.Failure{Kind: record.FailError, Detail: err.Error()}
	}
	return s, r.discard(ctx, t)
}

// release performs the start between two readings of the watch.
func (r *schedule) release(ctx context.Context, t turn, armed subject.Batch, s *record.Start) error {
	roots := r.roots(ctx, t.Target)
	var callers, serving []int
	for _, p := range roots {
		serving = append(serving, p.Pid)
	}
	lost, cpu := int64(0), time.Duration(0) // totals of the watch so far
	if r.watch != nil {
		callers = r.options.Callers()
		if err := r.observe(slices.Concat(callers, serving)); err != nil {
			return err
		}
		lost, cpu = r.watch.Lost(), r.watch.CPU()
	}
	r.throttling.Begin(serving)
	time.Sleep(quiet)
	var edges [2]record.BusyAt
	used := &follower{watch: r.watch}
	look := func(i int, then func()) func() {
		return func() {
			if r.watch != nil {
				edges[i] = record.BusyAt{At: machine.Now(), CPU: r.watch.Busy()}
				then()
			}
		}
	}
	wall := machine.Ahead()
	released, samples, err := subject.StartBetween(ctx, armed, look(0, used.begin), look(1, used.end))
	used.end()
	if err != nil {
		return fmt.Errorf("start %s: %w", t.Target.Info.Name, err)
	}
	if len(samples) != 1 {
		return fmt.Errorf("start %s: the target returned %d samples for one start", t.Target.Info.Name, len(samples))
	}
	x := &samples[0]
	s.Began, s.First, s.Ended, s.Failure = cmp.Or(x.Start, released), x.First, x.Returned, x.Failure
	if x.Polls > 0 {
		s.Ready, s.Unready, s.Polls, s.Request = x.Ready, x.Unready, x.Polls, x.Request
	}
	if s.Ended != 0 {
		s.Ended = max(s.Ended, s.Began)
	}
	now := machine.Now()
	if s.First == 0 && x.Guest != 0 {
		s.FirstBy = cmp.Or(x.Seen, now)
	}
	if r.watch == nil {
		s.Throttled = r.throttled(ctx, t, s, serving) // includes the beginning of the next start
		return nil
	}
	if d := machine.Ahead() - wall; max(d, -d) < int64(time.Millisecond) {
		s.Wall = s.Began + wall
	} else {
		s.Missing = append(s.Missing, record.Missing{What: "clock", Count: 1, Detail: "the wall clock was set during the start: logs cannot be matched to it"})
	}
	events, err := r.watch.Take(now)
	if err != nil {
		return fmt.Errorf("watch the start of %s: %w", t.Target.Info.Name, err)
	}
	s.Method, s.Lost, s.Tracing = record.MethodBPF, r.watch.Lost()-lost, int64(r.watch.CPU()-cpu)
	asked := proctree.Asked{Began: s.Began, Ended: max(s.Ended, s.First), Roots: roots, Containers: r.containers(ctx, t.Target),
		Used: used.all, Guests: used.guests}
	if s.Ended == 0 { // failed: use the time until now
		asked.Ended = now
	}
	asked.Starts = t.Target.Info.Kind != "command" && len(roots) > 0
	if c, ok := subject.As[interface{ Pid() int }](t.Target.Session); ok {
		asked.Client = c.Pid()
	} else {
		asked.Client = clientOf(events, callers, s.Began, asked.Ended)
	}
	own, err := r.settle(s, events, asked)
	if err != nil {
		return fmt.Errorf("watch the start of %s: %w", t.Target.Info.Name, err)
	}
	s.Throttled = r.throttled(ctx, t, s, serving)
	s.Busy = between(edges, s.Busy)
	if t.Target.Info.Kind == "command" && len(roots) > 0 {
		s.Busy = own // exclude the work of other daemons
	}
	return nil
}

// The interval and the maximum number of retries to find a workload that executes
// after the call returned.
const (
	late    = 10 * time.Millisecond
	maxLate = 10
)

// settle gathers the observed processes. A call may return just before its workload
// executes, so settle waits for it. It returns the CPU time of the start's own
// processes.
func (r *schedule) settle(s *record.Start, events []tracer.Event, asked proctree.Asked) ([]record.BusyAt, error) {
	own := r.gather(s, events, asked)
	for i := 0; i < maxLate && s.First == 0 && s.Failure == nil && aboutToRun(s); i++ {
		more, err := r.watch.Take(machine.Now() + int64(late))
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
		own = r.gather(s, events, asked)
	}
	return own, nil
}

// aboutToRun reports whether a container has an init but no workload yet.
func aboutToRun(s *record.Start) bool {
	return slices.ContainsFunc(s.Processes, func(p record.StartProcess) bool { return p.Kind == record.KindInit && p.Ended == 0 })
}

// quiet is the idle time before each start, watched or not. Finding processes,
// starting a watch and removing a container leave deferred work in the kernel, such as
// RCU grace periods. Runtimes wait for it when they change mounts. Without the pause,
// the duration of starts varied by up to a fifth with the preceding work.
const quiet = 100 * time.Millisecond

// between adds the CPU readings before the call and after its return to the readings
// of the events.
func between(edges [2]record.BusyAt, all []record.BusyAt) []record.BusyAt {
	if edges[0].CPU < 0 || edges[1].CPU < edges[0].CPU {
		return all // unknown
	}
	base := edges[0].CPU
	out := []record.BusyAt{{At: edges[0].At}}
	for _, b := range all {
		if b.At > edges[0].At && b.At < edges[1].At && b.CPU-base >= out[len(out)-1].CPU && b.CPU <= edges[1].CPU {
			out = append(out, record.BusyAt{At: b.At, CPU: b.CPU - base})
		}
	}
	return append(out, record.BusyAt{At: edges[1].At, CPU: edges[1].CPU - base})
}

// clientOf returns the pid of the start's command if the target does not report it. It
// is the first process forked by tare's own processes, or 0 for API calls.
func clientOf(events []tracer.Event, callers []int, began, ended int64) int {
	for i := range events {
		e := &events[i]
		if e.Kind == tracer.Fork && e.Time >= began && e.Time <= ended && slices.Contains(callers, e.Parent) {
			return e.Pid
		}
	}
	return 0
}

// gather sets the observed data of a start. A first instruction reported by the
// workload takes precedence over an exec. gather returns the CPU time of the start's
// own processes.
func (r *schedule) gather(s *record.Start, events []tracer.Event, asked proctree.Asked) []record.BusyAt {
	k := proctree.Gather(events, asked)
	s.Processes, s.Busy, s.Events = k.Processes, k.Busy, k.Events
	s.Missing = append(slices.DeleteFunc(s.Missing, func(m record.Missing) bool { return m.What != "clock" }), k.Missing...)
	s.Sandbox, s.Containers = k.Sandbox, k.Containers
	if s.First == 0 && k.First >= s.Began {
		s.First = k.First
	}
	if s.Lost > 0 {
		s.Missing = append(s.Missing, record.Missing{What: "lost", Count: s.Lost, Detail: "events dropped by the kernel: processes may be missing"})
	}
	return k.Own
}

// observe begins to track existing processes and discards all earlier events.
func (r *schedule) observe(pids []int) error {
	if err := r.watch.Track(pids...); err != nil {
		return fmt.Errorf("follow the processes of the engine: %w", err)
	}
	if _, err := r.watch.Take(machine.Now()); err != nil {
		return fmt.Errorf("watch the machine: %w", err)
	}
	return nil
}

// throttled returns the cgroups that were throttled by their CPU limit. It considers
// the start's processes, the processes that serve it, and its sandboxes.
func (r *schedule) throttled(ctx context.Context, t turn, s *record.Start, pids []int) []record.Throttled {
	for i := range s.Processes {
		if s.Processes[i].Ended == 0 {
			pids = append(pids, s.Processes[i].Pid)
		}
	}
	boxes, _ := subject.SandboxesOf(ctx, t.Target.Session)
	boxes = append(boxes, subject.Sandbox{IDs: s.Containers})
	for i := range boxes {
		pids = append(pids, boxes[i].Workload, boxes[i].Pause)
	}
	return r.throttling.End(pids, func(group string) bool { return attribution.Own(group, boxes) })
}

// roots returns the existing processes that serve the start.
func (r *schedule) roots(ctx context.Context, t *opened) []proctree.Root {
	var all []proctree.Root
	for _, p := range subject.ProcessesOf(ctx, t.Session) {
		all = append(all, proctree.Root{Pid: p.Pid, Kind: proctree.Kind(p.Role), Name: procs.Name(p.Pid)})
	}
	if t.Info.Kind == "command" && r.options.Daemons != nil {
		return r.options.Daemons() // a command may use any of them
	}
	return all
}

// containers returns the container ids that the target knows.
func (r *schedule) containers(ctx context.Context, t *opened) (ids []string) {
	if s, ok := subject.As[interface{ Containers() []string }](t.Session); ok {
		return s.Containers()
	}
	boxes, _ := subject.SandboxesOf(ctx, t.Session) // other ids are found in the arguments of runtime calls
	for _, b := range boxes {
		for _, id := range b.IDs {
			if id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// discard removes the container of a start. If this fails, the run drops the target.
func (r *schedule) discard(ctx context.Context, t turn) error {
	clean, cancel := run.CleaningUp(ctx, r.options.Plan.Timeout)
	defer cancel()
	if err := t.Target.Session.Discard(clean, []int{0}); err != nil {
		when := "in the warm-up"
		if t.Phase == record.PhaseMeasure {
			when = fmt.Sprintf("in round %d", t.Number+1)
		}
		return r.GiveUp(t.Target, record.Finding{Message: fmt.Sprintf("given up %s: cannot remove what it started: %v", when, err)})
	}
	return nil
}
