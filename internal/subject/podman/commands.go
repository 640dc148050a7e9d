package podman

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// commands is podman's command line as a session uses it. It implements
// engine.Driver.
type commands struct {
	*Target
	podman cli.Program  // where the session runs it
	image  *image.Image // with the files that the run carries
	env    subject.Env
}

// Line is the command line of an operation.
func (c *commands) Line(op subject.Op, name string, place engine.Place) []string {
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

func (c *commands) making(name string, place engine.Place, verb ...string) []string {
	limits := c.env.Limits
	if limits.Pids == 0 {
		limits.Pids = -1 // podman has a limit of its own, of 2048 unless containers.conf says otherwise
	}
	line := append(verb, "--pull", "never", "--name", name, "--label", engine.RunLabel+"="+c.env.RunID, "--network", c.network)
	line = append(line, engine.LimitFlags(limits)...)
	line = append(line, place.Flags(tmpfs(place)...)...)
	for _, r := range c.rlimits {
		line = append(line, "--ulimit", fmt.Sprintf("%s=%d:%d", r.Name, r.Limit, r.Limit))
	}
	if c.driver != "" {
		line = append(line, "--log-driver", c.driver)
	}
	return append(append(line, c.image.Ref), c.env.Workload.Args(name)...)
}

// tmpfs are the options of a place's tmpfs. Into one podman copies what the image
// has at its path, unless it is told not to.
func tmpfs(place engine.Place) []string { return append(slices.Clone(place.Tmpfs), "notmpcopyup") }

func (c *commands) quoted(op subject.Op, name string) string {
	return lane.Quote(c.Line(op, name, engine.Place{}))
}

// Look implements engine.Driver.
func (c *commands) Look(ctx context.Context, names []string) (map[string]engine.State, error) {
	known := map[string]engine.State{}
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
	said := false
	for line := range strings.Lines(strings.ToLower(e.Output)) {
		switch {
		case strings.HasPrefix(line, "time=") && strings.Contains(line, " level=warning "): // of cgroup v1 it has one for every command
		case strings.Contains(line, "no such") || strings.Contains(line, "image not known"):
			said = true
		default:
			return false
		}
	}
	return said
}

// Output implements engine.Driver. Files are read; what is kept elsewhere, in the
// journal for instance, podman is asked for.
func (c *commands) Output(ctx context.Context, containers []engine.State) (string, error) {
	var text strings.Builder
	var ask []string
	for _, s := range containers {
		if log, err := engine.ReadLog(s.Log); err == nil {
			text.WriteString(engine.ParseLog(log))
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

// unprefixed takes the container's id off each line of `podman logs` of several
// containers.
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

// List implements engine.Driver. A podman that was killed while it made a
// container may leave a name in the storage, without a label, that stands in
// the way of the image's removal: podman calls it external.
func (c *commands) List(ctx context.Context) ([]string, error) {
	names, err := c.list(ctx, "--external")
	return slices.DeleteFunc(names, func(name string) bool { return !engine.OfRun(name, c.env.RunID) }), err
}

func (c *commands) list(ctx context.Context, which ...string) ([]string, error) {
	out, err := c.podman.Run(ctx, append([]string{"ps", "--all", "--no-trunc", "--format", "{{.Names}}"}, which...)...)
	return strings.Fields(string(out)), err
}

// Remove implements engine.Driver.
func (c *commands) Remove(ctx context.Context, names []string) error {
	verb := []string{"rm", "--force", "--ignore"}
	if c.info.major() >= 4 {
		verb = append(verb, "--time", "0") // SIGKILL without ten seconds' grace
	}
	var errs []error
	for some := range slices.Chunk(names, atOnce) {
		bounded, cancel := context.WithTimeout(ctx, removing)
		_, err := c.podman.Run(bounded, slices.Concat(verb, some)...)
		cancel()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removing is how long a hundred containers may take to be removed by force.
const removing = 2 * time.Minute

// Import implements engine.Driver.
func (c *commands) Import(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if id, err := c.imageID(ctx); err == nil && id == c.image.ID {
		return false, nil
	}
	file := filepath.Join(c.env.Dir, "image.tar")
	if err := c.image.Save(file); err != nil {
		return false, fmt.Errorf("import the workload's image: %w", err)
	}
	defer os.Remove(file)
	if _, err := c.podman.Run(ctx, "load", "--quiet", "--input", file); err != nil {
		return true, fmt.Errorf("import the workload's image: %w", err)
	}
	id, err := c.imageID(ctx)
	if err == nil && id != c.image.ID {
		err = fmt.Errorf("%s is image %s now, not %s", c.image.Ref, id, c.image.ID)
	}
	if err != nil {
		return true, fmt.Errorf("import the workload's image: podman load reported success, but: %w", err)
	}
	return true, nil
}

func (c *commands) imageID(ctx context.Context) (string, error) {
	out, err := c.podman.Run(ctx, "image", "inspect", "--format", "{{.Id}}", c.image.Ref)
	return "sha256:" + strings.TrimPrefix(strings.TrimSpace(string(out)), "sha256:"), err
}

// Drop implements engine.Driver.
func (c *commands) Drop(ctx context.Context, ref string) error {
	if _, err := c.podman.Run(ctx, "rmi", ref); err != nil && !unknown(err) {
		return fmt.Errorf("remove the workload's image: %w", err)
	}
	return nil
}

// parseImages reads what `podman images --format json` prints: an image is the workload's by its label, its name
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

// Images implements engine.Cleaned.
func (c *commands) Images(ctx context.Context) ([]string, error) {
	out, err := c.podman.Run(ctx, "images", "--filter", "label="+engine.ImageFilter, "--no-trunc", "--format", "json")
	if err != nil {
		return nil, err
	}
	return parseImages(out)
}

// Users implements engine.Cleaned.
func (c *commands) Users(ctx context.Context, ref string) ([]string, error) {
	return c.list(ctx, "--filter", "ancestor="+ref)
}
