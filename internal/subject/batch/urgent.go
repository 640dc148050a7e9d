package batch

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// urgent lets tare's own threads go before others until undo is called, as the
// lanes do that perform commands: with SCHED_FIFO where that is allowed, else
// nice -20, else not at all. Without it a daemon that gets to work on the first
// calls of a batch keeps the last ones from being made: of a hundred calls on
// two busy CPUs by up to 70 ms, with it by 2 ms.
// The threads sleep nearly all the time. What they start is ordinary, and they are what
// they were afterwards: of a tare that was begun by chrt -b, in that class.
func urgent() (undo func()) {
	was := map[int]*unix.SchedAttr{}
	for _, tid := range threads() {
		before, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			continue // it has ended
		}
		if before.Policy != unix.SCHED_DEADLINE {
			before.Runtime = 0 // its slice, which Linux 6.12 tells, and would keep as asked for
		}
		was[tid] = before
		if unix.SchedSetAttr(tid, first(), 0) != nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, -20)
		}
	}
	return func() {
		// The list of a process whose threads come and go may lack some.
		for tid := range was {
			if unix.Tgkill(unix.Getpid(), tid, 0) == nil {
				restore(tid, was[tid])
			}
		}
		for _, tid := range threads() {
			if _, known := was[tid]; !known { // made meanwhile, by one of the others
				restore(tid, was[unix.Getpid()])
			}
		}
	}
}

// first is how a thread goes before others.
func first() *unix.SchedAttr {
	return &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
}

// restore makes a thread what one was.
func restore(tid int, was *unix.SchedAttr) {
	if was == nil || unix.SchedSetAttr(tid, was, 0) == nil {
		return
	}
	kept := *was // taking the flag back needs a capability, the class does not
	kept.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
	_ = unix.SchedSetAttr(tid, &kept, 0)
}

// threads lists those of this process.
func threads() []int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, tid)
		}
	}
	return out
}
