package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// Engine is how one engine is asked and cleaned, for one session. Its methods
// are called by one goroutine at a time; none of them is timed.
type Engine interface {
	// Look asks for containers. Those that the engine does not know are not
	// in the answer, and are no error.
	Look(ctx context.Context, names []string) (map[string]State, error)
	// Output is what containers have said so far. Of each, the name is a
	// word of its own output, so that one text will do for all.
	Output(ctx context.Context, containers []State) (string, error)
	// List names the containers of the run, whatever their state: those that
	// bear one of its names, whether they came so far as to have its label.
	List(ctx context.Context) ([]string, error)
	// Remove removes containers by force. One that is not there is no error.
	Remove(ctx context.Context, names []string) error
	// Import makes the image available, and tells whether it was not there.
	Import(ctx context.Context) (made bool, err error)
	// Drop removes the image.
	Drop(ctx context.Context) error
}

// Options of a session.
type Options struct {
	Target  string // the target's name, for errors
	Called  string // the engine's, for errors: "podman"
	Engine  Engine
	Program Program // what the lanes run
	// Line is the command line of an operation, for the container of a name.
	// nil where the operations are not performed by lanes: such a session arms
	// by itself, with Hold, Place and Settle.
	Line func(op subject.Op, name string, place Place) []string
	// Exec is the verb, with its arguments, that runs a command in a container
	// with a variable, "NAME=value", in its environment; nil where the session
	// does that by itself.
	Exec func(name, variable string, args []string) []string
	// Refused tells from the end of such a verb whether it was the engine that
	// failed, and not the command in the container.
	Refused func(exit int, stderr string) bool
	Env     subject.Env
	Image   string // names image and engine among all that tare's sessions use
	// Settled is called when an operation was confirmed, with what the engine
	// knows of its containers now; a failure is added to the sample. May be
	// nil.
	Settled func(op subject.Op, s State) *record.Failure
	// Quiet waits, after a stop, for what the engine still does about it. It
	// is given what was known of the containers while they ran. May be nil.
	Quiet func(containers []State)
	// Closed is called at the end. May be nil.
	Closed func()
}

// Session is an engine that is open for a run.
type Session struct {
	o      Options
	pool   *lane.Pool
	letGo  func(func() error) error
	lanes  []container
	places *Places
	// late are the containers, by name, whose operation was cut off since the
	// last clean-up: the engine may not have noticed, and go on with it.
	late map[string]bool
}

// container is what a lane holds.
type container struct {
	name  string // "" where there is none
	known State  // when it was last asked for
}

// Open imports the image and starts the lanes.
func Open(ctx context.Context, o Options) (*Session, error) {
	s := &Session{o: o, lanes: make([]container, o.Env.Lanes), late: map[string]bool{}}
	var err error
	if s.places, err = OpenPlaces(o.Env); err != nil {
		return nil, fmt.Errorf("target %s: %w", o.Target, errors.Join(err, s.Close(context.WithoutCancel(ctx))))
	}
	s.letGo, err = engine.Hold(o.Image, func() (bool, error) { return o.Engine.Import(ctx) })
	if err == nil && o.Line != nil {
		s.pool, err = lane.NewPool(lane.Options{Lanes: o.Env.Lanes, Mounts: o.Program.Mounts, Env: o.Program.Env})
	}
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", o.Target, errors.Join(err, s.Close(context.WithoutCancel(ctx))))
	}
	return s, nil
}

// Prepare implements subject.Session.
func (s *Session) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	if err := s.Ready(ctx, op); err != nil {
		return nil, err
	}
	tasks := make([]batch.Task, len(lanes))
	for i, n := range lanes {
		name := s.Hold(op, n).Name
		line := s.o.Line(op, name, s.places.On(n))
		if line == nil || name == "" {
			return nil, fmt.Errorf("target %s: %s on lane %d: %w", s.o.Target, op, n, subject.ErrUnsupported)
		}
		tasks[i] = batch.Task{Lane: n, Order: lane.Order{Kind: lane.Exec, Args: line, Timeout: s.o.Env.Timeout}}
	}
	b, err := batch.PrepareOrders(s.pool, tasks)
	if err != nil {
		return nil, fmt.Errorf("target %s: %s: %w", s.o.Target, op, err)
	}
	b.Settle = func(ctx context.Context, samples []record.Sample) {
		s.Settle(ctx, op, samples)
		for i := range samples {
			if f := samples[i].Failure; f != nil && f.Command == "" {
				f.Command = tasks[i].Order.String()
			}
		}
	}
	return b, nil
}

// Ready makes sure that what an operation needs on the engine is still there: it
// may be that the image went with another run that ended, or was cleaned up
// after, while this one had no container.
func (s *Session) Ready(ctx context.Context, op subject.Op) error {
	if op != subject.Create && op != subject.Run {
		return nil
	}
	if err := engine.Renew(s.o.Image, func() (bool, error) { return s.o.Engine.Import(ctx) }); err != nil {
		return fmt.Errorf("target %s: %s: %w", s.o.Target, op, err)
	}
	return nil
}

// Hold is the container on which an operation on a lane is done: a new one for
// create and run, with nothing but its name; else the one that is there, as it
// was last seen.
func (s *Session) Hold(op subject.Op, n int) State {
	c := &s.lanes[n]
	if op == subject.Create || op == subject.Run {
		*c = container{name: engine.NewName(s.o.Env.RunID, n)}
	}
	c.known.Name = c.name
	return c.known
}

// Discard implements subject.Session.
func (s *Session) Discard(ctx context.Context, lanes []int) error {
	var names []string
	for _, n := range lanes {
		if s.lanes[n].name != "" {
			names = append(names, s.lanes[n].name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	left, err := s.clear(ctx, names, func(name string) bool { return slices.Contains(names, name) })
	for _, n := range lanes {
		if c := &s.lanes[n]; err == nil || left != nil && !slices.Contains(left, c.name) {
			*c = container{}
		}
	}
	if err != nil {
		return fmt.Errorf("target %s: remove what is left of the batch: %w", s.o.Target, err)
	}
	return nil
}

// clear removes containers of the session. Where an operation was cut off it
// waits for what may come of it.
func (s *Session) clear(ctx context.Context, names []string, mine func(string) bool) (left []string, err error) {
	owed := map[string]bool{}
	for name := range s.late {
		owed[name] = mine(name)
	}
	maps.DeleteFunc(owed, func(_ string, is bool) bool { return !is })
	left, err = Clear(ctx, s.o.Engine, names, mine, engine.Late(len(owed)))
	switch {
	case err == nil:
		maps.DeleteFunc(s.late, func(name string, _ bool) bool { return owed[name] })
	case left != nil:
		err = fmt.Errorf("%s still has %s: %w", s.o.Called, strings.Join(left, ", "), err)
	default:
		err = s.unsure(slices.Concat(names, slices.Collect(maps.Keys(owed))), err)
	}
	return left, err
}

// unsure is the error of not knowing what became of containers.
func (s *Session) unsure(names []string, err error) error {
	if len(names) == 0 {
		return err
	}
	slices.Sort(names)
	return fmt.Errorf("%s may still have %s: %w", s.o.Called, strings.Join(slices.Compact(names), ", "), err)
}

// Close implements subject.Session. It removes every container of the run that
// the engine knows: also one that came to be after its command was given up. Its
// error names those of which it is not known that they are gone.
func (s *Session) Close(ctx context.Context) error {
	var errs []error
	if s.letGo != nil { // or nothing was made
		held := slices.Collect(maps.Keys(s.late))
		for _, c := range s.Held() {
			held = append(held, c.Name)
		}
		all := func(string) bool { return true }
		names, err := listed(ctx, s.o.Engine, all)
		if err != nil {
			err = s.unsure(held, err)
		} else if names = append(names, held...); len(names) > 0 {
			slices.Sort(names)
			_, err = s.clear(ctx, slices.Compact(names), all)
		}
		errs = append(errs, err, s.letGo(func() error { return s.o.Engine.Drop(ctx) }))
	}
	if s.pool != nil {
		s.pool.Close()
		s.pool = nil
	}
	if s.o.Closed != nil {
		s.o.Closed()
	}
	errs = append(errs, s.places.Close(), mounts.RemoveTree(s.o.Env.StateDir), mounts.RemoveTree(s.o.Env.Dir))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("target %s: close: %w", s.o.Target, err)
	}
	return nil
}

// Place is where the container on a lane has its files.
func (s *Session) Place(n int) Place { return s.places.On(n) }

// Held are the containers that the lanes hold, as they were last seen.
func (s *Session) Held() []State {
	var out []State
	for _, c := range s.lanes {
		if c.name != "" {
			c.known.Name = c.name
			out = append(out, c.known)
		}
	}
	return out
}
