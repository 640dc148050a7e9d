package sampler

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
)

func TestTicksAreAtMultiplesOfTheInterval(t *testing.T) {
	const interval, ticks = 20 * time.Millisecond, 25
	times := make(chan int64, 1000)
	s := Start(interval, func(now int64) { times <- now })
	var all []int64
	for len(all) < ticks {
		all = append(all, <-times)
	}
	r := s.Stop()
	seen := len(all) + len(times)
	check.That(t, r.Ticks == seen, "%d ticks, want %d", r.Ticks, seen) // some ticks happened before Stop was scheduled
	for i, now := range all {
		// A busy machine delays ticks. Delays must not accumulate, and every missed tick
		// must be counted.
		n := (now - all[0]) / int64(interval)
		check.That(t, n >= int64(i) && n <= int64(i+r.Missed)+1, "tick %d after %d intervals, %d ticks missed", i, n, r.Missed)
		check.That(t, i == 0 || now > all[i-1], "tick %d is not later than the previous one", i)
	}
	check.That(t, r.OwnCPU > 0 && r.OwnCPU <= int64(r.Ticks)*int64(interval), "the sampler used %v", time.Duration(r.OwnCPU))
	check.Equal(t, "second Stop", s.Stop(), r)
}

func TestLateTicksAreCountedAsMissed(t *testing.T) {
	const interval = 10 * time.Millisecond
	var times []int64
	third := make(chan struct{})
	s := Start(interval, func(now int64) {
		times = append(times, now)
		switch len(times) {
		case 1:
			time.Sleep(105 * time.Millisecond) // ten ticks elapse
		case 3:
			close(third)
		}
	})
	<-third
	r := s.Stop()
	passed := int((times[len(times)-1]-times[0])/int64(interval)) + 1
	check.That(t, r.Missed >= 9 && r.Ticks == len(times) && r.Ticks+r.Missed >= passed-1 && r.Ticks+r.Missed <= passed+1,
		"%+v after %d intervals", r, passed)
	// The tick after the long call is immediate. The next one is at a multiple of the
	// interval.
	for i, now := range times[2:] {
		n := (now - times[0]) / int64(interval)
		check.That(t, n >= 11, "tick %d was %d intervals after the first, want at least 11", i+2, n)
	}
}

func TestStopDoesNotWaitForTheNextTick(t *testing.T) {
	first := make(chan struct{})
	s := Start(time.Hour, func(int64) { close(first) })
	<-first
	time.Sleep(20 * time.Millisecond) // the sampler is sleeping now
	begin := time.Now()
	r := s.Stop()
	check.That(t, r.Ticks == 1 && r.Missed == 0, "%+v", r)
	took := time.Since(begin)
	check.That(t, took <= time.Minute, "Stop took %v", took)
}

func TestStopWaitsForACallInProgress(t *testing.T) {
	begun, ended := make(chan struct{}), false
	s := Start(time.Hour, func(int64) {
		close(begun)
		time.Sleep(50 * time.Millisecond)
		ended = true
	})
	<-begun
	s.Stop()
	check.That(t, ended, "Stop returned during a call")
}

func TestCallsAreOnOneThread(t *testing.T) {
	threads := make(chan int, 100)
	s := Start(time.Millisecond, func(int64) {
		select {
		case threads <- unix.Gettid():
		default:
		}
	})
	first := <-threads
	for range 20 {
		check.Equal(t, "thread", <-threads, first)
	}
	s.Stop()
}

func TestOwnCPUIsCounted(t *testing.T) {
	const spin = 30 * time.Millisecond
	done := make(chan int64, 1)
	s := Start(time.Hour, func(int64) {
		spun := int64(0) // a stalled virtual CPU may take much longer
		for begin := machine.Clock(unix.CLOCK_THREAD_CPUTIME_ID); spun < int64(spin); {
			spun = machine.Clock(unix.CLOCK_THREAD_CPUTIME_ID) - begin
		}
		done <- spun
	})
	spun := <-done
	r := s.Stop()
	check.That(t, r.OwnCPU >= spun && r.OwnCPU <= spun+int64(spin), "CPU time %v, want slightly more than %v", time.Duration(r.OwnCPU), time.Duration(spun))
}
