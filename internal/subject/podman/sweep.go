package podman

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// swept is what has to be known and done to clean up after a run.
type swept interface {
	cli.Engine
	// images names the workload's images that there are, whatever files they
	// carry: a run that was interrupted does not say which it had.
	images(ctx context.Context) ([]string, error)
	// users names the containers that use an image.
	users(ctx context.Context, ref string) ([]string, error)
	drop(ctx context.Context, ref string) error
}

// sweep finds what a run left, and removes it unless dryRun. An image
// of the workload goes if no container of another run uses it.
func sweep(ctx context.Context, e swept, name, runID string, dryRun bool) ([]string, error) {
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
	refs, err := e.images(ctx)
	if err != nil {
		return found, fmt.Errorf("target %s: look for the workload's images: %w", name, err)
	}
	for _, ref := range refs {
		users, err := e.users(ctx, ref)
		if err != nil {
			return found, fmt.Errorf("target %s: look who uses the image %s: %w", name, ref, err)
		}
		if slices.ContainsFunc(users, func(n string) bool { return !engine.OfRun(n, runID) }) {
			continue
		}
		found = append(found, "image "+ref)
		if dryRun {
			continue
		}
		if err := e.drop(ctx, ref); err != nil {
			return found, fmt.Errorf("target %s: %w", name, err)
		}
	}
	return found, nil
}

// parseImages reads what `podman images --format json` prints and
// /libpod/images/json answers. An image is the workload's by its label, its name
// and its id, which begins with the name's tag.
func parseImages(out []byte) ([]string, error) {
	var all []struct {
		ID     string            `json:"Id"`
		Names  []string          `json:"Names"`
		Labels map[string]string `json:"Labels"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("podman lists its images by no JSON list: %w", err)
	}
	var refs []string
	for _, i := range all {
		for _, ref := range engine.OwnImages(i.Names, i.Labels) {
			if strings.HasPrefix(strings.TrimPrefix(i.ID, "sha256:"), ref[strings.LastIndexByte(ref, ':')+1:]) {
				refs = append(refs, ref)
			}
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs), nil
}

func (c *commands) images(ctx context.Context) ([]string, error) {
	out, err := c.podman.Run(ctx, "images", "--filter", "label="+engine.ImageFilter, "--no-trunc", "--format", "json")
	if err != nil {
		return nil, err
	}
	return parseImages(out)
}

func (r *requests) images(ctx context.Context) ([]string, error) {
	out, err := r.client.call(ctx, http.MethodGet, "/images/json", url.Values{"filters": {`{"label":["` + engine.ImageFilter + `"]}`}})
	if err != nil {
		return nil, err
	}
	return parseImages(out)
}

func (c *commands) users(ctx context.Context, ref string) ([]string, error) {
	return list(ctx, c.podman, "--filter", "ancestor="+ref)
}

func (r *requests) users(ctx context.Context, ref string) ([]string, error) {
	return r.list(ctx, url.Values{"all": {"true"}, "filters": {`{"ancestor":["` + ref + `"]}`}})
}
