package podman

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// commands returns podman's command lines for a session.
func (t *Target) commands(podman cli.Program, env subject.Env, i *image.Image) *engine.Commands {
	c := &engine.Commands{
		Called: "podman", Program: podman, Env: env, Image: i,
		// A podman that was killed during create may leave an unlabelled name in the storage, which
		// podman calls external and which blocks the removal of the image.
		OfRun:   []string{"--external"},
		Inspect: []string{"inspect", "--type", "container"},
		Removal: []string{"rm", "--force", "--ignore"},
		Load:    []string{"load", "--quiet", "--input"},
		Listing: []string{"images", "--filter", "label=" + engine.ImageFilter, "--no-trunc", "--format", "json"}, ParseImages: parseImages,
		Stats: []string{"stats", "--no-stream", "--no-reset", "--format", format}, Usage: parseStats,
		Refused: refused,
	}
	if t.info.major() >= 4 {
		c.Removal = append(c.Removal, "--time", "0") // SIGKILL at once instead of after ten seconds
	}
	c.Making = func(name string, place engine.Place) []string { return t.making(env, name, place) }
	c.Logs = func(ctx context.Context, names []string) (string, error) {
		out, err := c.Ask(ctx, []string{"logs"}, names...)
		return unprefixed(string(out), len(names) > 1), err
	}
	c.ImageID = func(ctx context.Context) (string, error) {
		out, err := c.Ask(ctx, []string{"image", "inspect", "--format", "{{.Id}}"}, i.Ref)
		return "sha256:" + strings.TrimPrefix(strings.TrimSpace(string(out)), "sha256:"), err
	}
	return c
}

func (t *Target) making(env subject.Env, name string, place engine.Place) []string {
	limits := env.Limits
	if limits.Pids == 0 {
		limits.Pids = -1 // removes podman's default of 2048
	}
	line := []string{"--pull", "never", "--name", name, "--label", engine.RunLabel + "=" + env.RunID, "--network", t.network}
	line = append(line, engine.LimitFlags(limits)...)
	// By default podman copies the image's files at its path into a tmpfs.
	line = append(line, place.Flags(append(slices.Clone(place.Tmpfs), "notmpcopyup")...)...)
	for _, r := range t.rlimits {
		line = append(line, "--ulimit", fmt.Sprintf("%s=%d:%d", r.Name, r.Limit, r.Limit))
	}
	if t.driver != "" {
		line = append(line, "--log-driver", t.driver)
	}
	return line
}

// refused follows podman-exec(1): 125 is podman's own error, 126 and 127 mean that the command could
// not be invoked or found. A command may exit with these too, but only podman prints "Error: " on the
// last line.
func refused(exit int, stderr string) bool {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	return exit >= 125 && exit <= 127 && strings.HasPrefix(lines[len(lines)-1], "Error: ")
}

// unprefixed removes the container's id from each line of `podman logs` of several containers.
func unprefixed(log string, several bool) string {
	if !several {
		return log
	}
	var text strings.Builder
	for line := range strings.Lines(log) {
		if _, said, ok := strings.Cut(line, " "); ok {
			text.WriteString(said)
		}
	}
	return text.String()
}

// parseImages returns a run's images from the output of `podman images --format json`. The tag
// of such an image is the beginning of its id.
func parseImages(out []byte, runID string) ([]string, error) {
	var all []struct {
		ID    string   `json:"Id"`
		Names []string `json:"Names"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("parse the output of podman images: %w", err)
	}
	var refs []string
	for _, i := range all {
		for _, ref := range engine.OwnImages(i.Names, runID) {
			tag := ref[strings.LastIndexByte(ref, ':')+1:]
			if strings.HasPrefix(strings.TrimPrefix(i.ID, "sha256:"), strings.TrimSuffix(tag, "-"+runID)) {
				refs = append(refs, ref)
			}
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs), nil
}
