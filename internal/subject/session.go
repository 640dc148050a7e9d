package subject

import (
	"context"

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
	if h, ok := s.(HelperProcesses); ok {
		return h.Processes(ctx)
	}
	return nil
}
