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
	"github.com/tare-bench/tare/internal/term"
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
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return found, err
	}
	f := NewFlight(runID)
	f.learn(ctx, d, names)
	found = append(found, f.Keeps(hs)...)
	if dryRun {
		return found, nil
	}
	doing = "remove what run " + runID + " left"
	var quiet time.Duration
	if d, is := d.(Deaf); is && d.Deaf() > 0 {
		quiet = d.Deaf()
		term.Say(ctx, fmt.Sprintf("looking for %v whether %s still makes what run %s asked for", quiet, target, runID))
	}
	_, cleared := f.Clear(ctx, d, names, all, quiet) // one that stays keeps nothing else
	errs := []error{cleared}
	for _, ref := range refs {
		err := d.Drop(ctx, ref)
		if cleared == nil {
			err = dropLate(ctx, f, d, ref, err)
		}
		errs = append(errs, err)
	}
	late := f.Keeps(hs)
	for _, id := range f.known() {
		if OfRun(id, runID) {
			late = append(late, what+" "+id)
		}
	}
	for _, line := range late {
		if !slices.Contains(found, line) {
			found = append(found, line)
		}
	}
	_, err = f.Sweep(hs)
	return found, errors.Join(append(errs, err)...)
}

func all(string) bool { return true }

// Deaf is a driver whose engine goes on with a call when its client has gone, and shows nothing
// of it until it has made something.
type Deaf interface {
	Deaf() time.Duration // how long that takes
}

// lateness is how long an engine may keep what it made for a call that was given up,
// before it removes that: CRI-O shows it to nobody for two minutes.
const lateness = 150 * time.Second

// dropLate goes on removing an image that nobody uses whom the engine tells of. Where
// it is in use all the same, what uses it comes to light later, or goes.
func dropLate(ctx context.Context, f *Flight, d Cleaned, ref string, err error) error {
	for began := time.Now(); err != nil && strings.Contains(err.Error(), "in use") && time.Since(began) < lateness && machine.Sleep(ctx, sight) == nil; err = d.Drop(ctx, ref) {
		if names, listed := d.List(ctx); listed == nil {
			_, _ = f.Clear(ctx, d, names, all, 0) // or the image stays in use
		}
	}
	return err
}
