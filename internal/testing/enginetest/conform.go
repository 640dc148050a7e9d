package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// Case is one runtime behind one engine with one access method.
type Case struct {
	Name   string
	Target func(t *testing.T) subject.Target
	Left   func(t *testing.T) []string // objects on the engine that a run may leave behind
	Source string                      // expected source of its statistics
	// GoesOn reports whether an abandoned command in a guest is reported as still
	// running.
	GoesOn bool
	// Swept is how many lines a clean-up reports for a killed run with two containers.
	Swept int
	// Pods reports whether containers run in pods.
	Pods bool
	// OnHost reports whether workloads are plain processes of the host.
	OnHost bool
	// Known reports whether another case checks the engine itself completely. Only claims
	// that depend on the runtime are then checked.
	Known bool
}

// life returns the operations on a lane in order, followed by run.
func (c Case) life() []subject.Op {
	if c.Pods {
		return subject.Ops
	}
	return subject.ContainerOps
}

// Conforms checks the contract of all engines, for any engine and access method.
func Conforms(t *testing.T, cases ...Case) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if !c.Known {
				t.Run("a life on several lanes is stamped and leaves nothing", func(t *testing.T) { c.lives(t, Lanes) })
			}
			t.Run("a life on one lane is stamped and leaves nothing", func(t *testing.T) { c.lives(t, 1) })
			t.Run("commands run in its containers and are seen", c.inside)
			t.Run("a block device is read and written", c.device)
			if c.Known {
				return
			}
			t.Run("a tmpfs is the container's own and as large as asked for, and limits are those of the cgroup", c.tmpfs)
			t.Run("a folder of the root file system goes with the container", c.rootfs)
			t.Run("an interrupted batch leaves nothing", c.interrupted)
			t.Run("only what a killed run left is found and removed", c.killed)
			t.Run("a run that ends leaves other runs their image, and the last takes it", c.shared)
		})
	}
}

var runs atomic.Int64

// Environment returns the environment of a new run.
func Environment(t *testing.T, lanes int) subject.Env {
	t.Helper()
	dir := t.TempDir()
	env := subject.Env{
		RunID: fmt.Sprintf("t%d%d", os.Getpid(), runs.Add(1)), Dir: filepath.Join(dir, "disk"), StateDir: filepath.Join(dir, "run"),
		Lanes: lanes, Timeout: 2 * time.Minute, Limits: subject.DefaultLimits,
	}
	must.OK(t, errors.Join(os.Mkdir(env.Dir, 0o700), os.Mkdir(env.StateDir, 0o700)))
	t.Cleanup(func() { // runs last: the session leaves the run's own group to its caller
		hs, err := cgroup.Hierarchies()
		if err == nil {
			err = cgroup.Remove(hs, cgroup.Prefix+env.RunID)
		}
		must.OK(t, err)
	})
	return env
}

// Open opens a target and closes it at the end of the test.
func Open(t *testing.T, target subject.Target, env subject.Env) subject.Session {
	t.Helper()
	s := must.Get(target.Open(t.Context(), env))(t)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// open is like Open and checks that nothing is left after the close.
func (c Case) open(t *testing.T, env subject.Env) subject.Session {
	t.Helper()
	t.Cleanup(func() { c.nothingLeft(t) })
	return Open(t, c.Target(t), env)
}

func (c Case) nothingLeft(t *testing.T) {
	t.Helper()
	if left := c.Left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// UpTo returns the lanes 0 to n-1.
func UpTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Do performs an operation on n lanes.
func Do(t *testing.T, s subject.Session, op subject.Op, n int) []record.Sample {
	t.Helper()
	b := must.Get(s.Prepare(t.Context(), op, UpTo(n)))(t)
	released, samples, err := b.Start(t.Context())
	if err != nil || len(samples) != n {
		t.Fatalf("%s: %d samples of %d lanes, %v", op, len(samples), n, err)
	}
	for _, x := range samples {
		if x.Start != 0 && x.Start < released {
			t.Errorf("%s: lane %d began before the release", op, x.Lane)
		}
	}
	return samples
}

// Must is like Do and ends the test if a lane fails.
func Must(t *testing.T, s subject.Session, op subject.Op, n int) []record.Sample {
	t.Helper()
	samples := Do(t, s, op, n)
	for _, x := range samples {
		if x.Failure != nil {
			t.Fatalf("%s on lane %d: %+v", op, x.Lane, *x.Failure)
		}
		if x.Start == 0 || x.Returned <= x.Start {
			t.Fatalf("%s on lane %d has no latency: %+v", op, x.Lane, x)
		}
	}
	return samples
}

// Lanes is the number of concurrent lanes: more than CPUs, and no more than necessary.
const Lanes = 6

func (c Case) lives(t *testing.T, lanes int) {
	target := c.Target(t)
	s := c.open(t, Environment(t, lanes))
	for _, op := range c.life() {
		began := time.Now()
		samples := Must(t, s, op, lanes)
		t.Logf("%-6s %3d lanes, with confirmation %v", op, lanes, time.Since(began).Round(time.Millisecond))
		for _, x := range samples {
			Stamped(t, target, op, x)
		}
		if op == subject.Start {
			beside := map[record.Role]int{}
			for _, p := range s.(subject.HelperProcesses).Processes(t.Context()) {
				beside[p.Role]++
			}
			// A pod's sandbox container may have its own monitor.
			if n := beside[record.RoleMonitor] + beside[record.RoleShim]; n != lanes && !(c.Pods && n == 2*lanes) || beside[record.RoleDaemon] > 2 {
				t.Errorf("beside %d containers there are %v", lanes, beside)
			}
		}
	}
	must.OK(t, s.Discard(t.Context(), UpTo(lanes)))
}

// Stamped checks stamps that only some operations have: the workload's first instruction
// and its exit.
func Stamped(t *testing.T, target subject.Target, op subject.Op, x record.Sample) {
	t.Helper()
	begins, host := op == subject.Start || op == subject.Run, target.Info().Clock == "host"
	if (x.First != 0) != (begins && host) || (x.Guest != 0) != (begins && !host) {
		t.Errorf("%s: first %d, guest %d", op, x.First, x.Guest)
	}
	if x.First != 0 && x.First <= x.Start || x.Exited != 0 && (op != subject.Stop || x.Exited < x.Start || x.Exited > machine.Now()) {
		t.Errorf("%s: began %d, first %d, exited %d", op, x.Start, x.First, x.Exited)
	}
}

func (c Case) inside(t *testing.T) {
	env := Environment(t, 2)
	env.Limits = subject.Limits{}
	env.Workload = subject.Workload{Files: Shell(t), Volume: filepath.Join(t.TempDir(), "volume")}
	t.Cleanup(func() {
		if left, _ := os.ReadDir(env.Workload.Volume); len(left) > 0 {
			t.Errorf("left in the volume: %v", left)
		}
	})
	s := c.open(t, env)
	if _, err := s.(subject.Executor).Exec(t.Context(), 0, []string{"/probe"}); err == nil {
		t.Error("a command ran without a container")
	}
	Must(t, s, subject.Run, 2)
	c.sandboxes(t, s, []int{0, 1})
	statistics(t, s, c.Source)
	c.Limited(t, s, env.Limits)
	c.Executes(t, s, env.Workload.Volume)
	switch guest := c.Target(t).Info().Clock == "guest"; {
	case !guest:
		isEnded(t, s, env.Workload.Volume)
	case c.GoesOn:
		saysThatItGoesOn(t, s, env.Workload.Volume)
	}
}

func (c Case) tmpfs(t *testing.T) {
	env := Environment(t, 2)
	env.Workload.Tmpfs = 12 << 20
	env.Limits = subject.Limits{Memory: 64 << 20, Pids: 100, CPUShares: 512, CPU: 1.5}
	s := c.open(t, env)
	Must(t, s, subject.Run, 2)
	c.Limited(t, s, env.Limits)
	Tmpfs(t, s, 12<<20)
	if c.Target(t).Info().Clock == "host" {
		executable(t, s)
	}
}

func (c Case) rootfs(t *testing.T) {
	env := Environment(t, 2)
	env.Limits = subject.Limits{CPU: 0.5} // no other limits
	s := c.open(t, env)
	Must(t, s, subject.Run, 2)
	c.Limited(t, s, env.Limits)
	RootFS(t, s, func() {
		must.OK(t, s.Discard(t.Context(), []int{0}))
		Must(t, s, subject.Run, 1)
	})
}

func (c Case) device(t *testing.T) {
	link, node := Loop(t, 4<<20)
	env := Environment(t, 2)
	env.Workload.Device = link
	if target := c.Target(t); target.Info().Clock == "guest" {
		if _, err := target.Open(t.Context(), env); !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), "gVisor") {
			t.Error(err)
		}
		return
	}
	s := c.open(t, env)
	Must(t, s, subject.Run, 2)
	Device(t, s, node)
}

func (c Case) interrupted(t *testing.T) {
	s := c.open(t, Environment(t, Lanes))
	b := must.Get(s.Prepare(t.Context(), subject.Run, UpTo(Lanes)))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.(subject.Hooks).Hook(func() { time.AfterFunc(20*time.Millisecond, cancel) }, func() {}) // after the release
	_, samples, err := b.Start(ctx)
	must.OK(t, err)
	if !slices.ContainsFunc(samples, func(x record.Sample) bool { return x.Failure != nil && x.Failure.Kind == record.FailInterrupted }) {
		t.Errorf("nothing was interrupted: %+v", samples)
	}
	must.OK(t, s.Discard(t.Context(), UpTo(Lanes)))
}

func (c Case) killed(t *testing.T) {
	env := Environment(t, 2)
	env.Workload.Files = Shell(t) // an image of its own
	s := c.open(t, env)
	Must(t, s, subject.Run, 2)
	cleaner := c.Target(t).(subject.Cleaner)
	if found, err := cleaner.Clean(t.Context(), "another", false); err != nil || len(found) != 0 {
		t.Errorf("another run's: %q, %v", found, err)
	}
	beside := s.(subject.HelperProcesses).Processes(t.Context())
	var first []string
	for _, dry := range []bool{true, false} {
		found, err := cleaner.Clean(t.Context(), env.RunID, dry)
		if err != nil || len(found) != c.Swept || !strings.HasPrefix(found[0], c.thing()+" tare-"+env.RunID) || first != nil && !slices.Equal(found, first) {
			t.Errorf("dry %v: %q, %v", dry, found, err)
		}
		first = found
	}
	for _, p := range beside {
		if p.Role != record.RoleDaemon && engine.Alive(p.Pid) {
			t.Errorf("the %s %d of what was removed is still there", p.Role, p.Pid)
		}
	}
	c.nothingLeft(t)
	Must(t, s, c.life()[0], 2) // the image is imported again for a run that continues
}

// shared has several runs use one image on one engine, as two users would. A run may end
// between another's image lookup and its first container.
func (c Case) shared(t *testing.T) {
	t.Cleanup(func() { c.nothingLeft(t) })
	target := c.Target(t)
	cleaner, first := target.(subject.Cleaner), c.life()[0]
	clean := func(env subject.Env) {
		t.Helper()
		if _, err := cleaner.Clean(t.Context(), env.RunID, false); err != nil {
			t.Error(err)
		}
	}
	for name, end := range map[string]func(env subject.Env, s subject.Session){
		"by itself":  func(_ subject.Env, s subject.Session) { must.OK(t, s.Close(t.Context())) },
		"by a clean": func(env subject.Env, _ subject.Session) { clean(env) },
	} {
		ended := [2]subject.Env{Environment(t, 1), Environment(t, 1)}
		going := Open(t, target, Environment(t, 1)) // neither the first nor the last run with the image
		sessions := [2]subject.Session{Open(t, target, ended[0]), Open(t, target, ended[1])}
		b, err := going.Prepare(t.Context(), first, UpTo(1))
		must.OK(t, err)
		for i := range ended {
			end(ended[i], sessions[i])
		}
		_, samples, err := b.Start(t.Context())
		must.OK(t, err)
		for _, x := range samples {
			if x.Failure != nil {
				t.Errorf("after the end of others %s: %+v", name, x.Failure)
			}
		}
		must.OK(t, going.Close(t.Context()))
		c.nothingLeft(t)
	}
	killed := [2]subject.Env{Environment(t, 1), Environment(t, 1)}
	for _, env := range killed {
		Must(t, Open(t, target, env), first, 1)
	}
	clean(killed[0])
	clean(killed[1])
	c.nothingLeft(t)
}

// thing returns the object on a lane as named in clean-up messages.
func (c Case) thing() string {
	if c.Pods {
		return "pod"
	}
	return "container"
}

// Dies checks the behaviour of an engine that is killed in the middle of a batch. Its
// lanes fail, and nothing afterwards hangs or claims to have removed anything. The
// session is unusable afterwards.
func Dies(t *testing.T, s subject.Session, pid int, name string) {
	t.Helper()
	const lanes = 10
	b := must.Get(s.Prepare(t.Context(), subject.Run, UpTo(lanes)))(t)
	b.(subject.Hooks).Hook(func() { // right before the release: no lane can be done in that time
		time.AfterFunc(20*time.Millisecond, func() { _ = unix.Kill(pid, unix.SIGKILL) })
	}, func() {})
	_, samples, err := b.Start(t.Context())
	must.OK(t, err)
	for _, x := range samples {
		if f := x.Failure; f == nil || f.Kind != record.FailError || f.Command == "" {
			t.Errorf("%+v", f)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Discard(ctx, UpTo(lanes)); err == nil {
		t.Error("nothing could be removed, and no error says so")
	}
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("%v", err)
	}
	if ctx.Err() != nil {
		t.Error("it was given up only when the time was over")
	}
}
