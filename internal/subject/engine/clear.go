package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
)

const (
	// clearing is how long what is left may take to go, beside the first
	// removal.
	clearing = 20 * time.Second
	// listing bounds one question for what is left.
	listing = 30 * time.Second
	// step is how often it is looked whether something went, and sight
	// whether something came.
	step  = 100 * time.Millisecond
	sight = time.Second
)

var (
	errStill = errors.New("they could not be removed")
	errLate  = errors.New("interrupted before it was sure that nothing comes late")
)

// Clear removes containers by force until the engine has listed none of those
// that are mine for as long as quiet, and no process of theirs is under way: the one
// place in which what was given up settles, at the end of a run and in tare clean. It
// goes by the list, not by what the removals reported: what an engine was killed over
// takes more than one, and complains. It returns what is left, with an error; nil with
// an error when that is not known.
func (f *Flight) Clear(ctx context.Context, e Driver, names []string, mine func(name string) bool, quiet time.Duration) (left []string, err error) {
	tried := map[string]bool{}
	var deadline, since time.Time // for what is left, and of the quiet
	for {
		var removed error
		if len(names) > 0 {
			// Patience begins when all was tried: what came late is too.
			if slices.ContainsFunc(names, func(name string) bool { return !tried[name] }) {
				deadline = time.Time{}
			}
			f.learn(ctx, e, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return tried[name] }))
			removed = e.Remove(ctx, names)
			for _, name := range names {
				tried[name] = true
			}
			if deadline.IsZero() {
				deadline = time.Now().Add(clearing)
			}
		}
		if left, err = listed(ctx, e, mine); err != nil {
			return nil, errors.Join(removed, err)
		}
		now := time.Now()
		switch {
		case len(left) == 0:
			busy, err := f.underWay(ctx)
			if err != nil {
				return nil, err
			}
			if busy { // what comes of it is listed then
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
			if machine.Sleep(ctx, min(still, sight)) != nil {
				return nil, errors.Join(errLate, ctx.Err())
			}
		case ctx.Err() != nil || now.After(deadline) && !slices.ContainsFunc(left, func(name string) bool { return !tried[name] }):
			// An engine may list until its end what it still makes.
			if busy, err := f.underWay(ctx); !busy || err != nil {
				return left, errors.Join(errStill, removed, err, ctx.Err())
			}
		default:
			since = time.Time{}
			_ = machine.Sleep(ctx, step)
		}
		names = left
	}
}

func listed(ctx context.Context, e Driver, mine func(name string) bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listing)
	defer cancel()
	names, err := e.List(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !mine(name) }), err
}
