package subject

import "context"

// Opener opens one of the targets, by its place among them, in an environment that is
// complete but for the run's id and the folders of the target.
func Opener(targets []Target, env Env) func(ctx context.Context, i int, runID, dir, stateDir string) (Session, error) {
	return func(ctx context.Context, i int, runID, dir, stateDir string) (Session, error) {
		e := env
		e.RunID, e.Dir, e.StateDir = runID, dir, stateDir
		return targets[i].Open(ctx, e)
	}
}
