package podman

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// commands is podman's command line as a session uses it. It implements
// cli.Engine.
type commands struct {
	*Target
	podman cli.Program  // where the session runs it
	image  *image.Image // with the files that the run carries
	env    subject.Env
}

// Line is the command line of an operation.
func (c *commands) Line(op subject.Op, name string, place cli.Place) []string {
	switch op {
	case subject.Create:
		return c.Target.podman.Line(c.making(name, place, "create")...)
	case subject.Run:
		return c.Target.podman.Line(c.making(name, place, "run", "--detach")...)
	case subject.Start, subject.Stop, subject.Remove:
		return c.Target.podman.Line(string(op), name)
	}
	return nil
}

func (c *commands) making(name string, place cli.Place, verb ...string) []string {
	l := c.env.Limits
	line := append(verb, "--pull", "never", "--name", name, "--label", engine.RunLabel+"="+c.env.RunID, "--network", c.network)
	limit := func(flag string, value int64) {
		if value > 0 {
			line = append(line, flag, strconv.FormatInt(value, 10))
		}
	}
	limit("--memory", l.Memory)
	line = append(line, "--pids-limit", strconv.FormatInt(pids(l), 10))
	limit("--cpu-shares", l.CPUShares)
	if quota := l.CPUQuota(); quota > 0 {
		limit("--cpu-period", subject.CPUPeriod)
		limit("--cpu-quota", quota)
	}
	line = append(line, place.Flags(tmpfs(place)...)...)
	for _, r := range c.rlimits {
		line = append(line, "--ulimit", fmt.Sprintf("%s=%d:%d", r.Type, r.Soft, r.Hard))
	}
	if c.driver != "" {
		line = append(line, "--log-driver", c.driver)
	}
	return append(line, c.image.Ref, name)
}

// pids is the limit to ask for. Podman has one of its own, of 2048 tasks unless
// containers.conf says otherwise, where none is asked for.
func pids(l subject.Limits) int64 {
	if l.Pids > 0 {
		return l.Pids
	}
	return -1
}

// tmpfs are the options of a place's tmpfs. Into one podman copies what the image
// has at its path, unless it is told not to.
func tmpfs(place cli.Place) []string { return append(slices.Clone(place.Tmpfs), "notmpcopyup") }

func (c *commands) quoted(op subject.Op, name string) string {
	return lane.Quote(c.Line(op, name, cli.Place{}))
}

// Look implements cli.Engine.
func (c *commands) Look(ctx context.Context, names []string) (map[string]cli.State, error) {
	known := map[string]cli.State{}
	for some := range slices.Chunk(names, atOnce) {
		out, err := c.podman.Run(ctx, append([]string{"inspect", "--type", "container"}, some...)...)
		// It prints those that it knows, and fails if there are others.
		if err != nil && !unknown(err) {
			return known, err
		}
		states, err := parseInspect(out)
		if err != nil {
			return known, err
		}
		for _, s := range states {
			if slices.Contains(some, s.Name) {
				known[s.Name] = s
			}
		}
	}
	return known, nil
}

// atOnce is how many containers one command is given: 256 arguments is the
// most for some of those who start it.
const atOnce = 100

// unknown reports whether a command failed because podman does not know what it
// was asked about.
func unknown(err error) bool {
	var e *cli.Error
	if !errors.As(err, &e) || e.Exit <= 0 {
		return false
	}
	for line := range strings.Lines(strings.ToLower(e.Output)) {
		if !strings.Contains(line, "no such") && !strings.Contains(line, "image not known") {
			return false
		}
	}
	return e.Output != ""
}

// Output implements cli.Engine. Files are read; what is kept elsewhere, in the
// journal for instance, podman is asked for.
func (c *commands) Output(ctx context.Context, containers []cli.State) (string, error) {
	var text strings.Builder
	var ask []string
	for _, s := range containers {
		if said, err := readLog(s.Log); err == nil {
			text.WriteString(said)
		} else {
			ask = append(ask, s.Name)
		}
	}
	for some := range slices.Chunk(ask, atOnce) {
		out, err := c.podman.Run(ctx, append([]string{"logs"}, some...)...)
		text.WriteString(unprefixed(string(out), len(some) > 1))
		if err != nil {
			return text.String(), err
		}
	}
	return text.String(), nil
}

// List implements cli.Engine. A podman that was killed while it made a
// container may leave a name in the storage, without a label, that stands in
// the way of the image's removal: podman calls it external.
func (c *commands) List(ctx context.Context) ([]string, error) {
	names, err := list(ctx, c.podman, "--external")
	return slices.DeleteFunc(names, func(name string) bool { return !engine.OfRun(name, c.env.RunID) }), err
}

func list(ctx context.Context, podman cli.Program, which ...string) ([]string, error) {
	out, err := podman.Run(ctx, append([]string{"ps", "--all", "--no-trunc", "--format", "{{.Names}}"}, which...)...)
	return strings.Fields(string(out)), err
}

// Remove implements cli.Engine.
func (c *commands) Remove(ctx context.Context, names []string) error {
	return c.remove(ctx, c.podman, names)
}

func (t *Target) remove(ctx context.Context, podman cli.Program, names []string) error {
	verb := []string{"rm", "--force", "--ignore"}
	if t.info.major() >= 4 {
		verb = append(verb, "--time", "0") // SIGKILL without ten seconds' grace
	}
	var errs []error
	for some := range slices.Chunk(names, atOnce) {
		bounded, cancel := context.WithTimeout(ctx, removing)
		_, err := podman.Run(bounded, slices.Concat(verb, some)...)
		cancel()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removing is how long a hundred containers may take to be removed by force.
const removing = 2 * time.Minute

// Import implements cli.Engine.
func (c *commands) Import(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if id, err := imageID(ctx, c.podman, c.image.Ref); err == nil && id == c.image.ID {
		return false, nil
	}
	file := filepath.Join(c.env.Dir, "image.tar")
	if err := os.WriteFile(file, c.image.Archive, 0o644); err != nil {
		return false, fmt.Errorf("import the workload's image: %w", err)
	}
	defer os.Remove(file)
	if _, err := c.podman.Run(ctx, "load", "--quiet", "--input", file); err != nil {
		return false, fmt.Errorf("import the workload's image: %w", err)
	}
	id, err := imageID(ctx, c.podman, c.image.Ref)
	if err == nil && id != c.image.ID {
		err = fmt.Errorf("%s is image %s now, not %s", c.image.Ref, id, c.image.ID)
	}
	if err != nil {
		return true, fmt.Errorf("import the workload's image: podman load reported success, but: %w", err)
	}
	return true, nil
}

func imageID(ctx context.Context, podman cli.Program, ref string) (string, error) {
	out, err := podman.Run(ctx, "image", "inspect", "--format", "{{.Id}}", ref)
	return "sha256:" + strings.TrimPrefix(strings.TrimSpace(string(out)), "sha256:"), err
}

// Drop implements cli.Engine.
func (c *commands) Drop(ctx context.Context) error { return c.drop(ctx, c.image.Ref) }

func (c *commands) drop(ctx context.Context, ref string) error { return dropImage(ctx, c.podman, ref) }

func dropImage(ctx context.Context, podman cli.Program, ref string) error {
	if _, err := podman.Run(ctx, "rmi", ref); err != nil && !unknown(err) {
		return fmt.Errorf("remove the workload's image: %w", err)
	}
	return nil
}
