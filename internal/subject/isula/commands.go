package isula

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// commands is isula as a session uses it. It implements engine.Driver.
type commands struct {
	*Target
	image *image.Image // with the files that the run carries
	env   subject.Env
}

// Line is the command line of an operation.
func (c *commands) Line(op subject.Op, name string, place engine.Place) []string {
	switch op {
	case subject.Create:
		return c.line("create", c.making(name, place)...)
	case subject.Run:
		return c.line("run", append([]string{"--detach"}, c.making(name, place)...)...)
	case subject.Start, subject.Stop, subject.Remove:
		return c.line(string(op), name)
	}
	return nil
}

func (c *commands) making(name string, place engine.Place) []string {
	line := []string{"--name", name, "--label", engine.RunLabel + "=" + c.env.RunID, "--net", c.network}
	if c.runtime != "" {
		line = append(line, "--runtime", c.runtime)
	}
	if c.pull {
		line = append(line, "--pull", "never")
	}
	if c.logs {
		line = append(line, "--log-driver", jsonFile)
	}
	line = append(line, engine.LimitFlags(c.env.Limits)...)
	line = append(line, place.Flags()...)
	return append(append(line, c.image.Ref), c.env.Workload.Args(name)...)
}

// atOnce is how many containers one command is given; isula takes less than a
// thousand.
const atOnce = 100

// Look implements engine.Driver. isula inspects several containers with one
// command, but says nothing of any if it does not know one of them.
func (c *commands) Look(ctx context.Context, names []string) (map[string]engine.State, error) {
	known := map[string]engine.State{}
	for some := range slices.Chunk(names, atOnce) {
		err := c.inspect(ctx, known, some)
		if err == nil {
			continue
		}
		for _, name := range some {
			if err := c.inspect(ctx, known, []string{name}); err != nil && !unknown(err) {
				return known, err
			}
		}
	}
	return known, nil
}

func (c *commands) inspect(ctx context.Context, known map[string]engine.State, names []string) error {
	out, err := c.isula.Run(ctx, c.verb("inspect", names...)...)
	if err != nil {
		return err
	}
	states, err := parseInspect(out)
	for _, s := range states {
		if slices.Contains(names, s.Name) {
			known[s.Name] = s
		}
	}
	return err
}

// unknown reports whether a command failed because the daemon does not know
// what it was asked about, and for no other reason: isula inspect says "No such
// object" whatever the matter is.
func unknown(err error) bool {
	var e *cli.Error
	if !errors.As(err, &e) || e.Exit <= 0 || e.Output == "" {
		return false
	}
	for line := range strings.Lines(e.Output) {
		if strings.TrimSpace(line) != "" && !strings.Contains(line, "No such ") {
			return false
		}
	}
	return true
}

// Output implements engine.Driver.
func (c *commands) Output(_ context.Context, containers []engine.State) (string, error) {
	return engine.ReadLogs(containers)
}

// List implements engine.Driver.
func (c *commands) List(ctx context.Context) ([]string, error) {
	names, err := c.list(ctx, "--filter", "label="+engine.RunLabel+"="+c.env.RunID)
	return slices.DeleteFunc(names, func(name string) bool { return !engine.OfRun(name, c.env.RunID) }), err
}

func (c *commands) list(ctx context.Context, filter ...string) ([]string, error) {
	out, err := c.isula.Run(ctx, c.verb("ps", append([]string{"-a", "--format", "{{.Names}}"}, filter...)...)...)
	return strings.Fields(string(out)), err // the names are padded
}

// Remove implements engine.Driver.
func (c *commands) Remove(ctx context.Context, names []string) error {
	var errs []error
	for some := range slices.Chunk(names, atOnce) {
		bounded, cancel := context.WithTimeout(ctx, removing)
		_, err := c.isula.Run(bounded, c.verb("rm", append([]string{"-f"}, some...)...)...)
		cancel()
		if !unknown(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removing is how long a hundred containers may take to be removed by force:
// isula removes them one after the other.
const removing = 2 * time.Minute

// Import implements engine.Driver. That the name is there is proof enough: its tag
// is a digest of what is in the image.
func (c *commands) Import(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if has, err := c.hasImage(ctx); has || err != nil {
		return false, err
	}
	ctx, cancel = engine.Loading(ctx)
	defer cancel()
	file := filepath.Join(c.env.Dir, "image.tar") // it is the daemon that reads it
	if err := c.image.Save(file); err != nil {
		return false, fmt.Errorf("import the workload's image: %w", err)
	}
	defer os.Remove(file)
	if _, err := c.isula.Run(ctx, c.verb("load", "-i", file)...); err != nil {
		return true, fmt.Errorf("import the workload's image: %w", err)
	}
	has, err := c.hasImage(ctx)
	if err == nil && !has {
		err = fmt.Errorf("isula images does not list %s", c.image.Ref)
	}
	if err != nil {
		return true, fmt.Errorf("import the workload's image: isula load reported success, but: %w", err)
	}
	return true, nil
}

func (c *commands) hasImage(ctx context.Context) (bool, error) {
	has, err := c.Images(ctx)
	return slices.Contains(has, c.image.Ref), err
}

// Users implements engine.Cleaned: all that could use an image of tare's. Whose a
// container's image is, isula ps does not tell.
func (c *commands) Users(ctx context.Context, _ string) ([]string, error) {
	all, err := c.list(ctx)
	return slices.DeleteFunc(all, func(n string) bool { return !strings.HasPrefix(n, "tare-") }), err
}

// Images implements engine.Cleaned.
func (c *commands) Images(ctx context.Context) ([]string, error) {
	out, err := c.isula.Run(ctx, c.verb("images")...)
	if err != nil {
		return nil, err
	}
	return ownImages(string(out)), nil
}

// Drop implements engine.Driver.
func (c *commands) Drop(ctx context.Context, ref string) error {
	_, err := c.isula.Run(ctx, c.verb("rmi", ref)...)
	if err == nil {
		return nil
	}
	if has, asked := c.Images(ctx); asked == nil && !slices.Contains(has, ref) {
		return nil
	}
	return fmt.Errorf("remove the workload's image: %w", err)
}
