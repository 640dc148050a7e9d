package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/record"
)

// Commands drives an engine by a command line of Docker's kind. Podman and isula differ in
// the fields after Image. It implements [Driver].
type Commands struct {
	Called  string // the engine's name in errors: "podman"
	Program cli.Program
	Always  []string // arguments after the verb of every command
	Env     subject.Env
	Image   *image.Image // the workload's; nil for tare clean

	// Making returns the options for create and run.
	Making  func(name string, place Place) []string
	Inspect []string // the verb that prints containers in Docker's form
	// Logs returns the output of up to a hundred containers, as far as it is not in files.
	// It is nil if all output is in files.
	Logs    func(ctx context.Context, names []string) (string, error)
	OfRun   []string // options of ps that select the run's containers
	Removal []string // the verb that removes containers by force
	Load    []string // the verb that loads an image from a file
	// ImageID returns the id of the image with the workload's name; "" if the engine
	// lists none.
	ImageID func(ctx context.Context) (string, error)
	// Listing is the verb that lists images. ParseImages returns a run's images from its
	// output.
	Listing     []string
	ParseImages func(out []byte, runID string) ([]string, error)
	// Stats is the verb that prints resource usage. Usage parses its output into used, by
	// container id.
	Stats []string
	Usage func(out []byte, of []State, used map[string]Usage)
	// Refused reports whether an exec failed in the engine, not in the command.
	Refused func(exit int, stderr string) bool
}

// Open opens a session that is driven by these commands. o has the remaining options.
func (c *Commands) Open(ctx context.Context, o Options) (subject.Session, error) {
	o.Called, o.Env, o.Program, o.Ref = c.Called, c.Env, c.Program, c.Image.Ref
	o.Line = func(op subject.Op, name string, place Place) ([]string, error) { return c.Line(op, name, place), nil }
	o.Driver, o.Commands, o.Statistics = c, c, c.statistics
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Verb returns the arguments of a command.
func (c *Commands) Verb(verb string, rest ...string) []string {
	return slices.Concat([]string{verb}, c.Always, rest)
}

// Line returns the command line of an operation.
func (c *Commands) Line(op subject.Op, name string, place Place) []string {
	if op != subject.Create && op != subject.Run {
		return c.Program.Line(c.Verb(string(op), name)...)
	}
	var line []string
	if op == subject.Run {
		line = append(line, "--detach")
	}
	line = append(append(line, c.Making(name, place)...), c.Image.Ref)
	return c.Program.Line(c.Verb(string(op), append(line, c.Env.Workload.Args(name)...)...)...)
}

// maxNames is the number of containers per command. isula accepts fewer than a thousand
// arguments, and some podman wrappers 256.
const maxNames = 100

// Ask runs a command outside the measurement and returns its output.
func (c *Commands) Ask(ctx context.Context, verb []string, rest ...string) ([]byte, error) {
	return c.Program.Run(ctx, c.Verb(verb[0], slices.Concat(verb[1:], rest)...)...)
}

// Look implements Driver.
func (c *Commands) Look(ctx context.Context, names []string) (map[string]State, error) {
	known, unread := map[string]State{}, Unread{}
	if c.look(ctx, known, unread, names, maxNames); len(unread) > 0 {
		return known, unread
	}
	return known, nil
}

// look inspects up to atOnce containers per command. If one is unknown, podman prints the
// others and isula prints none; if one is broken, neither prints any. Then each container is
// inspected separately, so that the other lanes are not affected.
func (c *Commands) look(ctx context.Context, known map[string]State, unread Unread, names []string, atOnce int) {
	for chunk := range slices.Chunk(names, atOnce) {
		out, err := c.Ask(ctx, c.Inspect, chunk...)
		var states []State
		switch {
		case err == nil || Unknown(err) && len(bytes.TrimSpace(out)) > 0:
			states, err = Inspected(out)
		case len(chunk) == 1 && Unknown(err):
			err = nil
		}
		for _, s := range states {
			if slices.Contains(chunk, s.Name) {
				known[s.Name] = s
			}
		}
		if err != nil && len(chunk) > 1 {
			c.look(ctx, known, unread, chunk, 1)
		} else if err != nil {
			unread[chunk[0]] = err
		}
	}
}

// Unread is the error of a look at several containers: the reason for each one that could
// not be read.
type Unread map[string]error

func (u Unread) Error() string { return errors.Join(u.Unwrap()...).Error() }

// Unwrap returns the errors in the order of the names.
func (u Unread) Unwrap() []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(u)) {
		errs = append(errs, u[name])
	}
	return errs
}

// unreadOf returns the error that concerns one container: its own entry if err is an
// Unread, else err.
func unreadOf(err error, name string) error {
	if each, ok := errors.AsType[Unread](err); ok {
		return each[name]
	}
	return err
}

// Operations describes the operations: the meaning of done for each, and why pod operations
// are absent.
func (c *Commands) Operations(absent string, means map[subject.Op]string) map[string]record.Operation {
	return Operations(absent, func(op subject.Op) string { return lane.Quote(c.Line(op, "ID", Place{})) }, means)
}

// Unknown reports whether a command failed only because the engine does not know an object.
// It ignores podman's warning about cgroup v1. It is false if there is any other message:
// isula inspect prints "No such object" whatever the cause is.
func Unknown(err error) bool {
	e, failed := errors.AsType[*cli.Error](err)
	if !failed || e.Exit <= 0 {
		return false
	}
	unknown := false
	for line := range strings.Lines(strings.ToLower(e.Output)) {
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "time=") && strings.Contains(line, " level=warning "):
		case strings.Contains(line, "no such ") || strings.Contains(line, "image not known"):
			unknown = true
		default:
			return false
		}
	}
	return unknown
}

// Output implements Driver. It reads log files and asks the engine for other output.
func (c *Commands) Output(ctx context.Context, containers []State) (string, error) {
	if c.Logs == nil {
		return ReadLogs(containers, false)
	}
	var text strings.Builder
	var ask []string
	for _, s := range containers {
		if log, err := ReadLog(s.Log); err == nil {
			text.WriteString(ParseLog(log, false))
		} else {
			ask = append(ask, s.Name)
		}
	}
	for chunk := range slices.Chunk(ask, maxNames) {
		said, err := c.Logs(ctx, chunk)
		text.WriteString(said)
		if err != nil {
			return text.String(), err
		}
	}
	return text.String(), nil
}

// List implements Driver.
func (c *Commands) List(ctx context.Context) ([]string, error) {
	names, err := c.Names(ctx, c.OfRun...)
	return slices.DeleteFunc(names, func(name string) bool { return !OfRun(name, c.Env.RunID) }), err
}

// Names lists containers with these options of ps.
func (c *Commands) Names(ctx context.Context, options ...string) ([]string, error) {
	out, err := c.Ask(ctx, []string{"ps", "-a", "--format", "{{.Names}}"}, options...)
	return strings.Fields(string(out)), err // isula pads them
}

// removeTimeout bounds the forced removal of a hundred containers. isula removes them one
// after the other.
const removeTimeout = 2 * time.Minute

// Remove implements Driver.
func (c *Commands) Remove(ctx context.Context, names []string) error {
	var errs []error
	for chunk := range slices.Chunk(names, maxNames) {
		bounded, cancel := context.WithTimeout(ctx, removeTimeout)
		_, err := c.Ask(bounded, c.Removal, chunk...)
		cancel()
		if !Unknown(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Import implements Driver.
func (c *Commands) Import(ctx context.Context) (made bool, err error) {
	short, cancel := context.WithTimeout(ctx, imageAnswer)
	defer cancel()
	id, err := c.ImageID(short)
	switch {
	case err != nil && !Unknown(err): // an existing image must not be removed as this run's
		return false, fmt.Errorf("look for the workload's image: %w", err)
	case err == nil && id == c.Image.ID:
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	file := filepath.Join(c.Env.Dir, "image.tar")
	if err := c.Image.Save(file); err != nil {
		return false, fmt.Errorf("import the workload's image: %w", err)
	}
	defer os.Remove(file)
	ctx, cancel = Loading(ctx)
	defer cancel()
	if _, err := c.Ask(ctx, c.Load, file); err != nil {
		return true, fmt.Errorf("import the workload's image: %w", err)
	}
	switch id, err = c.ImageID(ctx); {
	case err == nil && id == "":
		err = fmt.Errorf("%s does not list the image %s", c.Called, c.Image.Ref)
	case err == nil && id != c.Image.ID:
		err = fmt.Errorf("%s now has the id %s, expected %s", c.Image.Ref, id, c.Image.ID)
	}
	if err != nil {
		return true, fmt.Errorf("import the workload's image: the load reported success, but: %w", err)
	}
	return true, nil
}

// Images implements Driver.
func (c *Commands) Images(ctx context.Context) ([]string, error) {
	out, err := c.Ask(ctx, c.Listing)
	if err != nil {
		return nil, err
	}
	return c.ParseImages(out, c.Env.RunID)
}

// Drop implements Driver.
func (c *Commands) Drop(ctx context.Context, ref string) error {
	_, err := c.Ask(ctx, []string{"rmi"}, ref)
	if err == nil {
		return nil
	}
	if has, asked := c.Images(ctx); asked == nil && !slices.Contains(has, ref) {
		return nil
	}
	return fmt.Errorf("remove the workload's image: %w", err)
}

// statistics implements [Options].Statistics.
func (c *Commands) statistics(ctx context.Context, containers []State) (map[string]Usage, error) {
	used := map[string]Usage{}
	for chunk := range slices.Chunk(containers, maxNames) {
		var names []string
		for _, s := range chunk {
			names = append(names, s.Name)
		}
		out, err := c.Ask(ctx, c.Stats, names...)
		if err != nil {
			return nil, err
		}
		c.Usage(out, chunk, used)
	}
	return used, nil
}

// Operations describes the operations of an engine without pods: the command and the
// meaning of done for each. absent is the reason for having no pod operations.
func Operations(absent string, command func(subject.Op) string, means map[subject.Op]string) map[string]record.Operation {
	out := map[string]record.Operation{}
	for _, op := range subject.PodOps {
		out[string(op)] = record.Operation{Absent: absent}
	}
	for op, means := range means {
		out[string(op)] = record.Operation{Command: command(op), Done: record.StampReturned, Means: means}
	}
	return out
}
