package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// Cleaned is an engine on which a run that was killed may have left things.
type Cleaned interface {
	Driver
	// Images returns the run's names of images, whatever files they carry: a run that
	// was interrupted does not say which it had.
	Images(ctx context.Context) ([]string, error)
}

// Clean finds what a run left, and removes it unless dryRun; what is "container",
// or "pod". Every run has names of its own for its images, so another run loses nothing.
func Clean(ctx context.Context, d Cleaned, target, what, runID string, dryRun bool) (found []string, err error) {
	doing := "look for what run " + runID + " left"
	defer func() {
		if err != nil {
			err = fmt.Errorf("target %s: %s: %w", target, doing, err)
		}
	}()
	names, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, n := range names {
		found = append(found, what+" "+n)
	}
	refs, err := d.Images(ctx)
	if err != nil {
		return found, err
	}
	for _, ref := range refs {
		found = append(found, "image "+ref)
	}
	hs, ids, err := overheads(ctx, d, names, runID)
	for _, id := range ids {
		found = append(found, "cgroup "+kata.OverheadPath(id))
	}
	if dryRun || err != nil {
		return found, err
	}
	doing = "remove what run " + runID + " left"
	cleared := clearAway(ctx, d, names) // one that stays keeps nothing else
	errs := []error{cleared}
	for _, ref := range refs {
		err := d.Drop(ctx, ref)
		if cleared == nil {
			err = dropLate(ctx, d, ref, err)
		}
		errs = append(errs, err)
	}
	_, err = kata.RemoveOverheads(hs, ids)
	return found, errors.Join(append(errs, err)...)
}

// lateness is how long an engine may keep what it made for a call that was given up,
// before it removes that: CRI-O shows it to nobody for two minutes.
const lateness = 150 * time.Second

// dropLate goes on removing an image that nobody uses whom the engine tells of. Where
// it is in use all the same, what uses it comes to light later, or goes.
func dropLate(ctx context.Context, d Cleaned, ref string, err error) error {
	for began := time.Now(); err != nil && strings.Contains(err.Error(), "in use") && time.Since(began) < lateness && machine.Sleep(ctx, sight) == nil; err = d.Drop(ctx, ref) {
		if names, listed := d.List(ctx); listed == nil {
			_ = clearAway(ctx, d, names) // or the image stays in use
		}
	}
	return err
}

// overheads are the sandboxes of a run for which Kata has a cgroup beside the
// pods', whether they are still there or it left that.
func overheads(ctx context.Context, d Cleaned, names []string, runID string) (hs []cgroup.Hierarchy, ids []string, err error) {
	if hs, err = cgroup.Hierarchies(); err != nil {
		return nil, nil, err
	}
	own := map[string]bool{}
	if len(names) > 0 {
		states, _ := d.Look(ctx, names) // what is broken may not be told
		for _, s := range states {
			own[s.ID], own[s.Pod.ID] = true, true
		}
	}
	return hs, kata.Overheads(hs, func(id string) bool { return own[id] || OfRun(id, runID) }), nil
}

// clearAway removes containers, and waits until what stood beside them has gone: a
// shim replies before it ends.
func clearAway(ctx context.Context, d Cleaned, names []string) error {
	if len(names) == 0 {
		return nil
	}
	ids := slices.Clone(names)
	states, _ := d.Look(ctx, names) // what is broken may not be told
	for _, s := range states {
		if !s.Afar {
			ids = append(ids, s.ID, s.Pod.ID)
		}
	}
	beside := kata.Beside(ids)
	if _, err := Clear(ctx, d, names, func(string) bool { return true }, 0); err != nil {
		return err
	}
	deadline := time.Now().Add(clearing)
	var errs []error
	for _, p := range beside {
		// containerd 1.6 forgets a shim whose task was given up while it was made: nobody
		// will tell it to end. When it has gone, containerd removes what it had.
		if p.Role == record.RoleShim && !Ended(p.Pid, time.Until(deadline)-clearing/2) {
			_ = cgroup.KillIf(p.Pid, func() bool { return slices.Contains(kata.Beside(ids), p) }) // or it has gone
		}
		if !Ended(p.Pid, time.Until(deadline)) {
			errs = append(errs, fmt.Errorf("process %d, the %s of what was removed, has not ended %v later", p.Pid, p.Role, clearing))
		}
	}
	return errors.Join(errs...)
}
