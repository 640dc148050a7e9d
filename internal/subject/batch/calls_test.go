package batch

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
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

func TestNoCallBeginsBeforeTheRelease(t *testing.T) {
	var begun atomic.Int32
	b, err := PrepareCalls(calls(20, func(context.Context, int) error { begun.Add(1); return nil }))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if n := begun.Load(); n != 0 {
		t.Fatalf("%d calls were made before the release", n)
	}
	released, samples, err := b.Start(t.Context())
	if err != nil || begun.Load() != 20 || len(samples) != 20 {
		t.Fatalf("%d calls, %d samples, %v", begun.Load(), len(samples), err)
	}
	for i, s := range samples {
		if s.Lane != i || s.Failure != nil || s.Start < released || s.Returned < s.Start || s.Returned > machine.Now() {
			t.Errorf("lane %d: %+v, released %d", i, s, released)
		}
	}
}

func TestAnErrorReplyIsNoTime(t *testing.T) {
	b, err := PrepareCalls(calls(3, func(_ context.Context, i int) error {
		if i == 1 {
			return errors.New("409 Conflict: the name is in use")
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	_, samples, err := b.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := samples[1].Failure
	if f == nil || f.Kind != record.FailError || !strings.Contains(f.Detail, "409") || f.Command != "POST /1" {
		t.Errorf("%+v", f)
	}
	if _, ok := samples[1].Latency(record.StampReturned); ok {
		t.Error("a failed call has a latency")
	}
	if samples[0].Failure != nil || samples[2].Failure != nil {
		t.Error("one lane's failure became another's")
	}
}

func TestACallThatTakesTooLongIsATimeOut(t *testing.T) {
	all := calls(2, func(ctx context.Context, i int) error {
		if i == 0 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	for i := range all {
		all[i].Timeout = 6 * time.Second // in which a call that has nothing to do ends on any machine
	}
	b, err := PrepareCalls(all)
	if err != nil {
		t.Fatal(err)
	}
	_, samples, _ := b.Start(t.Context())
	if f := samples[1].Failure; f == nil || f.Kind != record.FailTimeout || samples[0].Failure != nil {
		t.Errorf("%+v", samples)
	}
}

func TestAnInterruptedCallIsNoError(t *testing.T) {
	run, cancel := context.WithCancel(t.Context())
	defer cancel()
	b, err := PrepareCalls(calls(1, func(ctx context.Context, _ int) error {
		cancel()
		<-ctx.Done()
		return errors.New("connection closed")
	}))
	if err != nil {
		t.Fatal(err)
	}
	_, samples, _ := b.Start(run)
	if f := samples[0].Failure; f == nil || f.Kind != record.FailInterrupted {
		t.Errorf("%+v", f)
	}
}

func TestTheExitOfAWatchedProcessIsStamped(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var b *Calls
	all := calls(3, func(_ context.Context, i int) error {
		if i == 1 {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			<-b.watch.empty
		}
		return nil
	})
	all[1].Watch = cmd.Process.Pid
	all[2].Watch = 1 << 21 // gone before
	var err error
	if b, err = PrepareCalls(all); err != nil {
		t.Fatal(err)
	}
	_, samples, _ := b.Start(t.Context())
	if s := samples[1]; s.Exited <= s.Start || s.Exited >= s.Returned {
		t.Errorf("started %d, exited %d, returned %d", s.Start, s.Exited, s.Returned)
	}
	if samples[0].Exited != 0 || samples[2].Exited != 0 {
		t.Error("an exit was stamped that nobody saw")
	}
}

func TestAStampOfAnotherClockIsNotTheHosts(t *testing.T) {
	now := machine.Now()
	for name, c := range map[string]struct {
		said, guest int64
		first, kind bool
	}{
		"between the call and now": {said: now, first: true},
		"a guest's, long before":   {said: 5000000, guest: 5000000},
		"one from the future":      {said: now + 1e12, guest: now + 1e12},
		"nothing":                  {kind: true},
	} {
		s := record.Sample{Start: now - 1000}
		f := FirstFromLog(&s, c.said, c.said != 0)
		if (f != nil) != c.kind || (s.First != 0) != c.first || s.Guest != c.guest {
			t.Errorf("%s: %+v %+v", name, s, f)
		}
	}
}

// What is asked afterwards is not part of the batch: neither in what it cost the
// engine nor in what it cost tare.
func TestABatchIsBracketedWithoutItsChecks(t *testing.T) {
	var events []string
	b, err := PrepareCalls([]Call{{Timeout: time.Second,
		Do: func(context.Context) error { events = append(events, "call"); return nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.Warm = func(context.Context) error { events = append(events, "warm"); return nil }
	b.Settle = func(context.Context, []record.Sample) { events = append(events, "settle") }
	b.Hook(func() { events = append(events, "begin") }, func() { events = append(events, "end") })
	if _, _, err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"warm", "begin", "call", "end", "settle"}; !slices.Equal(events, want) {
		t.Errorf("%v, want %v", events, want)
	}
}

func TestWhatIsReleasedTooLateMakesNoCallAndWaitsNoLonger(t *testing.T) {
	b, err := PrepareCalls(calls(3, func(context.Context, int) error {
		t.Error("a call was made")
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	b.Warm = func(context.Context) error { t.Error("it was warmed up"); return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, samples, err := b.Start(ctx); !errors.Is(err, context.Canceled) || len(samples) > 0 {
		t.Errorf("%v, %+v", err, samples)
	}
	<-b.gate // or the lanes would wait at it for ever
}
