package lane

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// home is 1 + the CPU that tare waits on, 0 when it was not settled.
var home atomic.Uint32

// Settle keeps the calling goroutine on one CPU, and lane 0 of every pool that
// is made afterwards waits there too: a batch of one lane then needs no wake-up
// across CPUs, which on a virtual machine takes longer than everything else
// that the harness does. What lanes start may use all CPUs as before.
//
// It returns a function that undoes it, to be called by the same goroutine. On
// a machine with one CPU, or where it is not allowed, nothing is done.
func Settle() (undo func()) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		return func() {}
	}
	// The last one: interrupts tend to go to the first.
	cpu := len(all)*64 - 1
	for cpu > 0 && !all.IsSet(cpu) {
		cpu--
	}
	var one unix.CPUSet
	one.Set(cpu)
	runtime.LockOSThread()
	if unix.SchedSetaffinity(0, &one) != nil {
		runtime.UnlockOSThread()
		return func() {}
	}
	home.Store(uint32(cpu) + 1)
	return func() {
		home.Store(0)
		_ = unix.SchedSetaffinity(0, &all)
		runtime.UnlockOSThread()
	}
}
