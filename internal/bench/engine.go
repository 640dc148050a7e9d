package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/cri"
	"github.com/tare-bench/tare/internal/subject/docker"
	"github.com/tare-bench/tare/internal/workspace"
)

// ownBound is the most that tare may add to a call, skewBound how far apart a
// hundred calls may begin.
const (
	ownBound  = 100 * time.Microsecond
	skewBound = 10 * time.Millisecond
)

// driven is an engine that tare drives through an API.
type driven struct {
	name  string
	kind  string // which minimal client
	what  string // what that one is, in words
	start func(t engines.TB) subject.Engine
	open  func(ctx context.Context, name string, e subject.Engine) (subject.Target, error)
	life  []subject.Op // each is timed; what the last one leaves is discarded
	still []subject.Op // the last of them finds nothing to do when it is repeated; none if there is no such
	flock []subject.Op // what a hundred lanes do
}

var (
	containerLife = []subject.Op{subject.Create, subject.Start, subject.Stop, subject.Remove, subject.Run}
	podLife       = []subject.Op{subject.RunPod, subject.Create, subject.Start, subject.Stop, subject.Remove, subject.StopPod, subject.RemovePod, subject.Run}
	stopped       = []subject.Op{subject.Create, subject.Start, subject.Stop}
	stoppedInPod  = []subject.Op{subject.RunPod, subject.Create, subject.Start, subject.Stop}
	stoppedPod    = []subject.Op{subject.RunPod, subject.StopPod}
	barePods      = []subject.Op{subject.RunPod, subject.StopPod, subject.RemovePod}
)

var drivenEngines = []driven{
	{
		name: "docker", kind: "docker", what: "plain HTTP requests on one connection",
		start: func(t engines.TB) subject.Engine { return subject.Engine{Address: engines.Docker(t).Host} },
		open: func(ctx context.Context, name string, e subject.Engine) (subject.Target, error) {
			return docker.New(ctx, name, ociRuntime, docker.ViaAPI, e)
		},
		life: containerLife, still: stopped, flock: []subject.Op{subject.Create, subject.Remove},
	},
	{
		name: "containerd", kind: "containerd", what: "containerd's Go client, the same calls of it",
		start: func(t engines.TB) subject.Engine {
			return subject.Engine{Address: engines.Containerd(t, engines.V2).Address, Namespace: benchNamespace}
		},
		open: func(ctx context.Context, name string, e subject.Engine) (subject.Target, error) {
			return containerd.New(ctx, name, ociRuntime, "api", e)
		},
		life: containerLife,
	},
	{
		name: "cri+containerd", kind: "cri", what: "the same gRPC requests on one connection",
		start: func(t engines.TB) subject.Engine {
			return subject.Engine{Address: engines.Containerd(t, engines.V2).Address}
		},
		open: func(ctx context.Context, name string, e subject.Engine) (subject.Target, error) {
			return cri.New(ctx, name, "containerd", ociRuntime, e)
		},
		life: podLife, still: stoppedInPod, flock: barePods,
	},
	{
		name: "cri+cri-o", kind: "cri", what: "the same gRPC requests on one connection",
		start: func(t engines.TB) subject.Engine {
			d := engines.CRIO(t)
			return subject.Engine{Address: "unix://" + d.Socket, Command: d.Skopeo}
		},
		open: func(ctx context.Context, name string, e subject.Engine) (subject.Target, error) {
			return cri.New(ctx, name, "cri-o", ociRuntime, e)
		},
		// CRI-O writes a container's state to disk even when it has nothing to
		// stop; not so a pod's.
		life: podLife, still: stoppedPod, flock: barePods,
	},
}

const (
	ociRuntime     = "runc"
	benchNamespace = "tare-bench"
)

// refusal is an engines.TB that keeps why an engine was not started.
type refusal struct{ why string }

func (r *refusal) Helper() {}

// Fatalf ends the goroutine, as that of a test does.
func (r *refusal) Fatalf(format string, arguments ...any) {
	r.why = fmt.Sprintf(format, arguments...)
	runtime.Goexit()
}

// Skipf is the same here.
func (r *refusal) Skipf(format string, arguments ...any) { r.Fatalf(format, arguments...) }

func started(start func(t engines.TB) subject.Engine) (e subject.Engine, why string) {
	var r refusal
	done := make(chan struct{})
	go func() {
		defer close(done)
		e = start(&r)
	}()
	<-done
	return e, r.why
}

// engine compares tare with a minimal client behind one engine, which it starts
// and ends.
func (b *bench) engine(d driven) (err error) {
	e, why := started(d.start)
	defer func() { err = errors.Join(err, engines.Stop()) }()
	if why != "" {
		why, _, _ = strings.Cut(why, "\n")
		fmt.Printf("%s: left out: %s\n\n", d.name, why)
		return nil
	}
	t, err := d.open(b.ctx, d.name+"/"+ociRuntime, e)
	var not *subject.Unavailable
	if errors.As(err, &not) {
		fmt.Printf("%s: left out: %v\n\n", d.name, err)
		return nil
	}
	if err != nil {
		return err
	}
	run, err := workspace.New(workspace.DefaultRoots())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	info := t.Info()
	fmt.Printf("%s %s (%d rounds, interleaved), load average %s; the minimal client: %s\n", info.Name, info.Version, b.lives, load(), d.what)
	if err := b.lifeOf(d, t, e, run); err != nil {
		return err
	}
	if len(d.flock) > 0 && b.flocks > 0 {
		if err := b.flock(d, t, run); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

// openIn opens a target in a folder of the run.
func (b *bench) openIn(run *workspace.Run, t subject.Target, folder string, lanes int) (subject.Session, error) {
	data, state, err := run.Dirs(folder)
	if err != nil {
		return nil, err
	}
	return t.Open(b.ctx, subject.Env{RunID: run.ID, Dir: data, StateDir: state, Lanes: lanes, Timeout: time.Minute, Limits: lifecycle.Defaults().Limits})
}

func closeSession(s subject.Session) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	return s.Close(ctx)
}

// lifeOf compares every operation of a life.
func (b *bench) lifeOf(d driven, t subject.Target, e subject.Engine, run *workspace.Run) (err error) {
	s, err := b.openIn(run, t, "tare", 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSession(s)) }()
	sides := make([]contender, 4)
	for i, name := range []string{"loop", "again"} {
		folder := fmt.Sprint("loop-", i)
		data, _, err := run.Dirs(folder)
		if err != nil {
			return err
		}
		c, err := startClient(clientOrders{
			Kind: d.kind, Address: e.Address, Namespace: e.Namespace, API: t.Info().Config["api version"], Limits: lifecycle.Defaults().Limits,
			// Not the run's own id: tare's session would take what the
			// loop makes for its own, and remove it.
			RunID: fmt.Sprintf("l%s%d", run.ID, i), Dir: data, Group: cgroup.Prefix + run.ID + "/" + folder,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.close()) }()
		sides[i] = contender{name, c.do, c.discard}
	}
	for i, name := range []string{"tare", "again"} {
		sides[2+i] = contender{name, timedBy(s, i), func(ctx context.Context) error { return s.Discard(ctx, []int{i}) }}
	}
	values, err := lives(b.ctx, b.lives, d.life, sides)
	if err != nil {
		return err
	}
	heading(sides)
	for _, op := range d.life {
		row(string(op), values[op])
	}
	if len(d.still) == 0 {
		fmt.Printf("  no operation of %s finds nothing to do\n", d.name)
		return nil
	}
	repeated, err := b.repeat(d, sides)
	if err != nil {
		return err
	}
	row(string(d.still[len(d.still)-1])+"*", repeated)
	difference, _, _ := differences(repeated)
	fmt.Printf("  * of what is stopped, %d rounds: tare adds to a call %s; bound: %s\n", b.rounds, interval(difference), ownBound)
	return nil
}

// repeat times an operation that finds nothing to do.
func (b *bench) repeat(d driven, sides []contender) (values [][]float64, err error) {
	for _, s := range sides {
		for _, op := range d.still {
			if _, err := s.do(b.ctx, op); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.name, op, err)
			}
		}
	}
	last := d.still[len(d.still)-1]
	again, err := lives(b.ctx, b.rounds, []subject.Op{last}, keeping(sides))
	for _, s := range sides {
		err = errors.Join(err, s.discard(context.WithoutCancel(b.ctx)))
	}
	return again[last], err
}

// load is the load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
