// Package batch turns results of lanes into samples. Targets that run commands or system calls
// share it. It turns armed orders on a pool of lanes into a [subject.Batch], and each result
// into a sample or a failure by the same rules.
package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Task is an operation on a lane.
type Task struct {
	Lane  int
	Order lane.Order
	// SharedClock means that the workload's CLOCK_MONOTONIC is the host's, so the time in the
	// probe's line is usable.
	SharedClock bool
	// Seen is called first with every result, failed or not, to record what has to be cleaned up.
	// May be nil.
	Seen func(r *lane.Result)
	// Confirm checks after the release that the operation did what it reported. It may add
	// timestamps. It is called for each lane without a failure, one at a time, and is not timed.
	// May be nil.
	Confirm func(ctx context.Context, r *lane.Result, s *record.Sample) *record.Failure
}

// Batch implements subject.Batch on a pool of lanes.
type Batch struct {
	// Settle, if set, runs after the release and before Confirm, and checks all lanes with one
	// query. It may add timestamps and failures. It is not timed.
	Settle func(ctx context.Context, samples []record.Sample)

	edges
	armed *lane.Batch
	tasks []Task
	own   time.Duration
}

// edges implements subject.Hooks.
type edges struct{ begin, end func() }

func (e *edges) Hook(begin, end func()) { e.begin, e.end = begin, end }

func call(f func()) {
	if f != nil {
		f()
	}
}

// PrepareOrders arms the tasks. Their lanes then wait for the release.
func PrepareOrders(pool *lane.Pool, tasks []Task) (*Batch, error) {
	lanes := make([]int, len(tasks))
	orders := make([]lane.Order, len(tasks))
	for i, t := range tasks {
		lanes[i], orders[i] = t.Lane, t.Order
	}
	armed, err := pool.Prepare(lanes, orders)
	if err != nil {
		return nil, err
	}
	return &Batch{armed: armed, tasks: tasks}, nil
}

// Start implements subject.Batch. Callers must always call it, since it releases the lanes. It
// starts nothing if ctx has ended.
func (b *Batch) Start(ctx context.Context) (int64, []record.Sample, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, errors.Join(err, b.armed.Disarm())
	}
	call(b.begin)
	before := procs.OwnCPU()
	released, results, err := b.armed.Start(ctx)
	b.own = time.Duration(procs.OwnCPU() - before)
	call(b.end)
	for i := range results {
		b.own += results[i].OwnCPU
	}
	if err != nil {
		return released, nil, err
	}
	samples := make([]record.Sample, len(b.tasks))
	for i := range b.tasks {
		if b.tasks[i].Seen != nil {
			b.tasks[i].Seen(&results[i])
		}
		samples[i] = sample(&b.tasks[i], &results[i])
	}
	if b.Settle != nil {
		b.Settle(ctx, samples)
	}
	for i, t := range b.tasks {
		if t.Confirm != nil && samples[i].Failure == nil {
			samples[i].Failure = t.Confirm(ctx, &results[i], &samples[i])
		}
		describe(samples[i].Failure, t.Order)
	}
	unconfirmed(ctx, samples)
	return released, samples, nil
}

// unconfirmed replaces failures with interruptions if the checks were interrupted: an
// interrupted check proves nothing.
func unconfirmed(ctx context.Context, samples []record.Sample) {
	if ctx.Err() == nil {
		return
	}
	for i := range samples {
		if f := samples[i].Failure; f != nil && (f.Kind == record.FailState || f.Kind == record.FailWorkload || f.Kind == record.FailError) {
			f.Kind, f.Detail = record.FailInterrupted, "interrupted before the confirmation: "+f.Detail
		}
	}
}

// OwnCPU implements subject.Metered.
func (b *Batch) OwnCPU() int64 { return b.own.Nanoseconds() }

func sample(t *Task, r *lane.Result) record.Sample {
	s := record.Sample{
		Lane: t.Lane, Start: r.Start, Spawned: r.Spawned, Returned: r.Returned, Seen: r.Seen, Exited: r.Exited,
		UserCPU: r.UserCPU.Nanoseconds(), SysCPU: r.SysCPU.Nanoseconds(), MaxRSS: r.MaxRSS,
	}
	s.Failure = Failed(t.Order, r)
	if t.Order.Need&lane.NeedReady != 0 && s.Failure == nil {
		setFirst(t, r, &s)
	}
	return s
}

// setFirst sets the time of the workload's first instruction if its clock is the host's. That
// time must lie between the call and the arrival of the probe's line.
func setFirst(t *Task, r *lane.Result, s *record.Sample) {
	ns, ok := r.ProbeTime(t.Order.Token)
	if !ok {
		s.Failure = describe(&record.Failure{Kind: record.FailWorkload, Detail: "the workload's report could not be read", Output: r.Stdout}, t.Order)
		return
	}
	if t.SharedClock && ns >= s.Start && ns <= s.Seen {
		s.First = ns
		return
	}
	s.Guest = ns
}

// Broken returns the failure for an error of tare's own, nil for none.
func Broken(err error) *record.Failure {
	if err == nil {
		return nil
	}
	return &record.Failure{Kind: record.FailError, Detail: err.Error()}
}

// Failed returns the failure of a result, nil for a success.
func Failed(o lane.Order, r *lane.Result) *record.Failure {
	if e, ok := errors.AsType[*lane.Error](r.Err); ok {
		f := &record.Failure{Kind: kindOf(e), Detail: e.Error(), Output: output(r)}
		// A container that failed to start often says why.
		if r.Status.Exited() && r.Status.ExitStatus() != 0 {
			f.Exit = r.Status.ExitStatus()
		}
		return describe(f, o)
	}
	if o.Kind != lane.Exec || r.Status == 0 {
		return nil
	}
	f := Exited(r.Status)
	f.Output = output(r)
	return describe(f, o)
}

// Exited returns the failure of a command with a status other than 0.
func Exited(status unix.WaitStatus) *record.Failure {
	if status.Signaled() {
		n := int(status.Signal())
		return &record.Failure{Kind: record.FailExit, Exit: 128 + n, Detail: fmt.Sprintf("killed by signal %d", n)}
	}
	return &record.Failure{Kind: record.FailExit, Exit: status.ExitStatus(), Detail: fmt.Sprintf("exit status %d", status.ExitStatus())}
}

// CheckEnd returns the failure of a workload that did not end as expected after a signal. It
// returns nil if the lane did not see the end.
func CheckEnd(r *lane.Result, sent unix.Signal) *record.Failure {
	switch {
	case !r.WorkloadKnown:
		return nil
	case r.Workload.Signaled():
		return EndedWith(128+int(r.Workload.Signal()), true, sent)
	}
	return EndedWith(r.Workload.ExitStatus(), false, sent)
}

// EndedWith returns the failure of a workload that ended with an exit code after a signal was sent;
// 128+n means killed by signal n. The probe exits with 0 on the signal.
func EndedWith(exit int, killed bool, sent unix.Signal) *record.Failure {
	f := &record.Failure{Kind: record.FailWorkload, Exit: exit}
	switch {
	case exit == 0:
		return nil
	case killed:
		f.Detail = fmt.Sprintf("the workload was killed by signal %d instead of ending on %s", exit-128, procs.SignalName(sent))
	default:
		f.Detail = fmt.Sprintf("the workload ended with status %d instead of 0", exit)
	}
	return f
}

func kindOf(e *lane.Error) string {
	switch e.Step {
	case lane.StepTimeout:
		return record.FailTimeout
	case lane.StepAbort:
		return record.FailInterrupted
	case lane.StepExec:
		return record.FailExec
	case lane.StepGone, lane.StepKill, lane.StepWatch:
		return record.FailWorkload
	}
	return record.FailError
}

// describe adds the command line to a failure. The floor's orders have none.
func describe(f *record.Failure, o lane.Order) *record.Failure {
	if f != nil && f.Command == "" && (o.Kind == lane.Exec || o.Kind == lane.Spawn) {
		f.Command = o.String()
	}
	return f
}

// output returns the bounded output of a command: standard error, else standard output.
func output(r *lane.Result) string {
	return subject.Cut(cmp.Or(strings.TrimSpace(r.Stderr), strings.TrimSpace(r.Stdout)), 2048)
}
