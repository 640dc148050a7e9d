package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
)

const (
	// clearTimeout bounds the removal of containers, without the first attempt.
	clearTimeout = 20 * time.Second
	// listTimeout bounds one List call.
	listTimeout = 30 * time.Second
	// pollRemoval and pollArrival are the intervals between checks for containers that
	// disappear and for containers that appear late.
	pollRemoval = 100 * time.Millisecond
	pollArrival = time.Second
)

var (
	errStill = errors.New("they could not be removed")
	errLate  = errors.New("interrupted while waiting for containers that appear late")
)

// Clear removes containers by force until the engine has listed none that match mine for
// the duration quiet, and none of their processes is running. The end of a run and tare
// clean both use it. It trusts the list and not the results of the removals: a container
// whose start was killed may need several removals, and each may fail. It returns the
// remaining names with an error; nil with an error means that they are unknown.
func (f *Flight) Clear(ctx context.Context, e Driver, names []string, mine func(name string) bool, quiet time.Duration) (left []string, err error) {
	tried := map[string]bool{}
	var deadline, since time.Time // deadline of the removals; start of the quiet period
	for {
		var removed error
		if len(names) > 0 {
			// The deadline starts after all were tried once, late arrivals included.
			if slices.ContainsFunc(names, func(name string) bool { return !tried[name] }) {
				deadline = time.Time{}
			}
			f.learn(ctx, e, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return tried[name] }))
			removed = e.Remove(ctx, names)
			for _, name := range names {
				tried[name] = true
			}
			if deadline.IsZero() {
				deadline = time.Now().Add(clearTimeout)
			}
		}
		if left, err = listMatching(ctx, e, mine); err != nil {
			return nil, errors.Join(removed, err)
		}
		now := time.Now()
		switch {
		case len(left) == 0:
			busy, err := f.underWay(ctx)
			if err != nil {
				return nil, err
			}
			if busy { // containers of these processes are listed later
				since = time.Time{}
				break
			}
			if since.IsZero() {
				since = now
			}
			still := quiet - now.Sub(since)
			if still <= 0 {
				return nil, nil
			}
			if machine.Sleep(ctx, min(still, pollArrival)) != nil {
				return nil, errors.Join(errLate, ctx.Err())
			}
		case ctx.Err() != nil || now.After(deadline) && !slices.ContainsFunc(left, func(name string) bool { return !tried[name] }):
			// An engine may list an unfinished container until its process ends.
			if busy, err := f.underWay(ctx); !busy || err != nil {
				return left, errors.Join(errStill, removed, err, ctx.Err())
			}
		default:
			since = time.Time{}
			_ = machine.Sleep(ctx, pollRemoval)
		}
		names = left
	}
}

func listMatching(ctx context.Context, e Driver, mine func(name string) bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	names, err := e.List(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !mine(name) }), err
}
