package batch

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

func TestThreadsAreUrgentUntilTheyAreToldToCalmDown(t *testing.T) {
	calm := urgent()
	during := classOf(t, unix.Getpid()) // the first thread is always there
	calm()
	want := uintptr(schedOther)
	if mayFIFO() {
		want = schedFIFO
	}
	if during != want {
		t.Errorf("class %d, not %d", during, want)
	}
	ordinaryAgain(t)
}

func ordinaryAgain(t *testing.T) {
	t.Helper()
	for _, tid := range threads() {
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		if class := classOf(t, tid); class != schedOther || err == nil && nice > 20+10 { // the system call gives 20 - nice
			t.Errorf("thread %d is left with class %d, nice %d", tid, class, 20-nice)
		}
	}
}

// Once all calls have begun, the client competes with the engine as any other
// would: it must not get its replies before the engine gets its CPUs.
func TestCallsThatHaveBegunAreOrdinary(t *testing.T) {
	for name, n := range map[string]int{"alone": 1, "together": 3} {
		t.Run(name, func(t *testing.T) {
			during := make(chan uintptr, n)
			calls := make([]Call, n)
			for i := range calls {
				calls[i] = Call{Lane: i, Timeout: time.Minute, Do: func(context.Context) error {
					// The last that begins calms all, and others wait for that.
					class := classOf(t, unix.Getpid())
					for end := time.Now().Add(10 * time.Second); n > 1 && class != schedOther && time.Now().Before(end); time.Sleep(time.Millisecond) {
						class = classOf(t, unix.Getpid())
					}
					during <- class
					return nil
				}}
			}
			b, err := PrepareCalls(calls)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := b.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range n {
				if class := <-during; class != schedOther {
					t.Errorf("class %d while the calls wait for their replies", class)
				}
			}
			ordinaryAgain(t)
		})
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
		b, err := PrepareCalls(calls)
		if err != nil {
			t.Fatal(err)
		}
		released, samples, err := b.Start(t.Context())
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
	b, err := PrepareCalls([]Call{{Timeout: time.Second, Do: func(context.Context) error {
		t.Error("it was called")
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	cold := errors.New("nobody there")
	b.Warm = func(context.Context) error { return cold }
	if _, samples, err := b.Start(t.Context()); !errors.Is(err, cold) || samples != nil {
		t.Errorf("released: %v, %v", samples, err)
	}
}
