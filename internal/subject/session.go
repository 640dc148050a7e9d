package subject

import (
	"context"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Opener returns a function that opens the i-th target. env is complete except for the run's id
// and the target's folders.
func Opener(targets []Target, env Env) func(ctx context.Context, i int, runID, dir, stateDir string) (Session, error) {
	return func(ctx context.Context, i int, runID, dir, stateDir string) (Session, error) {
		e := env
		e.RunID, e.Dir, e.StateDir = runID, dir, stateDir
		return targets[i].Open(ctx, e)
	}
}

// Operate performs an operation on lanes, without observers.
func Operate(ctx context.Context, s Session, op Op, lanes []int) ([]record.Sample, error) {
	batch, err := s.Prepare(ctx, op, lanes)
	if err != nil {
		return nil, err
	}
	_, samples, err := batch.Start(ctx)
	return samples, err
}

// retirement are the operations that end a life cycle, in order.
var retirement = []Op{Stop, Remove, StopPod, RemovePod}

// Retired is an operation that failed on some lanes.
type Retired struct {
	Op         Op
	Failed, Of int
	First      *record.Failure
}

// Retire performs the operations that end a life cycle, as far as the target has them. Lanes
// that fail in one skip the next ones; they still have to be discarded.
func Retire(ctx context.Context, s Session, has map[string]record.Operation, lanes []int) (failed []Retired, err error) {
	lanes = slices.Clone(lanes)
	for _, op := range retirement {
		if def, ok := has[string(op)]; !ok || def.Absent != "" || len(lanes) == 0 {
			continue
		}
		samples, err := Operate(ctx, s, op, lanes)
		if err != nil {
			return failed, err
		}
		r := Retired{Op: op, Of: len(samples)}
		for _, sample := range samples {
			if sample.Failure != nil {
				r.Failed, r.First = r.Failed+1, sample.Failure
				lanes = slices.DeleteFunc(lanes, func(n int) bool { return n == sample.Lane })
			}
		}
		if r.Failed > 0 {
			failed = append(failed, r)
		}
	}
	return failed, nil
}

// Disarm releases a prepared batch without performing it: its lanes would wait for ever.
func Disarm(ctx context.Context, b Batch) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, _, _ = b.Start(ctx)
}

// StartBetween starts a batch, and calls begin and end as close to its edges as possible.
func StartBetween(ctx context.Context, b Batch, begin, end func()) (released int64, samples []record.Sample, err error) {
	if h, ok := b.(Hooks); ok {
		h.Hook(begin, end)
		return b.Start(ctx)
	}
	begin()
	defer end()
	return b.Start(ctx)
}

// Around is a batch that wraps another one. Hooks and own CPU time are those of the wrapped batch.
type Around struct {
	Batch
	begin, end func()
}

// Hook implements Hooks.
func (a *Around) Hook(begin, end func()) { a.begin, a.end = begin, end }

// OwnCPU implements Metered.
func (a *Around) OwnCPU() int64 {
	if m, ok := a.Batch.(Metered); ok {
		return m.OwnCPU()
	}
	return 0
}

// StartWith starts the wrapped batch, and calls released just before the release of its lanes.
func (a *Around) StartWith(ctx context.Context, released func()) (int64, []record.Sample, error) {
	return StartBetween(ctx, a.Batch, func() {
		if a.begin != nil {
			a.begin()
		}
		released()
	}, func() {
		if a.end != nil {
			a.end()
		}
	})
}

// DaemonsOf returns the pids of a session's processes that serve all sandboxes.
func DaemonsOf(ctx context.Context, s Session) (pids []int) {
	for _, p := range ProcessesOf(ctx, s) {
		if p.Role == record.RoleDaemon {
			pids = append(pids, p.Pid)
		}
	}
	return pids
}

// ProcessesOf returns a session's helper processes, if it reports any.
func ProcessesOf(ctx context.Context, s Session) []Process {
	if h, ok := As[HelperProcesses](s); ok {
		return h.Processes(ctx)
	}
	return nil
}

// SandboxesOf returns the sandboxes on a session's lanes, none if the session does not report them.
func SandboxesOf(ctx context.Context, s Session) ([]Sandbox, error) {
	b, ok := As[Sandboxed](s)
	if !ok {
		return nil, nil
	}
	boxes, err := b.Sandboxes(ctx)
	if err != nil {
		err = fmt.Errorf("the target does not report its sandboxes: %w", err)
	}
	return boxes, err
}
