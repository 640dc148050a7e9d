// Package sampler calls a reader at a fixed cadence.
package sampler

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Sampler is a sampler at work.
type Sampler struct {
	stop   atomic.Uint32
	done   chan struct{}
	result Result
}

// Result is how a sampler fared.
type Result struct {
	Ticks  int   // at which it read
	Missed int   // that went by while it was reading or had no CPU
	OwnCPU int64 // ns that its thread used, readings included; the Go runtime's other threads are not in it
}

// Start calls read at once and then at every interval after it, until Stop. Ticks
// are at multiples of the interval from the first one, so that late ones add up to
// no drift. One that has gone by before the sampler could keep it is missed: there
// is never a burst to make up for it. read gets the time of CLOCK_MONOTONIC (ns)
// at which it is called.
//
// read is always called from the same thread, which is the sampler's own and ends
// with it.
//
// The thread sleeps in futex(2) until an absolute time. That costs half of what a
// timer of Go's does, whose time comes to another thread, which then wakes this
// one; and it ends at once on Stop, as clock_nanosleep(2) does not.
func Start(interval time.Duration, read func(now int64)) *Sampler {
	s := &Sampler{done: make(chan struct{})}
	go s.run(max(int64(interval), 1), read)
	return s
}

// Stop ends the sampler, waits for a reading that is under way, and says how it
// fared. It may be called again.
func (s *Sampler) Stop() Result {
	s.stop.Store(1)
	wake(&s.stop)
	<-s.done
	return s.result
}

func (s *Sampler) run(interval int64, read func(now int64)) {
	defer close(s.done)
	// Never unlocked: the thread's timer slack is not that of others.
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it ticks come 50 µs late
	begun := machine.Clock(unix.CLOCK_THREAD_CPUTIME_ID)
	now := machine.Now()
	next := now
	for s.stop.Load() == 0 {
		if now < next {
			sleep(&s.stop, next)
			now = machine.Now()
			continue // it may have been Stop, or nothing
		}
		// Those that are over by now but the last were missed, which is this one.
		late := (now - next) / interval
		s.result.Missed += int(late)
		next += (late + 1) * interval
		s.result.Ticks++
		read(now)
		now = machine.Now()
	}
	s.result.OwnCPU = machine.Clock(unix.CLOCK_THREAD_CPUTIME_ID) - begun
}
