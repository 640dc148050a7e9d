package sampler

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
