package drive

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// classOf is the scheduling class of a thread.
func classOf(t *testing.T, tid int) uintptr {
	t.Helper()
	class, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
	if errno != 0 {
		return schedOther // it has ended
	}
	return class &^ schedResetOnFork
}

func TestCallsAreUrgentWhileTheyRunAndNotAfterwards(t *testing.T) {
	during := make(chan uintptr, 1)
	b, err := ArmCalls([]Call{{Timeout: time.Second, Do: func(context.Context) error {
		during <- classOf(t, unix.Getpid()) // the first thread is always there
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := uintptr(schedOther)
	if mayFIFO() {
		want = schedFIFO
	}
	if got := <-during; got != want {
		t.Errorf("class %d while the calls run, not %d", got, want)
	}
	for _, tid := range threads() {
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		if class := classOf(t, tid); class != schedOther || err == nil && nice > 20+10 { // the system call gives 20 - nice
			t.Errorf("thread %d is left with class %d, nice %d", tid, class, 20-nice)
		}
	}
}

// mayFIFO tries it out on a thread of this process.
func mayFIFO() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	may := schedule(unix.Gettid(), schedFIFO|schedResetOnFork, 1) == nil
	ordinary(unix.Gettid(), 0)
	return may
}

func TestAHundredCallsStartTogether(t *testing.T) {
	calls := make([]Call, 100)
	for i := range calls {
		calls[i] = Call{Lane: i, Timeout: time.Minute, Do: func(context.Context) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}}
	}
	best := time.Hour
	for range 5 { // a busy machine may delay one of them
		b, err := ArmCalls(calls)
		if err != nil {
			t.Fatal(err)
		}
		released, samples, err := b.Release(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		skew := time.Duration(0)
		for _, s := range samples {
			skew = max(skew, time.Duration(s.Start-released))
		}
		best = min(best, skew)
	}
	if best > 10*time.Millisecond {
		t.Errorf("the last of a hundred calls starts %v after the release", best)
	}
	t.Logf("skew %v", best)
}

func TestWhatCannotBeWarmedUpIsNotReleased(t *testing.T) {
	b, err := ArmCalls([]Call{{Timeout: time.Second, Do: func(context.Context) error {
		t.Error("it was called")
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	cold := errors.New("nobody there")
	b.Warm = func(context.Context) error { return cold }
	if _, samples, err := b.Release(t.Context()); !errors.Is(err, cold) || samples != nil {
		t.Errorf("released: %v, %v", samples, err)
	}
}
