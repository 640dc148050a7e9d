package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// phase performs one phase on the running sandboxes and records it.
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

// skip reports why a phase is skipped, once per run.
func (v *visit) skip(p overhead.Phase, why, advice string) error {
	which := [2]string{v.Target.Info.Name, p.Name}
	if v.skipped[which] {
		return nil
	}
	v.skipped[which] = true
	level := "error" // the phase was requested
	if v.options.Plan.Missing == terms.MissingSkip {
		level = "warning"
	}
	return v.Finding(record.Finding{Code: finding.PhaseSkipped, Level: level, Target: v.Target.Info.Name,
		Message: fmt.Sprintf("phase %s was left out: %s", p.Name, why), Advice: advice})
}

// idle measures sandboxes that do nothing.
func (v *visit) idle(ctx context.Context, p overhead.Phase) error {
	w, err := v.measure(ctx, p, v.settle(ctx), func() (*record.Work, *record.Failure) {
		_ = machine.Sleep(ctx, v.options.Plan.Hold)
		return nil, nil
	})
	return v.store(ctx, w, err)
}

// watched holds the readings of a phase. end is nil if the phase was interrupted before
// it had been watched long enough.
type watched struct {
	begin  record.Reading
	series record.Series
	end    *record.Reading
}

// measure takes the readings at the begin and at the end of a phase, and samples while load
// runs.
func (v *visit) measure(ctx context.Context, p overhead.Phase, settled bool, load func() (*record.Work, *record.Failure)) (*watched, error) {
	engine, err := v.statistics(ctx) // first: the query costs CPU time of the daemon
	if err != nil {
		return nil, err
	}
	w := &watched{begin: v.read(ctx, p.Name, record.MomentBegin, false, settled)}
	w.begin.Engine = engine
	stop := v.options.Meter.Watch(&w.begin, v.options.Plan.Interval)
	work, failure := load()
	w.series = stop()
	if ctx.Err() != nil {
		return w, nil
	}
	end := v.read(ctx, p.Name, record.MomentEnd, true, settled)
	if end.Engine, err = v.statistics(ctx); err != nil || ctx.Err() != nil {
		return w, err
	}
	end.Work, end.Failure = work, failure
	v.learn(&end)
	w.series.Round, w.series.Target, w.series.Phase, w.series.Sandboxes = v.Number, v.Target.Info.Name, p.Name, v.made
	w.end = &end
	return w, nil
}

// store records a completed phase. The phase fails if a sandbox ended.
func (v *visit) store(ctx context.Context, w *watched, err error) error {
	if err != nil || w.end == nil {
		return err
	}
	if over, first := subject.Over(ctx, v.Target.Session, lanes(0, v.made)); first != nil {
		first.Detail = fmt.Sprintf("%d of %d: %s", len(over), v.made, first.Detail)
		w.end.Failure = first
	} else if f := v.ended(ctx, w); f != nil {
		w.end.Failure = f
	}
	return errors.Join(v.Line(w.begin), v.Line(w.series), v.Line(*w.end))
}

// ended returns the failure of a phase in which a sandbox ended, or nil. It adds what
// the runtime or engine reports about the end. A sandbox without a known process
// counts as ended only if they report so.
func (v *visit) ended(ctx context.Context, w *watched) *record.Failure {
	f := ledger.Failed(&w.begin, w.end)
	var asked []int
	for _, e := range ledger.Ends(&w.begin, w.end) {
		asked = append(asked, e.Process.Lane)
	}
	for n := 0; f == nil && n < v.made; n++ {
		if !ledger.Lives(w.end, n) {
			asked = append(asked, n)
		}
	}
	at, can := subject.As[subject.Reachable](v.Target.Session)
	for _, n := range asked {
		if !can {
			break
		}
		end := at.Ended(ctx, n)
		if !end.Known {
			continue
		}
		if f == nil {
			f = &record.Failure{Kind: record.FailWorkload, Detail: fmt.Sprintf("sandbox %d of %d has ended", n+1, v.made)}
		}
		f.Detail += ": " + procs.HowEnded(end.Exit)
		if end.Why != "" {
			f.Detail += ", " + end.Why
		}
		f.Exit, f.Output = end.Exit, end.Output
		break
	}
	return f
}

// statistics returns the engine's own statistics. There are none if the target has no
// engine or the engine does not answer. The latter is a finding, once per target.
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
		Message: "the engine does not report all of its statistics: " + err.Error(), Advice: "tare's own readings do not depend on them"})
}

// Times around a calibrating load. ramp is for starting it or filling memory; margin is
// for the readings while it still has to run. If a load reports that this was too
// short, it is repeated with more time, up to attempts.
const (
	ramp       = time.Second
	fillPerSec = 256 << 20 // bytes; an emulated CPU fills no faster
	margin     = 2 * time.Second
	attempts   = 3
)

// calibrate measures a load of known size. The phase is recorded after the load has
// ended and reported that it ran as requested. A load that ended early or never
// started gives no figures.
func (v *visit) calibrate(ctx context.Context, p overhead.Phase) error {
	if free := v.host(ctx).Available; float64(p.Bytes)*float64(v.made) > maxOfRoom*float64(free) {
		return v.skip(p, fmt.Sprintf("%d times %d MiB are more than 80 %% of the %d MiB that are available", v.made, p.Bytes>>20, free>>20),
			"hold less, or use a node with more memory")
	}
	lead, after := ramp, margin
	if p.Kind == overhead.PhaseHold {
		lead += time.Duration(float64(p.Bytes) / fillPerSec * float64(time.Second))
	}
	for left := attempts - 1; ; left-- {
		w, short, err := v.known(ctx, p, lead, after)
		if err != nil || short == 0 || left == 0 || ctx.Err() != nil {
			return v.store(ctx, w, err)
		}
		lead, after = lead+2*short, after+2*short
		v.tell(p.Name+" once more, with more time", v.made)
	}
}

// known measures a load of known size. lead is its time to start, and after is how
// long it must run beyond the measurement. The returned duration is how much time
// was lacking.
func (v *visit) known(ctx context.Context, p overhead.Phase, lead, after time.Duration) (*watched, time.Duration, error) {
	d := lead + v.options.Plan.Settle + v.options.Plan.Hold + after
	work := &record.Work{Hold: p.Bytes, Spin: p.CPUs}
	args := probe.HoldArgs(p.Bytes, d)
	if p.Kind == overhead.PhaseSpin {
		args = probe.SpinArgs(p.CPUs, d)
	}
	job := v.start(ctx, args, d+v.options.Plan.Timeout)
	work.Begun, work.Command = job.begun, lane.Quote(args)
	defer job.wait()
	_ = machine.Sleep(ctx, lead)
	settled := v.settle(ctx)
	begun := machine.Now()
	w, err := v.measure(ctx, p, settled, func() (*record.Work, *record.Failure) {
		_ = machine.Sleep(ctx, v.options.Plan.Hold)
		return work, nil
	})
	span := [2]int64{begun, machine.Now()}
	if err != nil || w.end == nil {
		job.cancel()
		return w, 0, err
	}
	job.wait()
	var short time.Duration
	if w.end.Failure = job.failure(); w.end.Failure == nil {
		w.end.Failure, short = stood(job, p, span, work)
	}
	return w, short, nil
}

// stood returns a failure unless the loads ran during the whole measurement. The returned
// duration is the largest part of the measurement that a load missed. It is based on the
// durations that the loads report, since their clocks may differ from the node's. These
// are counted back from the time when the end was seen here, which is later than the
// actual end.
func stood(l *command, p overhead.Phase, span [2]int64, work *record.Work) (*record.Failure, time.Duration) {
	var most time.Duration
	var failure *record.Failure
	fail := func(r *result, why string) {
		failure = &record.Failure{Kind: record.FailWorkload, Detail: "the load did not run as configured: " + why, Command: r.Command, Output: r.Said()}
	}
	for r := range ledger.Each(l.results) {
		stands, spun, err := said(p.Kind, r.Output)
		if err != nil {
			fail(r, err.Error())
			return failure, 0
		}
		work.Spun += spun / float64(len(l.results))
		if late := time.Duration(r.ended - stands.Nanoseconds() - span[0]); late > most {
			most = late
			fail(r, fmt.Sprintf("it may have become steady only %v after the first reading; allow more time with --settle", late))
		}
		if early := time.Duration(span[1] - r.ended); early > most {
			most = early
			fail(r, fmt.Sprintf("it ended %v before the last reading; allow more time with --settle", early))
		}
	}
	return failure, most
}

// said returns the duration and the CPU usage that a load reports.
func said(kind overhead.PhaseKind, output string) (stood time.Duration, cpus float64, err error) {
	if kind != overhead.PhaseSpin {
		held, err := probe.ParseHeld(output)
		return held.Held, 0, err
	}
	spun, err := probe.ParseSpun(output)
	if err == nil && spun.Wall > 0 {
		cpus = spun.CPU.Seconds() / spun.Wall.Seconds()
	}
	return spun.Wall, cpus, err
}

// fio measures until fio ends in every sandbox.
func (v *visit) fio(ctx context.Context, p overhead.Phase) error {
	free, err := v.options.Free()
	if need := p.Bytes * int64(v.made); err == nil && need > free*9/10 {
		return v.skip(p, fmt.Sprintf("%d files of %d MiB do not fit in 90 %% of the %d MiB that are free on the disk", v.made, p.Bytes>>20, free>>20),
			"use a larger disk (TARE_DATA_DIR), or smaller phases")
	}
	return v.working(ctx, p, fioArgs(v.options.FioPath, p), v.options.FioVersion)
}

// working measures until a command ends in every sandbox.
func (v *visit) working(ctx context.Context, p overhead.Phase, args []string, version string) error {
	w, err := v.measure(ctx, p, v.settle(ctx), func() (*record.Work, *record.Failure) {
		job := v.start(ctx, args, v.options.Plan.Patience)
		job.wait()
		work := &record.Work{Command: lane.Quote(args), Begun: job.begun, Ended: machine.Now(), Version: version}
		for _, r := range job.results {
			work.CPU += r.CPU
		}
		return work, job.failure()
	})
	return v.store(ctx, w, err)
}

// fioArgs returns the command of the published report, on a file of the sandbox.
func fioArgs(path string, p overhead.Phase) []string {
	return []string{path, "--filename=" + subject.VolumePath + "/" + fioFile, "--direct=1", "--iodepth=1", "--thread",
		"--rw=randwrite", "--ioengine=psync", "--bs=512k", "--size=" + p.Name, "--numjobs=" + strconv.Itoa(overhead.FioJobs), "--group_reporting", "--name=randwrite"}
}

// fioFile is the file that fio writes in the sandbox's own directory.
const fioFile = "randwrite"

// command is a command that runs in every sandbox.
type command struct {
	begun   int64
	cancel  context.CancelFunc
	done    sync.WaitGroup
	results []result
}

type result struct {
	subject.Executed
	ended int64 // when the end was seen
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
		})
	}
	return l
}

func (l *command) wait() {
	l.done.Wait()
	l.cancel()
}

// failure returns the first failure of the loads, or nil. All loads must have ended.
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
