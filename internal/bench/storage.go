package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/storage"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/subject/host"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// What is asked of tare storage.
const (
	storagePairs    = 10
	storageSize     = 256 << 20
	storageOwnBound = 0.01                    // of a core while a job runs
	storageSetUp    = 1500 * time.Millisecond // of a cell, without layout and job
)

// storage sets fio's own figure as tare's host gets it beside that of plain fio
// on a file of the same size and disk, after the same caches were dropped; twice,
// so that it can be seen how far two equal runs differ here.
func (b *bench) storage() error {
	fio, err := hosttools.Fio(b.ctx)
	if err != nil {
		return err
	}
	run, err := workspace.New(workspace.DefaultRoots())
	if err != nil {
		return err
	}
	s := &storageBench{bench: b, run: run, fio: fio}
	fmt.Println("storage: a job of fio by tare, on the host, beside plain fio of the same job")
	var errs []error
	for _, rw := range []string{"randread", "write"} {
		if err := s.job(rw); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", rw, err))
		}
	}
	fmt.Println()
	return errors.Join(append(errs, run.Close())...)
}

type storageBench struct {
	*bench
	run   *workspace.Run
	fio   *hosttools.Program
	cells []record.Cell
}

// job compares the time that a MiB takes.
func (s *storageBench) job(rw string) error {
	j := storage.DefaultJobs([]string{rw}, []int64{512 << 10}, storage.ToolFio, storageSize, 1)[0]
	plain := func(ctx context.Context) (float64, error) { return s.plain(ctx, j) }
	sides := []side{{"plain fio", plain}, {"plain fio again (A/A)", plain}, {"fio by tare storage", func(ctx context.Context) (float64, error) { return s.byTare(ctx, j) }}}
	s.cells = nil
	values, err := interleave(s.ctx, storagePairs, sides)
	if err != nil {
		return err
	}
	fmt.Printf(" %s 512k, direct, %d MiB; time for a MiB as fio tells it\n", rw, storageSize>>20)
	show(sides, values)
	setUp, own := costs(s.cells)
	fmt.Printf("  set-up of a cell, without layout and job: median %s (bound %s)\n", milli(setUp), storageSetUp)
	fmt.Printf("  tare's own CPU while a job runs: median %.2f %% of a core (bound %.0f %%)\n", 100*own, 100*storageOwnBound)
	return errors.Join(slower(values[0], values[1], values[2]), beyond(setUp, own))
}

// costs are the medians of what a cell costs: ns of set-up, and tare's own part
// of a core while the job runs.
func costs(cells []record.Cell) (setUp, own float64) {
	var setUps, owns []float64
	for _, c := range cells {
		setUps = append(setUps, float64(c.SetUp))
		owns = append(owns, float64(c.Observed.OwnCPU)/float64(c.Ended-c.Begun))
	}
	return stat.Summarize(setUps, 0.95).Median, stat.Summarize(owns, 0.95).Median
}

// beyond says which bounds are not kept.
func beyond(setUp, own float64) error {
	var errs []error
	if setUp > float64(storageSetUp) {
		errs = append(errs, fmt.Errorf("the set-up of a cell takes %s: the bound is %s", milli(setUp), storageSetUp))
	}
	if own > storageOwnBound {
		errs = append(errs, fmt.Errorf("tare uses %.2f %% of a core while a job runs: the bound is %.0f %%", 100*own, 100*storageOwnBound))
	}
	return errors.Join(errs...)
}

// slower says that a job takes longer by tare, if that is more than what two
// equal runs may differ by here: the outer end of the A/A pair's interval.
func slower(plain, again, tare stat.Rounds) error {
	same, c := stat.Compare(plain, again), stat.Compare(plain, tare)
	if nothing := max(-same.PairedLo, same.PairedHi, 0); c.Different && c.Delta > nothing {
		return fmt.Errorf("fio takes %.1f %% longer by tare (p=%.3f), and two equal runs differ by %.1f %% at most", 100*c.Delta, c.P, 100*nothing)
	}
	return nil
}

// plain runs fio as one would by hand.
func (s *storageBench) plain(ctx context.Context, j storage.Job) (float64, error) {
	dir := filepath.Join(s.dir, "plain")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	at := tool.Place{Program: s.fio.Path, Dir: dir, Direct: true, Limit: time.Minute}
	files, err := tool.Files(resolved(j), at)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if _, err := s.onHost(ctx, probe.FillArgs(f.Size, f.Path)); err != nil {
			return 0, err
		}
	}
	if err := disk.DropCaches(); err != nil {
		return 0, err
	}
	if _, err := rest(ctx, dir); err != nil {
		return 0, err
	}
	args, err := tool.Command(resolved(j), at)
	if err != nil {
		return 0, err
	}
	e, err := s.onHost(ctx, args)
	if err != nil {
		return 0, err
	}
	claim, _, err := tool.Parse(j, e)
	if err != nil {
		return 0, err
	}
	return perMiB(claim), nil
}

func rest(ctx context.Context, dir string) (bool, error) {
	device, _, err := disk.Under(dir)
	if err != nil {
		return false, err
	}
	return disk.Rest(ctx, "", []string{device}, 3*time.Second), nil
}

// resolved is a job as a plan would have it run.
func resolved(j storage.Job) storage.Job {
	p := storage.Defaults()
	p.Jobs = []storage.Job{j}
	if _, jobs, err := p.Resolved(); err == nil {
		return jobs[0]
	}
	return j
}

// perMiB is in ns.
func perMiB(c record.Reported) float64 {
	return 1e9 * (1 << 20) / (c.Read.Bandwidth + c.Write.Bandwidth)
}

// onHost runs a command, which has to succeed.
func (s *storageBench) onHost(ctx context.Context, args []string) (subject.Executed, error) {
	args = slices.Clone(args)
	if args[0] == probe.Name {
		if err := probe.Install(s.dir); err != nil {
			return subject.Executed{}, err
		}
		args[0] = s.dir + probe.Name
	}
	e, err := child.Run(ctx, child.Command{Args: args, Env: lane.Environment(nil)})
	if err == nil && e.Exit != 0 {
		err = fmt.Errorf("%s: exit status %d: %s", e.Command, e.Exit, e.Stderr)
	}
	return e, err
}

// byTare is one round of a plan with one job.
func (s *storageBench) byTare(ctx context.Context, j storage.Job) (float64, error) {
	meter, err := snapshot.New()
	if err != nil {
		return 0, err
	}
	defer meter.Close()
	p := storage.Defaults()
	p.Jobs, p.Rounds, p.Ceiling, p.Volumes = []storage.Job{j}, 1, 0, []string{"bind"}
	rec, _, err := storagerun.Run(ctx, storagerun.Options{
		Targets: []subject.Target{host.New()}, Options: run.Options{RunID: s.run.ID, Dirs: s.run.Dirs},
		Plan: p, Meter: meter, Programs: map[string]string{storage.ToolFio: s.fio.Path}, OnHost: map[string]string{storage.ToolFio: s.fio.Path}, Run: s.onHost,
		Prepare: func(ctx context.Context, v storage.Volume, bytes int64) (*volume.Volume, error) {
			dir, _, err := s.run.Dirs("-volume")
			if err != nil {
				return nil, err
			}
			return volume.Prepare(ctx, v, volume.Asked{RunID: s.run.ID, Dir: dir, Bytes: bytes})
		},
	})
	if err != nil {
		return 0, err
	}
	if len(rec.Cells) != 1 || rec.Cells[0].Reported == nil {
		return 0, fmt.Errorf("tare storage gave no figures: %+v", rec.Findings)
	}
	s.cells = append(s.cells, rec.Cells[0])
	return perMiB(*rec.Cells[0].Reported), nil
}
