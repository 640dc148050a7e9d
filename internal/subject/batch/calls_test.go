package batch

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func calls(n int, do func(ctx context.Context, lane int) error) []Call {
	var out []Call
	for i := range n {
		out = append(out, Call{Lane: i, Command: fmt.Sprintf("POST /%d", i), Timeout: time.Minute,
			Do: func(ctx context.Context) error { return do(ctx, i) }})
	}
	return out
}

// prepare prepares calls.
func prepare(t *testing.T, calls []Call) *Calls {
	t.Helper()
	return must.Get(PrepareCalls(calls))(t)
}

// start performs a batch that must succeed.
func start(ctx context.Context, t *testing.T, b *Calls) (released int64, samples []record.Sample) {
	t.Helper()
	released, samples, err := b.Start(ctx)
	must.That(t, err == nil && len(samples) == len(b.calls), "%d samples of %d calls, %v", len(samples), len(b.calls), err)
	return released, samples
}

func TestCallsBeginAfterTheRelease(t *testing.T) {
	var begun atomic.Int32
	b := prepare(t, calls(20, func(context.Context, int) error { begun.Add(1); return nil }))
	time.Sleep(20 * time.Millisecond)
	n := begun.Load()
	must.That(t, n == 0, "%d calls were made before the release", n)
	released, samples := start(t.Context(), t, b)
	must.That(t, begun.Load() == 20, "%d calls", begun.Load())
	for i, s := range samples {
		check.That(t, s.Lane == i && s.Failure == nil && s.Start >= released && s.Returned >= s.Start && s.Returned <= machine.Now(),
			"lane %d: %+v, released %d", i, s, released)
	}
}

func TestFailedCallHasNoTimeAndAffectsItsLaneOnly(t *testing.T) {
	for name, c := range map[string]struct {
		do           func(ctx context.Context, endRun func()) error
		kind, detail string
	}{
		"error reply": {func(context.Context, func()) error { return errors.New("409 Conflict: the name is in use") }, record.FailError, "409"},
		"no reply":    {func(ctx context.Context, _ func()) error { <-ctx.Done(); return ctx.Err() }, record.FailTimeout, "no reply within 6s"},
		"interrupted run": {func(ctx context.Context, endRun func()) error {
			endRun()
			<-ctx.Done()
			return errors.New("connection closed")
		}, record.FailInterrupted, "interrupted"},
	} {
		run, endRun := context.WithCancel(t.Context())
		other := make(chan struct{})
		all := calls(2, func(ctx context.Context, i int) error {
			if i == 0 {
				defer close(other)
				return nil
			}
			<-other
			return c.do(ctx, endRun)
		})
		for i := range all {
			all[i].Timeout = 6 * time.Second // enough for an empty call on any machine
		}
		_, samples := start(run, t, prepare(t, all))
		endRun()
		f := samples[1].Failure
		check.That(t, f != nil && f.Kind == c.kind && strings.Contains(f.Detail, c.detail) && f.Command == "POST /1", "%s: %+v", name, f)
		_, ok := samples[1].Latency(record.StampReturned)
		check.That(t, !ok && samples[0].Failure == nil, "%s: the failed call has a latency, or the other lane failed: %+v", name, samples)
	}
}

func TestExitOfAWatchedProcessIsStamped(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	must.OK(t, cmd.Start())
	var b *Calls
	all := calls(3, func(_ context.Context, i int) error {
		if i == 1 {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			<-b.watch.ended
		}
		return nil
	})
	all[1].Watch = cmd.Process.Pid
	all[2].Watch = 1 << 21 // already ended
	b = prepare(t, all)
	_, samples := start(t.Context(), t, b)
	s := samples[1]
	check.That(t, s.Exited > s.Start && s.Exited < s.Returned, "started %d, exited %d, returned %d", s.Start, s.Exited, s.Returned)
	check.That(t, samples[0].Exited == 0 && samples[2].Exited == 0, "an unseen exit was stamped")
}

func TestImplausibleStampCountsAsGuestTime(t *testing.T) {
	now := machine.Now()
	for name, c := range map[string]struct {
		said, guest int64
		first, kind bool
	}{
		"during the call":      {said: now, first: true},
		"long before the call": {said: 5000000, guest: 5000000},
		"in the future":        {said: now + 1e12, guest: now + 1e12},
		"missing":              {kind: true},
	} {
		s := record.Sample{Start: now - 1000}
		f := FirstFromLog(&s, c.said, c.said != 0)
		check.That(t, (f != nil) == c.kind && (s.First != 0) == c.first && s.Guest == c.guest, "%s: %+v %+v", name, s, f)
	}
}

// Checks after a batch count neither as time of the engine nor as time of tare.
func TestBatchEndsBeforeItsChecks(t *testing.T) {
	var events []string
	b := prepare(t, calls(1, func(context.Context, int) error { events = append(events, "call"); return nil }))
	b.Warm = func(context.Context) error { events = append(events, "warm"); return nil }
	b.Settle = func(context.Context, []record.Sample) { events = append(events, "settle") }
	b.Hook(func() { events = append(events, "begin") }, func() { events = append(events, "end") })
	start(t.Context(), t, b)
	check.Equal(t, "events", events, []string{"warm", "begin", "call", "end", "settle"})
}

func TestLateReleaseMakesNoCall(t *testing.T) {
	b := prepare(t, calls(3, func(context.Context, int) error {
		t.Error("a call was made")
		return nil
	}))
	b.Warm = func(context.Context) error { t.Error("the batch was warmed up"); return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, samples, err := b.Start(ctx)
	check.That(t, errors.Is(err, context.Canceled) && len(samples) == 0, "%v, %+v", err, samples)
	<-b.gate // otherwise the lanes would wait forever
}
