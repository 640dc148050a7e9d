package lane

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// home is 1 + the CPU that tare waits on, or 0 if it is not settled.
var home atomic.Uint32

// Settle binds the calling goroutine to one CPU. Lane 0 of every later pool waits on that CPU
// too, so a batch of one lane needs no wake-up across CPUs. On a virtual machine such a
// wake-up takes longer than the rest of the harness. Commands of lanes may use all CPUs.
//
// The same goroutine must call the returned function to undo it. On a machine with one CPU, or
// without permission, Settle does nothing.
func Settle() (undo func()) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		return func() {}
	}
	// Use the last CPU: interrupts tend to go to the first.
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
