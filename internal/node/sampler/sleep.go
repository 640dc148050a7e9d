package sampler

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2), of one process.
const (
	futexPrivate    = 128
	futexWake       = 1 | futexPrivate
	futexWaitBitset = 9 | futexPrivate // with a timeout that is a point of CLOCK_MONOTONIC
	anyBit          = 0xffffffff
)

// sleep sleeps until a point of CLOCK_MONOTONIC, in ns, or until the word is not
// 0 any more. It may end early for no reason.
func sleep(word *atomic.Uint32, until int64) {
	t := unix.NsecToTimespec(until)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitBitset, 0, uintptr(unsafe.Pointer(&t)), 0, anyBit)
}

// wake ends the sleep of one who waits for the word.
func wake(word *atomic.Uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}
