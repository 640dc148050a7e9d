package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestCheckEndReportsTheSentSignal(t *testing.T) {
	for sent, want := range map[unix.Signal]string{
		unix.SIGQUIT: "the workload was killed by signal 9 instead of ending on SIGQUIT",
		35:           "the workload was killed by signal 9 instead of ending on signal 35",
	} {
		killed := &lane.Result{WorkloadKnown: true, Workload: unix.WaitStatus(unix.SIGKILL)}
		f := CheckEnd(killed, sent)
		check.That(t, f != nil && f.Detail == want, "%+v", f)
	}
}

func TestArmedOrdersAreReleasedWithoutAStart(t *testing.T) {
	pool := must.Get(lane.NewPool(lane.Options{Lanes: 3}))(t)
	t.Cleanup(pool.Close)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, lanes := range []int{1, 3} {
		dir := t.TempDir()
		arm := func(seen func(*lane.Result)) *Batch {
			var tasks []Task
			for n := range lanes {
				tasks = append(tasks, Task{Lane: n, Seen: seen, Order: lane.Order{Kind: lane.Exec, Args: []string{"/bin/mkdir", filepath.Join(dir, fmt.Sprint(n))}, Timeout: time.Minute}})
			}
			return must.Get(PrepareOrders(pool, tasks))(t)
		}
		for range 5 { // the release is immediate
			began := false
			b := arm(func(*lane.Result) { began = true })
			b.Hook(func() { began = true }, func() {})
			_, samples, err := b.Start(ended)
			must.That(t, errors.Is(err, context.Canceled) && samples == nil && !began, "%d lanes: %v, %v, begun: %v", lanes, samples, err, began)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("%d lanes: %v calls, %v", lanes, made, err)
		}
		_, samples, err := arm(nil).Start(t.Context())
		if made, dirErr := os.ReadDir(dir); err != nil || dirErr != nil || len(made) != lanes || len(samples) != lanes {
			t.Errorf("%d lanes after the release: %v calls, %+v, %v", lanes, made, samples, errors.Join(err, dirErr))
		}
	}
}

// classOf returns the scheduling class of a thread.
func classOf(tid int) uint32 {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return unix.SCHED_NORMAL // the thread has ended
	}
	return a.Policy
}

func TestPriorityLastsUntilUndo(t *testing.T) {
	calm := urgent()
	during := classOf(unix.Getpid()) // the first thread always exists
	calm()
	want := uint32(unix.SCHED_NORMAL)
	if mayFIFO() {
		want = unix.SCHED_FIFO
	}
	check.Equal(t, "scheduling class", during, want)
	ordinaryAgain(t)
}

func TestSchedulingClassIsRestored(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := must.Get(unix.SchedGetAttr(0, 0))(t)
	defer restore(0, before)
	must.OK(t, unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_BATCH, Nice: before.Nice}, 0))
	urgent()()
	got, err := unix.SchedGetAttr(0, 0)
	check.That(t, err == nil && got.Policy == unix.SCHED_BATCH && got.Nice == before.Nice, "%+v, %v", got, err)
}

func ordinaryAgain(t *testing.T) {
	t.Helper()
	for _, tid := range threads() {
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		if class := classOf(tid); class != unix.SCHED_NORMAL || err == nil && nice > 20+10 { // the system call returns 20 - nice
			t.Errorf("thread %d still has class %d, nice %d", tid, class, 20-nice)
		}
	}
}

// Once all calls have been made, the client must not have priority over the engine.
// Otherwise it would get its replies before the engine gets CPU time.
func TestPriorityEndsOnceAllCallsAreMade(t *testing.T) {
	for name, n := range map[string]int{"alone": 1, "together": 3} {
		t.Run(name, func(t *testing.T) {
			during := make(chan uint32, n)
			start(t.Context(), t, prepare(t, calls(n, func(context.Context, int) error {
				// The last call ends the priority, and the others wait for it.
				class := classOf(unix.Getpid())
				for end := time.Now().Add(10 * time.Second); n > 1 && class != unix.SCHED_NORMAL && time.Now().Before(end); time.Sleep(time.Millisecond) {
					class = classOf(unix.Getpid())
				}
				during <- class
				return nil
			})))
			for range n {
				check.Equal(t, "scheduling class while the calls wait for their replies", <-during, unix.SCHED_NORMAL)
			}
			ordinaryAgain(t)
		})
	}
}

// mayFIFO reports whether a thread of this process can get SCHED_FIFO.
func mayFIFO() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	may := err == nil && unix.SchedSetAttr(0, priority(), 0) == nil
	restore(0, before)
	return may
}

// No call may return before all have started.
func TestHundredCallsStartTogether(t *testing.T) {
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

func TestFailedWarmUpReleasesNothing(t *testing.T) {
	b := prepare(t, calls(1, func(context.Context, int) error {
		t.Error("the call was made")
		return nil
	}))
	cold := errors.New("no server")
	b.Warm = func(context.Context) error { return cold }
	_, samples, err := b.Start(t.Context())
	check.That(t, errors.Is(err, cold) && samples == nil, "released: %v, %v", samples, err)
}

// BenchmarkCall makes an empty call. The time between its two stamps is the overhead of tare
// per API call. The rest of an iteration is not timed.
func BenchmarkCall(b *testing.B) {
	var window, wake int64
	for b.Loop() {
		armed := must.Get(PrepareCalls([]Call{{Timeout: 10 * time.Second, Do: func(context.Context) error { return nil }}}))(b)
		released, samples, err := armed.Start(b.Context())
		if err != nil || samples[0].Failure != nil {
			b.Fatal(err, samples)
		}
		window += samples[0].Returned - samples[0].Start
		wake += samples[0].Start - released
	}
	b.ReportMetric(float64(window)/float64(b.N), "window-ns/op")
	b.ReportMetric(float64(wake)/float64(b.N), "wake-ns/op")
}
