package cli

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// clearing is how long what is left may take to go, beside the removals
	// themselves.
	clearing = 20 * time.Second
	// fruit is how long an engine may need to finish what its client gave up.
	fruit = time.Second
)

var errStill = errors.New("they could not be removed")

// Clear removes containers by force until the engine lists none of those that
// are mine. It goes by the list, not by what the removals reported: what an
// engine was killed over takes more than one, and complains. twice makes it look
// once more after a while. It returns what is left, with an error.
func Clear(ctx context.Context, e Engine, names []string, mine func(name string) bool, twice bool) (left []string, err error) {
	deadline := time.Now().Add(clearing)
	for {
		var removed error
		if len(names) > 0 {
			removed = e.Remove(ctx, names)
		}
		if left, err = e.List(ctx); err != nil {
			return nil, errors.Join(removed, err)
		}
		left = slices.DeleteFunc(left, func(name string) bool { return !mine(name) })
		switch {
		case len(left) == 0 && !twice:
			return nil, nil
		case len(left) == 0:
			twice = false
			time.Sleep(fruit)
		case time.Now().After(deadline) || ctx.Err() != nil:
			return left, errors.Join(errStill, removed, ctx.Err())
		default:
			time.Sleep(fruit / 10)
		}
		names = left
	}
}
