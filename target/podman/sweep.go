package podman

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/tare-bench/tare/target/engine"
	"github.com/tare-bench/tare/target/engine/cli"
)

// swept is what has to be known and done to clean up after a run.
type swept interface {
	cli.Engine
	// users names the containers that use the workload's image; there is
	// none where has is false.
	users(ctx context.Context) (names []string, has bool, err error)
}

// sweep finds what a run left, and removes it unless dryRun. The workload's
// image goes if no container of another run uses it.
func sweep(ctx context.Context, e swept, name, ref, runID string, dryRun bool) ([]string, error) {
	names, err := e.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("target %s: look for what run %s left: %w", name, runID, err)
	}
	var found []string
	for _, n := range names {
		found = append(found, "container "+n)
	}
	if len(names) > 0 && !dryRun {
		if _, err := cli.Clear(ctx, e, names, func(string) bool { return true }, 0); err != nil {
			return found, fmt.Errorf("target %s: remove what run %s left: %w", name, runID, err)
		}
	}
	users, has, err := e.users(ctx)
	if err != nil {
		return found, fmt.Errorf("target %s: look who uses the workload's image: %w", name, err)
	}
	if !has || slices.ContainsFunc(users, func(n string) bool { return !engine.OfRun(n, runID) }) {
		return found, nil
	}
	found = append(found, "image "+ref)
	if dryRun {
		return found, nil
	}
	if err := e.Drop(ctx); err != nil {
		return found, fmt.Errorf("target %s: %w", name, err)
	}
	return found, nil
}

func (c *commands) users(ctx context.Context) ([]string, bool, error) {
	if id, err := imageID(ctx, c.podman, c.image.Ref); unknown(err) || err == nil && id != c.image.ID {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	names, err := list(ctx, c.podman, "--filter", "ancestor="+c.image.Ref)
	return names, true, err
}

func (r *requests) users(ctx context.Context) ([]string, bool, error) {
	if id, err := r.imageID(ctx); notFound(err) || err == nil && id != r.image.ID {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	names, err := r.list(ctx, url.Values{"all": {"true"}, "filters": {`{"ancestor":["` + r.image.Ref + `"]}`}})
	return names, true, err
}
