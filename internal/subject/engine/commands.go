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

// Commands is a command line of Docker's kind as a session uses it. Podman's and isula's
// agree on most of it; each field below the first five is something on which they do not.
// It implements [Cleaned].
type Commands struct {
	Called  string // the engine's name, in errors: "podman"
	Program cli.Program
	Always  []string // what each command is given right after its verb
	Env     subject.Env
	Image   *image.Image // the workload's; nil where a run is only cleaned up after

	// Making are the options with which a container is made.
	Making  func(name string, place Place) []string
	Inspect []string // the verb that tells of containers, in Docker's form
	// Logs asks for what containers said that is in no file, a hundred at a time; nil where
	// all of it is in files.
	Logs    func(ctx context.Context, names []string) (string, error)
	OfRun   []string // the options of ps for the run's containers
	Removal []string // the verb that removes containers by force
	Load    []string // the verb that loads the image of a file
	// ImageID is the id of what the engine has under the name of the workload's image, ""
	// where it lists nothing of that name.
	ImageID func(ctx context.Context) (string, error)
	// Listing is the verb that lists images, and Own reads those of a run.
	Listing []string
	Own     func(out []byte, runID string) ([]string, error)
	// Stats is the verb that tells what containers use, and Usage adds what it printed of
	// some of them to what was told, by their ids.
	Stats []string
	Usage func(out []byte, of []State, told map[string]Usage)
	// Refused tells from the end of an exec whether it was the engine that failed, and not
	// the command in the container.
	Refused func(exit int, stderr string) bool
}

// Open opens a session that is driven by these commands, with what else it is to know.
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

// Verb is a command's arguments.
func (c *Commands) Verb(verb string, rest ...string) []string {
	return slices.Concat([]string{verb}, c.Always, rest)
}

// Line is the command line of an operation.
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

// together is how many containers one command is given: isula takes less than a thousand
// arguments, and some of those who start podman 256.
const together = 100

// Ask runs a command that is not measured, for its output.
func (c *Commands) Ask(ctx context.Context, verb []string, rest ...string) ([]byte, error) {
	return c.Program.Run(ctx, c.Verb(verb[0], slices.Concat(verb[1:], rest)...)...)
}

// Look implements Driver.
func (c *Commands) Look(ctx context.Context, names []string) (map[string]State, error) {
	known, unread := map[string]State{}, Unread{}
	if c.look(ctx, known, unread, names, together); len(unread) > 0 {
		return known, unread
	}
	return known, nil
}

// look asks for some containers at a time. Where one of them is unknown, podman tells of
// the others and isula of none; where one is broken, neither does. Then each is asked for by
// itself, so that it costs no other lane.
func (c *Commands) look(ctx context.Context, known map[string]State, unread Unread, names []string, atOnce int) {
	for some := range slices.Chunk(names, atOnce) {
		out, err := c.Ask(ctx, c.Inspect, some...)
		var states []State
		switch {
		case err == nil || Unknown(err) && len(bytes.TrimSpace(out)) > 0:
			states, err = Inspected(out)
		case len(some) == 1 && Unknown(err):
			err = nil
		}
		for _, s := range states {
			if slices.Contains(some, s.Name) {
				known[s.Name] = s
			}
		}
		if err != nil && len(some) > 1 {
			c.look(ctx, known, unread, some, 1)
		} else if err != nil {
			unread[some[0]] = err
		}
	}
}

// Unread is the error of a look at several containers: why each of those could not be
// read that could not.
type Unread map[string]error

func (u Unread) Error() string { return errors.Join(u.Unwrap()...).Error() }

// Unwrap gives the errors in the order of the names.
func (u Unread) Unwrap() []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(u)) {
		errs = append(errs, u[name])
	}
	return errs
}

// unreadOf is why one container's state could not be read: of a look that tells that of
// each, its own error only.
func unreadOf(err error, name string) error {
	if each, ok := errors.AsType[Unread](err); ok {
		return each[name]
	}
	return err
}

// Operations describes the operations: what it means of each that it is done, and why there
// are none of pods.
func (c *Commands) Operations(absent string, means map[subject.Op]string) map[string]record.Operation {
	return Operations(absent, func(op subject.Op) string { return lane.Quote(c.Line(op, "ID", Place{})) }, means)
}

// Unknown tells whether a command failed because its engine does not know what it was asked
// about, and for no other reason. Beside that, podman has a warning for every command on
// cgroup v1, and isula inspect says "No such object" whatever else is the matter.
func Unknown(err error) bool {
	e, failed := errors.AsType[*cli.Error](err)
	if !failed || e.Exit <= 0 {
		return false
	}
	said := false
	for line := range strings.Lines(strings.ToLower(e.Output)) {
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "time=") && strings.Contains(line, " level=warning "):
		case strings.Contains(line, "no such ") || strings.Contains(line, "image not known"):
			said = true
		default:
			return false
		}
	}
	return said
}

// Output implements Driver. Files are read, what is kept elsewhere is asked for.
func (c *Commands) Output(ctx context.Context, containers []State) (string, error) {
	if c.Logs == nil {
		return ReadLogs(containers, false)
	}
	var text strings.Builder
	var ask []string
	for _, s := range containers {
		if log, err := ReadLog(s.Log); err == nil {
			text.WriteString(ParseLog(log))
		} else {
			ask = append(ask, s.Name)
		}
	}
	for some := range slices.Chunk(ask, together) {
		said, err := c.Logs(ctx, some)
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

// Names are those of the containers, with these options of ps.
func (c *Commands) Names(ctx context.Context, options ...string) ([]string, error) {
	out, err := c.Ask(ctx, []string{"ps", "-a", "--format", "{{.Names}}"}, options...)
	return strings.Fields(string(out)), err // isula pads them
}

// removing is how long a hundred containers may take to be removed by force, which isula
// does one after the other.
const removing = 2 * time.Minute

// Remove implements Driver.
func (c *Commands) Remove(ctx context.Context, names []string) error {
	var errs []error
	for some := range slices.Chunk(names, together) {
		bounded, cancel := context.WithTimeout(ctx, removing)
		_, err := c.Ask(bounded, c.Removal, some...)
		cancel()
		if !Unknown(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Import implements Driver.
func (c *Commands) Import(ctx context.Context) (made bool, err error) {
	short, cancel := context.WithTimeout(ctx, imagePatience)
	defer cancel()
	id, err := c.ImageID(short)
	switch {
	case err != nil && !Unknown(err): // what is there all the same would be removed as this run's
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
		err = fmt.Errorf("%s does not list %s", c.Called, c.Image.Ref)
	case err == nil && id != c.Image.ID:
		err = fmt.Errorf("%s is image %s now, not %s", c.Image.Ref, id, c.Image.ID)
	}
	if err != nil {
		return true, fmt.Errorf("import the workload's image: the load reported success, but: %w", err)
	}
	return true, nil
}

// Images implements Cleaned.
func (c *Commands) Images(ctx context.Context) ([]string, error) {
	out, err := c.Ask(ctx, c.Listing)
	if err != nil {
		return nil, err
	}
	return c.Own(out, c.Env.RunID)
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

// statistics implements that of [Options].
func (c *Commands) statistics(ctx context.Context, containers []State) (map[string]Usage, error) {
	told := map[string]Usage{}
	for some := range slices.Chunk(containers, together) {
		var names []string
		for _, s := range some {
			names = append(names, s.Name)
		}
		out, err := c.Ask(ctx, c.Stats, names...)
		if err != nil {
			return nil, err
		}
		c.Usage(out, some, told)
	}
	return told, nil
}

// Operations describes those of an engine without pods: the command of each, and what it
// means that it is done. absent is why there are none of pods.
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
