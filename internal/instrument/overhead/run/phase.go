package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// phase does one phase on the sandboxes that are there, and records it.
func (v *visit) phase(ctx context.Context, p overhead.Phase) error {
	v.tell(p.Name, v.made)
	if p.Kind == overhead.PhaseIdle {
		return v.idle(ctx, p)
	}
	words, inside := terms.LoadCommand(v.options.Plan.URL)
	if p.Kind == overhead.PhaseLoad && !inside {
		return v.asked(ctx, p)
	}
	if _, ok := subject.As[subject.Executor](v.Target.Session); !ok {
		return v.skip(p, "this target cannot run a command in its sandboxes", "weigh it idle")
	}
	switch p.Kind {
	case overhead.PhaseFio:
		return v.fio(ctx, p)
	case overhead.PhaseLoad:
		return v.working(ctx, p, words, "")
	}
	return v.calibrate(ctx, p)
}

// skip says why a phase is left out, once a run.
func (v *visit) skip(p overhead.Phase, why, advice string) error {
	if v.Number > 0 {
		return nil
	}
	level := "error" // it was asked for
	if v.options.Plan.Missing == terms.MissingSkip {
		level = "warning"
	}
	return v.Finding(record.Finding{Code: finding.PhaseSkipped, Level: level, Target: v.Target.Info.Name,
		Message: fmt.Sprintf("phase %s was left out: %s", p.Name, why), Advice: advice})
}

// idle watches sandboxes that do nothing.
func (v *visit) idle(ctx context.Context, p overhead.Phase) error {
	settled := v.options.Meter.Settle(ctx, v.options.Plan.Settle)
	begin, stop, err := v.open(ctx, p, settled)
	if err != nil {
		return err
	}
	_ = machine.Sleep(ctx, v.options.Plan.Hold)
	return v.store(v.close(ctx, p, begin, stop, nil))
}

// open reads what a phase starts from, and begins to watch.
func (v *visit) open(ctx context.Context, p overhead.Phase, settled bool) (*record.Reading, func() record.Series, error) {
	engine, err := v.statistics(ctx) // first: asking costs the daemon CPU time
	if err != nil {
		return nil, nil, err
	}
	begin := v.read(ctx, p.Name, record.MomentBegin, false, settled)
	begin.Engine = engine
	if err := v.Line(begin); err != nil {
		return nil, nil, err
	}
	return &begin, v.options.Meter.Watch(&begin, v.options.Plan.Interval), nil
}

// close reads what a phase has come to. One that was interrupted has no end: it
// was not watched long enough.
func (v *visit) close(ctx context.Context, p overhead.Phase, begin *record.Reading, stop func() record.Series, work *record.Work) (*record.Reading, *record.Series, error) {
	s := stop()
	if ctx.Err() != nil {
		return nil, nil, nil
	}
	end := v.read(ctx, p.Name, record.MomentEnd, true, begin.Settled)
	var err error
	if end.Engine, err = v.statistics(ctx); err != nil || ctx.Err() != nil {
		return nil, nil, err
	}
	end.Work = work
	v.learn(&end)
	s.Round, s.Target, s.Phase, s.Sandboxes = v.Number, v.Target.Info.Name, p.Name, v.made
	return &end, &s, nil
}

// store records the end of a phase, with what was sampled in it.
func (v *visit) store(end *record.Reading, s *record.Series, err error) error {
	if err != nil || end == nil {
		return err
	}
	return errors.Join(v.Line(*s), v.Line(*end))
}

// statistics are what the engine itself reports; none for a target that has no
// engine, and none where it does not answer, which is told once.
func (v *visit) statistics(ctx context.Context) ([]record.Statistic, error) {
	r, ok := subject.As[subject.Reporter](v.Target.Session)
	if !ok {
		return nil, nil
	}
	asking, cancel := context.WithTimeout(ctx, v.options.Plan.Timeout)
	defer cancel()
	s, err := r.Statistics(asking)
	for i := range s {
		s[i].Time = cmp.Or(s[i].Time, machine.Now())
	}
	if err == nil || ctx.Err() != nil || v.silent[v.Target.Info.Name] {
		return s, nil
	}
	v.silent[v.Target.Info.Name] = true
	return s, v.Finding(record.Finding{Code: finding.EngineSilent, Level: "warning", Target: v.Target.Info.Name,
		Message: "the engine does not give all of its own statistics: " + err.Error(), Advice: "what tare read itself does not depend on them"})
}

// The times around a calibrating load: ramp is what filling or starting takes at
// most, margin what reading takes while the load still has to stand.
const (
	ramp       = time.Second
	fillPerSec = 256 << 20 // bytes; an emulated CPU fills no faster
	margin     = 2 * time.Second
)

// calibrate watches a load of known size. It is recorded once the load has ended
// and said that it did what it was told: one that ended early, or never began,
// gives no figures.
func (v *visit) calibrate(ctx context.Context, p overhead.Phase) error {
	before := v.host(ctx)
	if float64(p.Bytes)*float64(v.made) > maxOfRoom*float64(before.Available) {
		return v.skip(p, fmt.Sprintf("%d times %d MiB are more than 80 %% of the %d MiB that are available", v.made, p.Bytes>>20, before.Available>>20),
			"hold less, or use a node with more memory")
	}
	lead := ramp
	if p.Kind == overhead.PhaseHold {
		lead += time.Duration(float64(p.Bytes) / fillPerSec * float64(time.Second))
	}
	d := lead + v.options.Plan.Settle + v.options.Plan.Hold + margin
	work := &record.Work{}
	args := probe.HoldArgs(p.Bytes, d)
	work.Hold = p.Bytes
	if p.Kind == overhead.PhaseSpin {
		args = probe.SpinArgs(p.CPUs, d)
		work.Hold, work.Spin = 0, p.CPUs
	}
	job := v.start(ctx, args, d+v.options.Plan.Timeout)
	work.Begun, work.Command = job.begun, lane.Quote(args)
	defer job.wait()
	_ = machine.Sleep(ctx, lead)
	wait := v.options.Plan.Settle
	if p.Kind == overhead.PhaseHold {
		wait -= v.rise(ctx, job, before.Used()+p.Bytes*int64(v.made)*9/10, wait/2)
	}
	settled := v.options.Meter.Settle(ctx, wait)
	begun := machine.Now()
	begin, stop, err := v.open(ctx, p, settled)
	if err != nil {
		job.cancel()
		return err
	}
	_ = machine.Sleep(ctx, v.options.Plan.Hold)
	end, s, err := v.close(ctx, p, begin, stop, work)
	ended := int(job.ended.Load())
	if ctx.Err() != nil {
		job.cancel()
	}
	job.wait()
	if end != nil {
		end.Failure = job.failure()
		if end.Failure == nil {
			end.Failure = stood(job, p, ended, begun, work)
		}
	}
	return v.store(end, s, err)
}

// rise waits until the node has so much in use, at most for a time and while no load has
// ended, and tells how long that took: on a crowded machine a load may not have begun when it would be full on an
// idle one, and a node on which nothing has changed yet looks like one that has settled.
// What a VM holds may have been the node's loss before.
func (v *visit) rise(ctx context.Context, l *command, used int64, most time.Duration) time.Duration {
	begun := machine.Now()
	for {
		host, took := v.host(ctx), time.Duration(machine.Now()-begun)
		if host.Used() >= used || took >= most || l.ended.Load() > 0 || machine.Sleep(ctx, 50*time.Millisecond) != nil {
			return min(took, most)
		}
	}
}

// stood says whether loads of known size stood for all of the time in which they
// were watched, by what they say themselves: since their clocks need not be the
// node's, it counts back from when their end was seen here, which is later than it was.
func stood(l *command, p overhead.Phase, ended int, begun int64, work *record.Work) *record.Failure {
	if ended > 0 {
		return &record.Failure{Kind: record.FailWorkload, Detail: fmt.Sprintf("%d of %d loads ended before they were measured", ended, len(l.results))}
	}
	for _, r := range l.results {
		var err error
		var stands time.Duration
		if p.Kind == overhead.PhaseSpin {
			var spun probe.Spun
			if spun, err = probe.ParseSpun(r.Output); err == nil && spun.Wall > 0 {
				work.Spun += spun.CPU.Seconds() / spun.Wall.Seconds() / float64(len(l.results))
			}
			stands = spun.Wall
		} else {
			var held probe.Held
			held, err = probe.ParseHeld(r.Output)
			stands = held.Held
		}
		if late := time.Duration(r.ended - stands.Nanoseconds() - begun); err == nil && late > 0 {
			err = fmt.Errorf("it may have stood only %v after it was first looked at; give it more time with --settle", late)
		}
		if err != nil {
			return &record.Failure{Kind: record.FailWorkload, Detail: "the load did not do as it was told: " + err.Error(), Command: r.Command, Output: r.Said()}
		}
	}
	return nil
}

// fio watches fio until it ends in every sandbox.
func (v *visit) fio(ctx context.Context, p overhead.Phase) error {
	if v.options.Free != nil {
		free, err := v.options.Free()
		if need := p.Bytes * int64(v.made); err == nil && need > free*9/10 {
			return v.skip(p, fmt.Sprintf("%d files of %d MiB do not fit in 90 %% of the %d MiB that are free on the disk", v.made, p.Bytes>>20, free>>20),
				"give tare a larger disk (TARE_DATA_DIR), or use smaller phases")
		}
	}
	return v.working(ctx, p, fioArgs(v.options.FioPath, p), v.options.FioVersion)
}

// working watches a command until it ends in every sandbox.
func (v *visit) working(ctx context.Context, p overhead.Phase, args []string, version string) error {
	settled := v.options.Meter.Settle(ctx, v.options.Plan.Settle)
	begin, stop, err := v.open(ctx, p, settled)
	if err != nil {
		return err
	}
	job := v.start(ctx, args, v.options.Plan.Patience)
	job.wait()
	work := &record.Work{Command: lane.Quote(args), Begun: job.begun, Ended: machine.Now(), Version: version}
	for _, r := range job.results {
		work.CPU += r.CPU
	}
	end, s, err := v.close(ctx, p, begin, stop, work)
	if end != nil {
		end.Failure = job.failure()
	}
	return v.store(end, s, err)
}

// fioArgs is the command of the published report, on a file of the sandbox's own.
func fioArgs(path string, p overhead.Phase) []string {
	return []string{path, "--filename=" + subject.VolumePath + "/" + fioFile, "--direct=1", "--iodepth=1", "--thread",
		"--rw=randwrite", "--ioengine=psync", "--bs=512k", "--size=" + p.Name, "--numjobs=" + strconv.Itoa(overhead.FioJobs), "--group_reporting", "--name=randwrite"}
}

// fioFile is what fio writes, in the sandbox's own folder.
const fioFile = "randwrite"

// command is one that runs in every sandbox.
type command struct {
	begun   int64
	cancel  context.CancelFunc
	done    sync.WaitGroup
	ended   atomic.Int32
	results []result
}

type result struct {
	subject.Executed
	ended int64 // when that was seen
	err   error
}

// start runs a command in every sandbox at once.
func (v *visit) start(ctx context.Context, args []string, patience time.Duration) *command {
	l := &command{begun: machine.Now(), results: make([]result, v.made)}
	executor, _ := subject.As[subject.Executor](v.Target.Session)
	var bounded context.Context
	bounded, l.cancel = context.WithTimeout(ctx, patience)
	for n := range v.made {
		l.done.Go(func() {
			e, err := executor.Exec(bounded, n, args)
			l.results[n] = result{e, machine.Now(), err}
			l.ended.Add(1)
		})
	}
	return l
}

func (l *command) wait() {
	l.done.Wait()
	l.cancel()
}

// failure is the first of the loads' that came to nothing. All have ended.
func (l *command) failure() *record.Failure {
	for _, r := range l.results {
		switch {
		case r.err != nil:
			kind := record.FailError
			if errors.Is(r.err, context.DeadlineExceeded) {
				kind = record.FailTimeout
			}
			return &record.Failure{Kind: kind, Detail: r.err.Error(), Command: r.Command, Output: r.Said()}
		case r.Exit != 0:
			return &record.Failure{Kind: record.FailExit, Exit: r.Exit, Detail: fmt.Sprintf("exit status %d", r.Exit), Command: r.Command, Output: r.Said()}
		}
	}
	return nil
}
