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

// Clean lists what a run left, and removes it unless dryRun. kind is "container" or
// "pod". Each run has its own image names, so no other run is affected.
func Clean(ctx context.Context, d Driver, target, kind, runID string, dryRun bool) (found []string, err error) {
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
		found = append(found, kind+" "+n)
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
	if h, is := d.(CallHider); is && h.CallsHiddenFor() > 0 {
		quiet = h.CallsHiddenFor()
		term.Say(ctx, fmt.Sprintf("waiting %v for calls of run %s that %s may still be working on", quiet, runID, target))
	}
	_, cleared := f.Clear(ctx, d, names, anyName, quiet) // on failure the rest is still removed
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
			late = append(late, kind+" "+id)
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

func anyName(string) bool { return true }

// CallHider is the driver of an engine that continues a call after its client disconnected
// and does not list the result until it is made.
type CallHider interface {
	// CallsHiddenFor returns how long such a call may take; 0 if the engine hides none.
	CallsHiddenFor() time.Duration
}

// orphanLag is how long an engine may keep the result of an abandoned call. CRI-O keeps it
// for two minutes without listing it.
const orphanLag = 150 * time.Second

// dropLate retries the removal of an image that is in use by a container which the engine
// does not list. That container is listed later, or disappears.
func dropLate(ctx context.Context, f *Flight, d Driver, ref string, err error) error {
	for began := time.Now(); err != nil && strings.Contains(err.Error(), "in use") && time.Since(began) < orphanLag && machine.Sleep(ctx, pollArrival) == nil; err = d.Drop(ctx, ref) {
		if names, listed := d.List(ctx); listed == nil {
			_, _ = f.Clear(ctx, d, names, anyName, 0) // if it fails, the image stays in use
		}
	}
	return err
}
