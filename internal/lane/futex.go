package lane

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2). Not the private ones: the word is shared.
const (
	futexOpWait = 0
	futexOpWake = 1
)

func futexWait(word *uint32, value uint32, limit time.Duration) error {
	t := unix.NsecToTimespec(limit.Nanoseconds())
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(value), uintptr(unsafe.Pointer(&t)), 0, 0)
	runtime.KeepAlive(&t)
	if errno != 0 {
		return errno
	}
	return nil
}

func futexWake(word *uint32, n int) {
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake, uintptr(n))
}

// schedule sets the class of the calling thread.
func schedule(class, priority int32) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, uintptr(class), uintptr(unsafe.Pointer(&priority)))
	if errno != 0 {
		return errno
	}
	return nil
}

// BestPriority returns the priority that lanes will have. It tries the priorities on a thread
// of this process and restores the old one.
func BestPriority() Priority {
	result := make(chan Priority)
	go func() {
		// Never unlocked, so the thread ends with the goroutine. The process's first thread
		// does not end, so the code below restores its state.
		runtime.LockOSThread()
		best := Ordinary
		tid := unix.Gettid()
		nice, niceErr := unix.Getpriority(unix.PRIO_PROCESS, tid)
		if schedule(unix.SCHED_FIFO|unix.SCHED_RESET_ON_FORK, 1) == nil {
			best = FIFO
			_ = schedule(unix.SCHED_NORMAL, 0)
		} else if niceErr == nil && unix.Setpriority(unix.PRIO_PROCESS, tid, -20) == nil {
			best = Nice
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, 20-nice) // the system call gives 20 − nice
		}
		result <- best
	}()
	return <-result
}
