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
	"sync"
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

// Driver queries and cleans one engine, for one run. One goroutine at a time calls it; none
// of its methods is timed.
type Driver interface {
	// Look returns the states of containers. Unknown containers are absent and are not an
	// error.
	Look(ctx context.Context, names []string) (map[string]State, error)
	// Output returns the output of containers so far, as one text. Each container's name is
	// a word of its own output. An error that wraps ErrUnsupported means that the engine
	// keeps no output.
	Output(ctx context.Context, containers []State) (string, error)
	// List returns the run's containers in any state. It selects by name: a container may
	// not have its label yet.
	List(ctx context.Context) ([]string, error)
	// Remove removes containers by force. A missing one is not an error.
	Remove(ctx context.Context, names []string) error
	// Import loads the image and reports whether it was missing. made may be true with an
	// error.
	Import(ctx context.Context) (made bool, err error)
	// Drop removes an image. A missing one is not an error.
	Drop(ctx context.Context, ref string) error
	// Images returns the run's image names. An interrupted run did not record which
	// ones it had.
	Images(ctx context.Context) ([]string, error)
}

// Options of a session.
type Options struct {
	Target string // the target's name in errors
	Called string // the engine's name in errors: "podman"
	Driver Driver
	Env    subject.Env
	Image  string // key of image and engine for [Hold]
	Ref    string // the image's name
	Guest  bool   // the workload's clock is not the host's
	// Pods means that a lane holds a pod, with or without a container. The pod begins with
	// run or runp and ends with rmp.
	Pods bool
	// Lag is how long the engine may report a container as running after its reply that the
	// container has ended.
	Lag time.Duration
	// Call returns a function that performs an operation through the engine's API, and the
	// call as text. Warm opens connections for that many calls.
	Call func(ctx context.Context, op subject.Op, c State, place Place) (do func(context.Context) error, shown string, err error)
	Warm func(ctx context.Context, calls int) error
	// Stamp adds observations of the containers to the samples of calls, and the output of
	// those that failed. May be nil.
	Stamp func(ctx context.Context, op subject.Op, names []string, samples []record.Sample)
	// Line returns an operation as a command line, for sessions without Call. Program is
	// the command that they run.
	Line    func(op subject.Op, name string, place Place) ([]string, error)
	Program cli.Program
	// Commands run execs in containers; nil if the session implements that differently.
	Commands *Commands
	// OnHost reports whether containers share the engine's network.
	OnHost bool
	// Runtime is the required runtime in the engine's terms; "" for any.
	Runtime string
	// Monitored means that a monitor cleans up after each stopped container, as in podman.
	Monitored bool
	// PlainLog means that logs have no engine's format.
	PlainLog bool
	// Statistics returns the engine's usage figures by container id. Source is the command
	// that shows the same.
	Statistics func(ctx context.Context, containers []State) (map[string]Usage, error)
	Source     string
	// Daemons returns the engine's processes on this machine. May be nil.
	Daemons func() []int
	// Removed is called with the names of removed containers, Closed at the end. Each may be
	// nil.
	Removed func(names []string) error
	Closed  func(ctx context.Context) error
}

// Session is an open engine: the parts of a session that all engines have in common.
type Session struct {
	ClockCheck
	o     Options
	pool  *lane.Pool
	letGo func(func() error) error
	// loading is set after an abandoned load of the image.
	loading bool
	lanes   []container
	reach   []atomic.Pointer[subject.Reached] // by lane
	places  Places
	// late are the containers whose operation was cut off since the last clean-up, by name.
	// The engine may still be working on them.
	late map[string]bool
	// sandboxes are all sandboxes with a guest kernel, failed ones included. left is what
	// their runtime left behind.
	sandboxes *Flight
	left      []string
	hs        []cgroup.Hierarchy
	// emulated is the evidence that VMs are emulated, once vm has checked one.
	emulated string
	vm       sync.Once
}

// container is what a lane holds.
type container struct {
	name  string // "" for none
	known State  // last known
}

// Open imports the image and starts the lanes.
func Open(ctx context.Context, o Options) (*Session, error) {
	if o.Removed == nil {
		o.Removed = func([]string) error { return nil }
	}
	if o.Daemons == nil {
		o.Daemons = func() []int { return nil }
	}
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

// leftError is why something remains on the engine.
type leftError struct{ error }

// Left makes core/run keep the run for tare clean.
func (leftError) Left() {}

func (s *Session) open(ctx context.Context) (err error) {
	if s.o.Guest {
		if s.hs, err = cgroup.Hierarchies(); err != nil {
			return err
		}
		_, there := kata.Networks("", nil)
		for _, path := range there {
			s.remember(foreignPrefix + filepath.Base(path))
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

// ready imports the image again if it was removed while the run had no container, for example
// by docker image prune.
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
		if op == subject.Stop && !c.Remote {
			calls[i].Watch = c.Pid
		}
	}
	b, err := batch.PrepareCalls(calls)
	if err != nil {
		return nil, err
	}
	// Only right before the release: an idle daemon may close a connection, or exit, after a
	// few seconds.
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

// hold returns the container for an operation on a lane. For operations that create one it is
// a new container with only a name, else the existing one in its last known state.
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

// KeptSandboxes is the file in a run's folder with the ids of its sandboxes. Kata may leave
// something of them after the engine has forgotten them.
const KeptSandboxes = "sandboxes"

// remember records ids of sandboxes, also on disk, since the run may be killed.
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
	if err == nil { // tare clean finds the others by name
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
		return fmt.Errorf("target %s: remove the containers of the batch: %w", s.o.Target, err)
	}
	return nil
}

// clear removes containers of the session. For operations that were cut off it waits for
// their late effects.
func (s *Session) clear(ctx context.Context, names []string, mine func(string) bool) (left []string, err error) {
	owed := slices.DeleteFunc(slices.Collect(maps.Keys(s.late)), func(name string) bool { return !mine(name) })
	f, quiet := NewFlight("", owed...), Late(len(owed))
	if h, is := s.o.Driver.(CallHider); is && quiet > 0 {
		quiet = max(quiet, h.CallsHiddenFor())
	}
	left, err = f.Clear(ctx, s.o.Driver, names, mine, quiet)
	maps.Copy(s.sandboxes.networks, f.networks)
	s.remember(f.known()...)
	switch {
	case err == nil:
		maps.DeleteFunc(s.late, func(name string, _ bool) bool { return mine(name) })
		err = s.o.Removed(names)
	case left != nil:
		err = fmt.Errorf("%s still has %s: %w", s.o.Called, strings.Join(left, ", "), err)
	default:
		err = s.unknown(slices.Concat(names, owed), err)
	}
	return left, err
}

// unknown returns the error for containers whose removal could not be confirmed.
func (s *Session) unknown(names []string, err error) error {
	if len(names) == 0 {
		return err
	}
	slices.Sort(names)
	return fmt.Errorf("%s may still have %s: %w", s.o.Called, strings.Join(slices.Compact(names), ", "), err)
}

// Close implements subject.Session. It removes every container of the run that the engine
// lists, also late ones. Its error names those whose removal could not be confirmed.
func (s *Session) Close(ctx context.Context) error {
	var errs []error
	if s.letGo != nil { // nil: Open made nothing
		held := slices.Collect(maps.Keys(s.late))
		for _, c := range s.Held() {
			held = append(held, c.Name)
		}
		names, err := listMatching(ctx, s.o.Driver, anyName)
		if err != nil {
			err = s.unknown(held, err)
		} else if names = append(names, held...); len(names) > 0 {
			slices.Sort(names)
			_, err = s.clear(ctx, slices.Compact(names), anyName)
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
	s.pool.Close()
	s.pool = nil
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

// Leaks returns the cgroups that the runtime left of its sandboxes. Close removed them.
func (s *Session) Leaks() []string { return s.left }

// Emulated returns the evidence that the sandboxes' VMs are emulated, "" for none.
func (s *Session) Emulated() string { return s.emulated }

// lookAtVM checks the VM of one sandbox, once: all sandboxes of a target are alike.
func (s *Session) lookAtVM(lane int) {
	c := &s.lanes[lane].known
	if s.o.Guest && !c.Remote {
		s.vm.Do(func() { s.emulated = kata.Emulated([]string{c.Name, c.ID, c.Pod.ID}) })
	}
}

// Held returns the containers on the lanes, in their last known state.
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

// Lane returns the lane that holds a container, -1 for none.
func (s *Session) Lane(name string) int {
	return slices.IndexFunc(s.lanes, func(c container) bool { return name != "" && c.name == name })
}

// Processes implements subject.HelperProcesses: the engine's daemons, and the monitors, shims
// and VMMs of its containers.
func (s *Session) Processes(context.Context) []subject.Process {
	var ids []string
	for _, c := range s.Held() {
		if !c.Remote {
			ids = append(ids, c.Name, c.ID, c.Pod.ID) // ids are empty until the first look
		}
	}
	var out []subject.Process
	for _, pid := range s.o.Daemons() {
		if pid > 0 {
			out = append(out, subject.Process{Role: record.RoleDaemon, Pid: pid})
		}
	}
	return append(out, kata.Helpers(ids)...)
}
