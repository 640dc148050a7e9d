package tracer

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// worker is a goroutine with its own thread, so the kernel counts its CPU time.
type worker struct {
	tid  int
	done chan struct{} // closed when it has ended
	last atomic.Int64  // CPU time of the worker once it has ended
}

func work(f func()) *worker {
	w := &worker{done: make(chan struct{})}
	began := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		w.tid = unix.Gettid()
		before := threadTime(w.tid)
		w.last.Store(-before) // the thread may have done something else before
		close(began)
		defer func() {
			w.last.Add(threadTime(w.tid))
			close(w.done)
		}()
		f()
	}()
	<-began
	return w
}

// cpu returns the CPU time of the worker.
func (w *worker) cpu() time.Duration {
	select {
	case <-w.done:
		return time.Duration(w.last.Load())
	default:
		return time.Duration(w.last.Load() + threadTime(w.tid))
	}
}

// threadTime reads the CPU clock (ns) of a thread of this process, by
// CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of the kernel's posix-timers.h.
func threadTime(tid int) int64 { return machine.Clock(int32(^tid)<<3 | 4 | 2) }
