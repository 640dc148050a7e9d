// Package sampler calls a function at a fixed interval.
package sampler

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Sampler calls a function at a fixed interval until Stop.
type Sampler struct {
	stop   atomic.Uint32
	done   chan struct{}
	result Result
}

// Result counts the ticks and the cost of a sampler.
type Result struct {
	Ticks  int   // calls
	Missed int   // ticks that passed during a call or without a CPU
	OwnCPU int64 // CPU time (ns) of its thread including the calls
}

// Start calls read at once and then at multiples of the interval until Stop. Late calls
// cause no drift. Missed ticks are not made up for by a burst. read gets the time of its
// call by CLOCK_MONOTONIC (ns).
//
// All calls are on one thread, which does nothing else.
//
// The thread sleeps in futex(2) until an absolute time. This costs half as much as a Go
// timer, which fires on another thread. Unlike clock_nanosleep(2) it ends at once on Stop.
func Start(interval time.Duration, read func(now int64)) *Sampler {
	s := &Sampler{done: make(chan struct{})}
	go s.run(max(int64(interval), 1), read)
	return s
}

// Stop ends the sampler, waits for a call in progress, and returns the result. It may be
// called again.
func (s *Sampler) Stop() Result {
	s.stop.Store(1)
	wake(&s.stop)
	<-s.done
	return s.result
}

func (s *Sampler) run(interval int64, read func(now int64)) {
	defer close(s.done)
	// Never unlocked, so the thread ends with its changed timer slack.
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it ticks come 50 µs late
	begun := machine.Clock(unix.CLOCK_THREAD_CPUTIME_ID)
	now := machine.Now()
	next := now
	for s.stop.Load() == 0 {
		if now < next {
			sleep(&s.stop, next)
			now = machine.Now()
			continue // woken by Stop, or spuriously
		}
		// All ticks up to now except the last one were missed.
		late := (now - next) / interval
		s.result.Missed += int(late)
		next += (late + 1) * interval
		s.result.Ticks++
		read(now)
		now = machine.Now()
	}
	s.result.OwnCPU = machine.Clock(unix.CLOCK_THREAD_CPUTIME_ID) - begun
}

// Operations of futex(2) within a process.
const (
	futexPrivate    = 128
	futexWake       = 1 | futexPrivate
	futexWaitBitset = 9 | futexPrivate // with an absolute timeout by CLOCK_MONOTONIC
	anyBit          = 0xffffffff
)

// sleep sleeps until a time of CLOCK_MONOTONIC (ns) or until word is not 0. It may return
// early.
func sleep(word *atomic.Uint32, until int64) {
	t := unix.NsecToTimespec(until)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitBitset, 0, uintptr(unsafe.Pointer(&t)), 0, anyBit)
}

// wake ends a sleep on word.
func wake(word *atomic.Uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}
