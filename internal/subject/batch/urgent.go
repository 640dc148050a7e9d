package batch

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
)

// urgent raises the priority of tare's threads until undo is called: SCHED_FIFO if permitted,
// else nice -20, else no change. Lanes that run commands have the same priority. Without it, a
// daemon that starts working on the first calls of a batch delays the last ones. With a hundred
// calls on two busy CPUs the delay was up to 70 ms, and 2 ms with priority.
//
// The threads sleep nearly all the time. Their children are ordinary, and undo restores the
// previous class, such as SCHED_BATCH.
func urgent() (undo func()) {
	was := map[int]*unix.SchedAttr{}
	for _, tid := range threads() {
		before, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			continue // the thread has ended
		}
		if before.Policy != unix.SCHED_DEADLINE {
			before.Runtime = 0 // Linux 6.12 reports the slice here, and would take it as a request
		}
		was[tid] = before
		if unix.SchedSetAttr(tid, priority(), 0) != nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, -20)
		}
	}
	return func() {
		// The list of threads may be incomplete while threads come and go.
		for tid := range was {
			if unix.Tgkill(unix.Getpid(), tid, 0) == nil {
				restore(tid, was[tid])
			}
		}
		for _, tid := range threads() {
			if _, known := was[tid]; !known { // created since by a thread with priority
				restore(tid, was[unix.Getpid()])
			}
		}
	}
}

// priority returns the attributes of a thread with priority.
func priority() *unix.SchedAttr {
	return &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
}

// restore gives a thread earlier attributes.
func restore(tid int, was *unix.SchedAttr) {
	if was == nil || unix.SchedSetAttr(tid, was, 0) == nil {
		return
	}
	kept := *was // resetting the flag needs a capability, the class does not
	kept.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
	_ = unix.SchedSetAttr(tid, &kept, 0)
}

// threads lists the threads of this process.
func threads() []int {
	d, err := new(procs.Reader).Open(os.Getpid())
	if err != nil {
		return nil
	}
	defer d.Close()
	tids, _ := d.Tasks()
	return tids
}
