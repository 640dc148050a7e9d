package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/instrument/startup"
	startuprun "github.com/tare-bench/tare/internal/instrument/startup/run"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/docker"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// What is asked of watching starts.
const (
	watchPairs = 30
	watchBound = 0.02 // CPU time of watching over that of the start
)

// starts sets watched starts beside those that are not watched, of which there
// are two in every round: how far those differ is what this machine makes of
// nothing.
func (b *bench) starts() error {
	fmt.Println("starts: watched and not, of the same rounds")
	runc, err := oci.New(b.ctx, ociRuntime, "")
	if err != nil {
		return err
	}
	err = b.watching(runc)
	refused := &refusal{}
	at := subject.Engine{Address: engines.Docker(refused).Host}
	if refused.why != "" {
		fmt.Printf("  docker/runc: left out: %s\n", refused.why)
		return err
	}
	behind, broken := docker.New(b.ctx, "docker/runc", ociRuntime, docker.ViaAPI, at)
	if broken == nil {
		broken = b.watching(behind)
	}
	fmt.Println()
	return errors.Join(err, broken)
}

// watching runs the plan twice over in every round: rounds without watching have
// a second half of their own.
func (b *bench) watching(t subject.Target) error {
	own, err := workspace.New(workspace.DefaultRoots())
	if err != nil {
		return err
	}
	defer func() {
		if err := own.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}()
	p := startup.Defaults()
	p.Rounds, p.Untraced, p.Warmup = watchPairs, true, 2
	defer lane.Settle()()
	rec, j, err := startuprun.Run(b.ctx, startuprun.Options{
		Plan: p, Targets: []subject.Target{t}, Options: run.Options{RunID: own.ID, Dirs: own.Dirs},
		Callers: procs.Own,
		Watch:   func() (startuprun.Watch, error) { return tracer.Open() },
	})
	if err != nil {
		return err
	}
	d := j.Targets[0]
	if d.Failed > 0 || !d.Watching.Known() {
		return fmt.Errorf("%s: %d starts failed: %+v", d.Target, d.Failed, d.Failure)
	}
	verdict := "no difference shown"
	if d.Different {
		verdict = "different"
	}
	fmt.Printf("  %-12s wall %s watched; watched/not %.3f [%.3f, %.3f]  %s\n", d.Target, milli(d.Wall.Value), d.Watching.Value, d.Watching.Lo, d.Watching.Hi, verdict)
	fmt.Printf("  %-12s not watched, odd rounds beside even ones (A/A): %s\n", "", halves(rec))
	fmt.Printf("  %-12s CPU of a start %s, of watching it %.2f %% of that (bound %.0f %%)\n", "", milli(d.CPU.Value), 100*d.WatchingCPU.Value, 100*watchBound)
	var errs []error
	if d.WatchingCPU.Value > watchBound {
		errs = append(errs, fmt.Errorf("%s: watching takes %.2f %% of a start's CPU time", d.Target, 100*d.WatchingCPU.Value))
	}
	if d.Different {
		errs = append(errs, fmt.Errorf("%s: watching shows: %s", d.Target, d.Why))
	}
	return errors.Join(errs...)
}

// halves compares starts that were not watched with each other.
func halves(rec *record.Record) string {
	var sides [2]stat.Rounds
	sides[0], sides[1] = stat.Rounds{}, stat.Rounds{}
	for _, s := range rec.Starts {
		if s.Method == record.MethodNone && s.Failure == nil {
			sides[s.Round%2][s.Round/2] = float64(s.Ended - s.Began)
		}
	}
	c := stat.Compare(sides[0], sides[1])
	return fmt.Sprintf("%+.1f %% [%+.1f, %+.1f]", 100*c.PairedDelta, 100*c.PairedLo, 100*c.PairedHi)
}

// traceCost is what being watched costs a process that does nothing.
func (b *bench) traceCost() error {
	fmt.Println("watch: processes that do nothing, one after the other")
	once := func(watched bool) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) {
			if watched {
				w, err := tracer.Open()
				if err != nil {
					return 0, err
				}
				defer func() { _ = w.Close() }()
			}
			begin := time.Now()
			for range 200 {
				p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
				if err != nil {
					return 0, err
				}
				if _, err := p.Wait(); err != nil {
					return 0, err
				}
			}
			return float64(time.Since(begin)) / 200, nil
		}
	}
	sides := []side{{"fork, exec and exit of true", once(false)}, {"the same again (A/A)", once(false)}, {"watched", once(true)}}
	values, err := interleave(b.ctx, watchPairs, sides)
	if err != nil {
		return err
	}
	show(sides, values)
	fmt.Println()
	return nil
}
