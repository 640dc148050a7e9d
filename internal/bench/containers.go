package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// opened is a target in a run of its own.
type opened struct {
	run     *workspace.Run
	session subject.Session
	info    record.Target
}

var errNoRunc = errors.New("runc cannot be weighed here")

func (b *bench) open(lanes int) (*opened, error) {
	t, err := oci.New(b.ctx, "runc", "")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRunc, err)
	}
	run, err := workspace.New(workspace.DefaultRoots())
	if err != nil {
		return nil, err
	}
	data, state, err := run.Dirs("runc")
	if err != nil {
		return nil, errors.Join(err, run.Close())
	}
	s, err := t.Open(b.ctx, subject.Env{RunID: run.ID, Dir: data, StateDir: state, Lanes: lanes, Timeout: time.Minute, Limits: lifecycle.Defaults().Limits})
	if err != nil {
		return nil, errors.Join(err, run.Close())
	}
	return &opened{run: run, session: s, info: t.Info()}, nil
}

func (o *opened) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(o.session.Close(ctx), o.run.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// containers compares tare's timing of `runc run` with the bare loop's of the
// same command line: a small script's worth of clean-up between them is not
// timed on either side.
func (b *bench) containers() error {
	defer lane.Settle()() // before the pool is made
	o, err := b.open(1)
	if errors.Is(err, errNoRunc) {
		fmt.Printf("runc run: left out: %v\n\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer o.close()
	bundle, err := b.foreignBundle(o)
	if err != nil {
		return err
	}
	runc := o.info.Path
	_, root, err := o.run.Dirs("bare")
	if err != nil {
		return err
	}
	loopPath := filepath.Join(b.dir, "loop")
	bare := func(id string) (side, func(), error) {
		l, err := startLoop(loopPath, "vfork", runc, "--root", root, "run", "--detach", "--bundle", bundle, "--pid-file", filepath.Join(bundle, "pid"), id)
		if err != nil {
			return side{}, nil, err
		}
		return side{"bare loop", func(ctx context.Context) (float64, error) {
			ns, err := l.once()
			del := exec.CommandContext(ctx, runc, "--root", root, "delete", "--force", id)
			if out, delErr := del.CombinedOutput(); delErr != nil {
				return 0, fmt.Errorf("%s: %w: %s", del, delErr, out)
			}
			return ns, err
		}}, l.close, nil
	}
	timed := func(ctx context.Context) (float64, error) {
		armed, err := o.session.Prepare(ctx, subject.Run, []int{0})
		if err != nil {
			return 0, err
		}
		_, samples, err := armed.Start(ctx)
		if err != nil {
			return 0, err
		}
		if f := samples[0].Failure; f != nil {
			return 0, fmt.Errorf("runc run: %s: %s", f.Detail, f.Output)
		}
		d, _ := samples[0].Latency(record.StampReturned)
		return float64(d), o.session.Discard(ctx, []int{0})
	}
	one, closeOne, err := bare(o.run.ID + "-a")
	if err != nil {
		return err
	}
	defer closeOne()
	two, closeTwo, err := bare(o.run.ID + "-b")
	if err != nil {
		return err
	}
	defer closeTwo()
	two.name += " again (A/A)"
	sides := []side{one, two, {"tare", timed}, {"tare again (A/A)", timed}}
	values, err := interleave(b.ctx, b.runs, sides)
	if err != nil {
		return err
	}
	fmt.Printf("runc run --detach (%d rounds, interleaved)\n", b.runs)
	show(sides, values)
	fmt.Println()
	return nil
}

// foreignBundle is a bundle for the bare loop: the one that tare writes, with
// a cgroup of the run's.
func (b *bench) foreignBundle(o *opened) (string, error) {
	data, _, err := o.run.Dirs("bare")
	if err != nil {
		return "", err
	}
	return data, oci.WriteBundle(data, o.run.ID, lifecycle.Defaults().Limits)
}

// batch tells how far apart a hundred lanes start, and what tare uses.
func (b *bench) batch() error {
	const lanes = 100
	o, err := b.open(lanes)
	if errors.Is(err, errNoRunc) {
		fmt.Printf("100 lanes of runc run: left out: %v\n\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer o.close()
	all := make([]int, lanes)
	for i := range all {
		all[i] = i
	}
	var called, execd, shares, makespans []float64
	for range b.batches {
		armed, err := o.session.Prepare(b.ctx, subject.Run, all)
		if err != nil {
			return err
		}
		released, samples, err := armed.Start(b.ctx)
		if err != nil {
			return err
		}
		own := 0.0
		if m, ok := armed.(subject.Metered); ok {
			own = float64(m.OwnCPU())
		}
		if err := o.session.Discard(b.ctx, all); err != nil {
			return err
		}
		start, spawn, last := stat.Rounds{}, stat.Rounds{}, int64(0)
		for i, s := range samples {
			if s.Failure != nil {
				return fmt.Errorf("lane %d: %s: %s", s.Lane, s.Failure.Detail, s.Failure.Output)
			}
			start[i], spawn[i] = float64(s.Start), float64(s.Spawned)
			last = max(last, s.Returned)
		}
		makespan := float64(last - released)
		called, execd = append(called, spread(start)), append(execd, spread(spawn))
		makespans = append(makespans, makespan)
		shares = append(shares, own/(makespan*float64(cpus())))
	}
	c, e := stat.Quantiles(called, 0.5, 1), stat.Quantiles(execd, 0.5, 1)
	fmt.Printf("100 lanes of runc run on %d CPUs (%d batches), makespan %s\n", cpus(), b.batches, milli(stat.Quantiles(makespans, 0.5)[0]))
	fmt.Printf("  skew, first lane's fork to the last's:  median %s, worst %s; bound: 150 ms\n", milli(c[0]), milli(c[1]))
	fmt.Printf("  skew, first lane's exec to the last's:  median %s, worst %s\n", milli(e[0]), milli(e[1]))
	fmt.Printf("  tare's own CPU, of all CPUs' time in the batch: median %.2f %%; bound: 5 %%\n\n", 100*stat.Quantiles(shares, 0.5)[0])
	return nil
}

func spread(times stat.Rounds) float64 {
	q := stat.Quantiles(list(times), 0, 1)
	return q[1] - q[0]
}
