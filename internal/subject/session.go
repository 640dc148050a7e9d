package subject

import (
	"context"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Opener opens one of the targets, by its place among them, in an environment that is
// complete but for the run's id and the folders of the target.
func Opener(targets []Target, env Env) func(ctx context.Context, i int, runID, dir, stateDir string) (Session, error) {
	return func(ctx context.Context, i int, runID, dir, stateDir string) (Session, error) {
		e := env
		e.RunID, e.Dir, e.StateDir = runID, dir, stateDir
		return targets[i].Open(ctx, e)
	}
}

// Operate does one operation on the given lanes, and looks at nothing meanwhile.
func Operate(ctx context.Context, s Session, op Op, lanes []int) ([]record.Sample, error) {
	batch, err := s.Prepare(ctx, op, lanes)
	if err != nil {
		return nil, err
	}
	_, samples, err := batch.Start(ctx)
	return samples, err
}

// retirement are the operations that end a life, in their order.
var retirement = []Op{Stop, Remove, StopPod, RemovePod}

// Retired is an operation that some lanes could not do.
type Retired struct {
	Op         Op
	Failed, Of int
	First      *record.Failure
}

// Retire goes through the operations that end a life, those of them that the target has.
// Lanes that fail in one take no part in the next, and are still to be discarded.
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

// Disarm lets go what was armed and is not to be done: lanes would wait at the gate for
// ever.
func Disarm(ctx context.Context, b Batch) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, _, _ = b.Start(ctx)
}

// StartBetween starts a batch between two looks at the machine, which are as close to
// its edges as the batch can have them.
func StartBetween(ctx context.Context, b Batch, begin, end func()) (released int64, samples []record.Sample, err error) {
	if h, ok := b.(Hooks); ok {
		h.Hook(begin, end)
		return b.Start(ctx)
	}
	begin()
	defer end()
	return b.Start(ctx)
}

// Around is a batch that adds something to another: who looks at the machine at its edges,
// or asks what measuring cost, asks the one within.
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

// StartWith starts the batch within, and calls released when its lanes are about to be.
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

// DaemonsOf are the pids of those of a session's processes that serve all
// sandboxes.
func DaemonsOf(ctx context.Context, s Session) (pids []int) {
	for _, p := range ProcessesOf(ctx, s) {
		if p.Role == record.RoleDaemon {
			pids = append(pids, p.Pid)
		}
	}
	return pids
}

// ProcessesOf are a session's helper processes, none where it has no such.
func ProcessesOf(ctx context.Context, s Session) []Process {
	if h, ok := As[HelperProcesses](s); ok {
		return h.Processes(ctx)
	}
	return nil
}

// SandboxesOf returns the sandboxes on a session's lanes, none of a session that never
// says which there are.
func SandboxesOf(ctx context.Context, s Session) ([]Sandbox, error) {
	b, ok := As[Sandboxed](s)
	if !ok {
		return nil, nil
	}
	boxes, err := b.Sandboxes(ctx)
	if err != nil {
		err = fmt.Errorf("the target does not say what its sandboxes are: %w", err)
	}
	return boxes, err
}
