package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Call is an operation on a lane: a call of an engine's API.
type Call struct {
	Lane    int
	Command string        // for display: "POST /containers/ID/start"
	Timeout time.Duration // of the call
	// Do makes the call. It needs no further preparation.
	Do func(ctx context.Context) error
	// Watch is a process whose exit gets a stamp, 0 for none. The operation ends when the call
	// returns, whether or not the process has ended.
	Watch int
}

// Refusal is the error of a call with its own record.Failure.
type Refusal struct{ record.Failure }

func (f *Refusal) Error() string { return f.Detail }

// Calls is a batch of calls. It implements subject.Batch and subject.Metered.
type Calls struct {
	// Settle is as in [Batch].
	Settle func(ctx context.Context, samples []record.Sample)
	// Warm, if set, runs just before the release and is not timed. A garbage collection precedes
	// it, so Warm opens connections and refills the caches that the collection emptied. Its error
	// fails the whole batch.
	Warm func(ctx context.Context) error

	edges
	calls    []Call
	gate     chan struct{}
	begun    atomic.Int32
	allBegun chan struct{}
	ctx      context.Context // of the calls; set at the release, nil without one
	answers  chan answer
	watch    *watch
	patience time.Duration
	own      time.Duration
}

// answer is the result of a call.
type answer struct {
	i               int
	start, returned int64
	err             error
}

// grace is the time for a cancelled call to return.
const grace = 5 * time.Second

// PrepareCalls starts a goroutine for each call, which waits for the release.
func PrepareCalls(calls []Call) (*Calls, error) {
	b := &Calls{calls: calls, gate: make(chan struct{}), allBegun: make(chan struct{}), answers: make(chan answer, len(calls))}
	pids := make([]int, len(calls))
	for i, c := range calls {
		pids[i] = c.Watch
		b.patience = max(b.patience, c.Timeout)
	}
	var err error
	if b.watch, err = newWatch(pids); err != nil {
		return nil, err
	}
	waiting := make(chan struct{})
	for i := range calls {
		go b.do(i, waiting)
	}
	for range calls {
		<-waiting
	}
	return b, nil
}

func (b *Calls) do(i int, waiting chan<- struct{}) {
	waiting <- struct{}{}
	<-b.gate
	if b.ctx == nil {
		return
	}
	a := answer{i: i, start: machine.Now()}
	if n := len(b.calls); n > 1 && b.begun.Add(1) == int32(n) {
		close(b.allBegun)
	}
	a.err = b.calls[i].Do(b.ctx)
	a.returned = machine.Now()
	b.answers <- a
}

// Start implements subject.Batch. Callers must always call it, since it ends the goroutines. It
// makes no calls if ctx has ended.
func (b *Calls) Start(ctx context.Context) (int64, []record.Sample, error) {
	defer b.watch.close()
	if err := ctx.Err(); err != nil {
		close(b.gate)
		return 0, nil, err
	}
	// Without this the garbage collector could run while a hundred lanes compete for the CPUs.
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	collectAgain := sync.OnceFunc(func() { debug.SetGCPercent(percent) })
	defer collectAgain()

	if b.Warm != nil {
		if err := b.Warm(ctx); err != nil {
			close(b.gate)
			return 0, nil, err
		}
	}
	call(b.begin)
	before := procs.OwnCPU()
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(ctx, b.patience)
	defer cancel()
	// tare has raised priority until all calls of the batch are sent, so that the engine's work
	// on the first ones does not delay the last. After that it has ordinary priority, like any
	// client. A single call needs no raised priority.
	calm := func() {}
	if len(b.calls) > 1 {
		calm = sync.OnceFunc(urgent())
	}
	released := machine.Now()
	close(b.gate)

	samples := b.collect(ctx, calm)
	calm()
	b.own = time.Duration(procs.OwnCPU() - before)
	cancel()
	call(b.end)
	collectAgain()
	b.watch.stamp(samples, b.calls)
	if b.Settle != nil {
		b.Settle(ctx, samples)
	}
	for i := range b.calls {
		c := &b.calls[i]
		if f := samples[i].Failure; f != nil && f.Command == "" {
			f.Command = c.Command
		}
	}
	unconfirmed(ctx, samples)
	return released, samples, nil
}

// collect waits for all calls to return. Once all have been sent, it calls calm. A call that
// does not return after its cancellation is abandoned.
func (b *Calls) collect(ctx context.Context, calm func()) []record.Sample {
	samples := make([]record.Sample, len(b.calls))
	answered := make([]bool, len(b.calls))
	late := time.NewTimer(b.patience + grace)
	defer late.Stop()
	allBegun := b.allBegun
	for left := len(b.calls); left > 0; {
		select {
		case <-allBegun:
			allBegun = nil
			calm()
		case a := <-b.answers:
			left--
			answered[a.i] = true
			samples[a.i] = record.Sample{Lane: b.calls[a.i].Lane, Start: a.start, Returned: a.returned, Failure: b.failed(ctx, a)}
		case <-late.C:
			for i := range samples {
				if !answered[i] {
					samples[i] = record.Sample{Lane: b.calls[i].Lane, Failure: &record.Failure{
						Kind: record.FailTimeout, Detail: fmt.Sprintf("no reply within %v, nor within %v after the cancellation", b.calls[i].Timeout, grace)}}
				}
			}
			return samples
		}
	}
	return samples
}

func (b *Calls) failed(ctx context.Context, a answer) *record.Failure {
	took := time.Duration(a.returned - a.start)
	limit := b.calls[a.i].Timeout
	var known *Refusal
	switch {
	case a.err == nil && took <= limit:
		return nil
	case ctx.Err() != nil:
		return &record.Failure{Kind: record.FailInterrupted, Detail: "interrupted while waiting for the reply"}
	case errors.As(a.err, &known):
		known.Detail = cut(known.Detail)
		return &known.Failure
	case took > limit || errors.Is(a.err, context.DeadlineExceeded):
		return &record.Failure{Kind: record.FailTimeout, Detail: fmt.Sprintf("no reply within %v", limit)}
	}
	return &record.Failure{Kind: record.FailError, Detail: cut(a.err.Error())}
}

// OwnCPU implements subject.Metered. It includes the client's part of the operations in tare's
// process: encoding, the socket, decoding.
func (b *Calls) OwnCPU() int64 { return b.own.Nanoseconds() }

// cut bounds foreign error text.
func cut(text string) string { return subject.Cut(strings.TrimSpace(text), 1024) }

// FirstFromLog sets the time of the workload's first instruction from its log. It returns a
// failure if the log has none. A time before the call or after the log was read is not on the
// host's clock, so it is stored as guest time.
func FirstFromLog(s *record.Sample, ns int64, found bool) *record.Failure {
	switch {
	case !found:
		return &record.Failure{Kind: record.FailWorkload, Detail: "reported success, but the workload's first line is not in the container's log"}
	case ns >= s.Start && ns <= machine.Now():
		s.First = ns
	default:
		s.Guest = ns
	}
	return nil
}
