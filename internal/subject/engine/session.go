package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// Driver is how one engine is asked and cleaned, for one run. Its methods are
// called by one goroutine at a time; none of them is timed.
type Driver interface {
	// Look asks for containers. Those that the engine does not know are not
	// in the answer, and are no error.
	Look(ctx context.Context, names []string) (map[string]State, error)
	// Output is what containers have said so far. Of each, the name is a
	// word of its own output, so that one text will do for all. An error that
	// wraps ErrUnsupported says that the engine keeps no output.
	Output(ctx context.Context, containers []State) (string, error)
	// List names the containers of the run, whatever their state: those that
	// bear one of its names, whether they came so far as to have its label.
	List(ctx context.Context) ([]string, error)
	// Remove removes containers by force. One that is not there is no error.
	Remove(ctx context.Context, names []string) error
	// Import makes the image available, and tells whether it was not there, also with an
	// error after which it may be.
	Import(ctx context.Context) (made bool, err error)
	// Drop removes an image. One that is not there is no error.
	Drop(ctx context.Context, ref string) error
}

// Options of a session.
type Options struct {
	Target string // the target's name, for errors
	Called string // the engine's, for errors: "podman"
	Driver Driver
	Env    subject.Env
	Image  string // names image and engine among all that tare's sessions use
	Ref    string // the image's name
	Guest  bool   // the workload's clock is not the host's
	// Pods tells that a lane holds a pod, and maybe a container in it: the pod
	// begins with run or runp, and ends with rmp.
	Pods bool
	// Lag is how long what the engine says of a container may be behind its own
	// reply that it has ended.
	Lag time.Duration
	// Call is an operation on a container as a call of the engine's API, and
	// how it is shown; Warm opens connections for so many calls.
	Call func(ctx context.Context, op subject.Op, c State, place Place) (do func(context.Context) error, shown string, err error)
	Warm func(ctx context.Context, calls int) error
	// Stamp adds to the samples of such calls what was seen of their containers
	// meanwhile, and of those that failed what they said. May be nil.
	Stamp func(ctx context.Context, op subject.Op, names []string, samples []record.Sample)
	// Line is the command line of an operation, where it is not a call, for
	// the container of a name; Program is what such a session runs.
	Line    func(op subject.Op, name string, place Place) ([]string, error)
	Program cli.Program
	// Commands are those by which commands are run in containers; nil where the session
	// does that by itself.
	Commands *Commands
	// OnHost reports whether containers are in the engine's own network.
	OnHost bool
	// Runtime is the one that containers have to have, in the engine's words;
	// "" for any.
	Runtime string
	// Monitored tells that after a stop each container's monitor cleans up, as podman's do.
	Monitored bool
	// PlainLog says that logs are kept as containers wrote them, without a form.
	PlainLog bool
	// Statistics asks the engine for what containers use, by their ids; Source
	// is the command that shows the same.
	Statistics func(ctx context.Context, containers []State) (map[string]Usage, error)
	Source     string
	// Daemons are the engine's own processes on this machine. May be nil.
	Daemons func() []int
	// Removed is told the names of containers that are gone; Closed is called
	// at the end. May be nil.
	Removed func(names []string) error
	Closed  func(ctx context.Context) error
}

// Session is an engine that is open for a run: what all engines do around the
// operations, whatever they are called by.
type Session struct {
	ClockCheck
	o     Options
	pool  *lane.Pool
	letGo func(func() error) error
	// loading is set where the load of the image was given up.
	loading bool
	lanes   []container
	reach   []atomic.Pointer[subject.Reached] // by lane
	places  *Places
	// late are the containers, by name, whose operation was cut off since the
	// last clean-up: the engine may not have noticed, and go on with it.
	late map[string]bool
	// sandboxes are those that have a kernel of their own, also failed ones, and left is what
	// their runtime left of them.
	sandboxes *Flight
	left      []string
	hs        []cgroup.Hierarchy
	// emulated is how a VM shows that it is, once one was looked at.
	emulated string
	looked   bool
}

// container is what a lane holds.
type container struct {
	name  string // "" where there is none
	known State  // when it was last asked for
}

// Open imports the image and starts the lanes.
func Open(ctx context.Context, o Options) (*Session, error) {
	s := &Session{o: o, lanes: make([]container, o.Env.Lanes), reach: make([]atomic.Pointer[subject.Reached], o.Env.Lanes), late: map[string]bool{}, sandboxes: NewFlight("")}
	if err := s.open(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if closed := s.Close(clean); closed != nil {
			err = errors.Join(err, leftError{closed})
		}
		return nil, fmt.Errorf("target %s: %w", o.Target, err)
	}
	return s, nil
}

// leftError is why something is still on the engine.
type leftError struct{ error }

// Left marks the error for core/run, which keeps the run for tare clean.
func (leftError) Left() {}

func (s *Session) open(ctx context.Context) (err error) {
	if s.o.Guest {
		if s.hs, err = cgroup.Hierarchies(); err != nil {
			return err
		}
		_, there := kata.Networks("", nil)
		for _, path := range there {
			s.remember(before + filepath.Base(path))
		}
	}
	if s.places, err = OpenPlaces(s.o.Env); err != nil {
		return err
	}
	if s.letGo, err = Hold(s.o.Image, func() (bool, error) { return s.load(ctx) }); err != nil {
		return err
	}
	if s.o.Line != nil {
		s.pool, err = lane.NewPool(lane.Options{Lanes: s.o.Env.Lanes, Mounts: s.o.Program.Mounts, Env: s.o.Program.Env})
	}
	return err
}

// Prepare implements subject.Session.
func (s *Session) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	prepare := s.prepareLines
	if s.o.Call != nil {
		prepare = s.prepareCalls
	}
	err := s.ready(ctx, op)
	if err == nil {
		var b subject.Batch
		if b, err = prepare(ctx, op, lanes); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("target %s: %s: %w", s.o.Target, op, err)
}

// ready imports the image again if the engine lost it while the run had no container,
// as by docker image prune.
func (s *Session) ready(ctx context.Context, op subject.Op) error {
	if op != subject.RunPod && op != subject.Create && op != subject.Run {
		return nil
	}
	return Renew(s.o.Image, func() (bool, error) { return s.load(ctx) })
}

func (s *Session) prepareLines(_ context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	tasks := make([]batch.Task, len(lanes))
	for i, n := range lanes {
		c, err := s.hold(op, n)
		if err != nil {
			return nil, err
		}
		line, err := s.o.Line(op, c.Name, s.places.On(n))
		if err != nil {
			return nil, err
		}
		tasks[i] = batch.Task{Lane: n, Order: lane.Order{Kind: lane.Exec, Args: line, Timeout: s.o.Env.Timeout}}
	}
	b, err := batch.PrepareOrders(s.pool, tasks)
	if err != nil {
		return nil, err
	}
	b.Settle = func(ctx context.Context, samples []record.Sample) { s.Settle(ctx, op, samples) }
	return b, nil
}

func (s *Session) prepareCalls(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	calls, names := make([]batch.Call, len(lanes)), make([]string, len(lanes))
	for i, n := range lanes {
		c, err := s.hold(op, n)
		if err != nil {
			return nil, err
		}
		names[i] = c.Name
		do, shown, err := s.o.Call(ctx, op, c, s.places.On(n))
		if err != nil {
			return nil, err
		}
		calls[i] = batch.Call{Lane: n, Command: shown, Timeout: s.o.Env.Timeout, Do: do}
		if op == subject.Stop && !c.Afar {
			calls[i].Watch = c.Pid
		}
	}
	b, err := batch.PrepareCalls(calls)
	if err != nil {
		return nil, err
	}
	// Not before the release: a daemon that is idle for a few seconds may end
	// a connection, or itself.
	b.Warm = func(ctx context.Context) error {
		if err := s.o.Warm(ctx, len(lanes)); err != nil {
			return fmt.Errorf("target %s: %s: %w", s.o.Target, op, err)
		}
		return nil
	}
	b.Settle = func(ctx context.Context, samples []record.Sample) {
		s.Settle(ctx, op, samples)
		if s.o.Stamp != nil {
			s.o.Stamp(ctx, op, names, samples)
		}
	}
	return b, nil
}

// hold is the container on which an operation on a lane is done: a new one for
// those that begin with none, with nothing but its name; else the one that is
// there, as it was last seen.
func (s *Session) hold(op subject.Op, n int) (State, error) {
	c := &s.lanes[n]
	if slices.Contains(subject.PodOps, op) && !s.o.Pods {
		return State{}, fmt.Errorf("lane %d: %w", n, subject.ErrUnsupported)
	}
	if op == subject.Run || op == subject.RunPod || op == subject.Create && !s.o.Pods {
		*c = container{name: NewName(s.o.Env.RunID, n)}
	}
	if c.name == "" {
		return State{}, fmt.Errorf("lane %d: %w", n, subject.ErrUnsupported)
	}
	c.known.Name = c.name
	s.remember(c.name)
	s.reached(n)
	return c.known, nil
}

// KeptSandboxes is the file in a run's folder with the ids of sandboxes, of which Kata may leave
// something when the engine has forgotten them.
const KeptSandboxes = "sandboxes"

// remember notes ids of sandboxes, on the disk too: the run may be killed.
func (s *Session) remember(ids ...string) {
	if !s.o.Guest {
		return
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		was := s.sandboxes.ids[id]
		s.sandboxes.add(id)
		return id == "" || was
	})
	if len(ids) == 0 {
		return
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(s.o.Env.Dir), KeptSandboxes), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil { // what is not written, tare clean finds by its name
		_, _ = fmt.Fprintln(f, strings.Join(ids, "\n"))
		_ = f.Close()
	}
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
	f, quiet := NewFlight("", slices.Collect(maps.Keys(owed))...), Late(len(owed))
	if d, is := s.o.Driver.(Deaf); is && quiet > 0 {
		quiet = max(quiet, d.Deaf())
	}
	left, err = f.Clear(ctx, s.o.Driver, names, mine, quiet)
	maps.Copy(s.sandboxes.networks, f.networks)
	s.remember(f.known()...)
	switch {
	case err == nil:
		maps.DeleteFunc(s.late, func(name string, _ bool) bool { return owed[name] })
		err = s.removed(names)
	case left != nil:
		err = fmt.Errorf("%s still has %s: %w", s.o.Called, strings.Join(left, ", "), err)
	default:
		err = s.unsure(slices.Concat(names, slices.Collect(maps.Keys(owed))), err)
	}
	return left, err
}

func (s *Session) removed(names []string) error {
	if s.o.Removed == nil {
		return nil
	}
	return s.o.Removed(names)
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
		names, err := listed(ctx, s.o.Driver, all)
		if err != nil {
			err = s.unsure(held, err)
		} else if names = append(names, held...); len(names) > 0 {
			slices.Sort(names)
			_, err = s.clear(ctx, slices.Compact(names), all)
		}
		gone := err == nil
		errs = append(errs, err, s.letGo(func() error { return s.drop(ctx) }))
		s.left, err = s.sandboxes.Sweep(s.hs)
		errs = append(errs, err)
		if gone {
			clear(s.lanes)
			s.letGo = nil
		}
	}
	if s.pool != nil {
		s.pool.Close()
		s.pool = nil
	}
	if s.o.Closed != nil {
		errs = append(errs, s.o.Closed(ctx))
		s.o.Closed = nil
	}
	errs = append(errs, s.places.Close(), mounts.RemoveTree(s.o.Env.StateDir), mounts.RemoveTree(s.o.Env.Dir))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("target %s: close: %w", s.o.Target, err)
	}
	return nil
}

// Leaks are the cgroups that the runtime itself had left of its sandboxes when the
// session was closed, and that were removed then.
func (s *Session) Leaks() []string { return s.left }

// Emulated is how the sandboxes' VMs show that they are emulated, "" where they do not.
func (s *Session) Emulated() string { return s.emulated }

// lookAtVM looks at the VM of one sandbox, once: all of a target are alike.
func (s *Session) lookAtVM(lane int) {
	c := &s.lanes[lane].known
	if !s.o.Guest || s.looked || c.Afar {
		return
	}
	s.looked, s.emulated = true, kata.Emulated([]string{c.Name, c.ID, c.Pod.ID})
}

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

// Lane is the one that holds the container of a name, -1 where none does.
func (s *Session) Lane(name string) int {
	return slices.IndexFunc(s.lanes, func(c container) bool { return name != "" && c.name == name })
}

// Processes implements subject.HelperProcesses: the engine's own, and those that
// stand beside containers: monitors, shims, and the VMMs of those that run in one.
func (s *Session) Processes(context.Context) []subject.Process {
	var ids []string
	for _, c := range s.Held() {
		if !c.Afar {
			ids = append(ids, c.Name, c.ID, c.Pod.ID) // an id is empty until the container was seen, and mentions nothing then
		}
	}
	var daemons []int
	if s.o.Daemons != nil {
		daemons = s.o.Daemons()
	}
	var out []subject.Process
	for _, pid := range daemons {
		if pid > 0 {
			out = append(out, subject.Process{Role: record.RoleDaemon, Pid: pid})
		}
	}
	return append(out, kata.Beside(ids)...)
}
