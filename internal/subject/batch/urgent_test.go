package batch

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
)

// classOf is the scheduling class of a thread.
func classOf(tid int) uint32 {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return unix.SCHED_NORMAL // it has ended
	}
	return a.Policy
}

func TestThreadsAreUrgentUntilTheyAreToldToCalmDown(t *testing.T) {
	calm := urgent()
	during := classOf(unix.Getpid()) // the first thread is always there
	calm()
	want := uint32(unix.SCHED_NORMAL)
	if mayFIFO() {
		want = unix.SCHED_FIFO
	}
	if during != want {
		t.Errorf("class %d, not %d", during, want)
	}
	ordinaryAgain(t)
}

func TestAThreadIsAfterwardsOfTheClassThatItHad(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	must.OK(t, err)
	defer restore(0, before)
	must.OK(t, unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_BATCH, Nice: before.Nice}, 0))
	urgent()()
	if got, err := unix.SchedGetAttr(0, 0); err != nil || got.Policy != unix.SCHED_BATCH || got.Nice != before.Nice {
		t.Errorf("%+v, %v", got, err)
	}
}

func ordinaryAgain(t *testing.T) {
	t.Helper()
	for _, tid := range threads() {
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		if class := classOf(tid); class != unix.SCHED_NORMAL || err == nil && nice > 20+10 { // the system call gives 20 - nice
			t.Errorf("thread %d is left with class %d, nice %d", tid, class, 20-nice)
		}
	}
}

// Once all calls have begun, the client competes with the engine as any other
// would: it must not get its replies before the engine gets its CPUs.
func TestCallsThatHaveBegunAreOrdinary(t *testing.T) {
	for name, n := range map[string]int{"alone": 1, "together": 3} {
		t.Run(name, func(t *testing.T) {
			during := make(chan uint32, n)
			start(t.Context(), t, prepare(t, calls(n, func(context.Context, int) error {
				// The last that begins calms all, and others wait for that.
				class := classOf(unix.Getpid())
				for end := time.Now().Add(10 * time.Second); n > 1 && class != unix.SCHED_NORMAL && time.Now().Before(end); time.Sleep(time.Millisecond) {
					class = classOf(unix.Getpid())
				}
				during <- class
				return nil
			})))
			for range n {
				if class := <-during; class != unix.SCHED_NORMAL {
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
	before, err := unix.SchedGetAttr(0, 0)
	may := err == nil && unix.SchedSetAttr(0, first(), 0) == nil
	restore(0, before)
	return may
}

// None of them returns before all have begun.
func TestAHundredCallsStartTogether(t *testing.T) {
	var begun sync.WaitGroup
	begun.Add(100)
	released, samples := start(t.Context(), t, prepare(t, calls(100, func(ctx context.Context, _ int) error {
		begun.Done()
		begun.Wait()
		return ctx.Err()
	})))
	skew := time.Duration(0)
	for _, s := range samples {
		if skew = max(skew, time.Duration(s.Start-released)); s.Failure != nil {
			t.Errorf("%+v", s.Failure)
		}
	}
	t.Logf("skew %v", skew)
}

func TestWhatCannotBeWarmedUpIsNotReleased(t *testing.T) {
	b := prepare(t, calls(1, func(context.Context, int) error {
		t.Error("it was called")
		return nil
	}))
	cold := errors.New("nobody there")
	b.Warm = func(context.Context) error { return cold }
	if _, samples, err := b.Start(t.Context()); !errors.Is(err, cold) || samples != nil {
		t.Errorf("released: %v, %v", samples, err)
	}
}
