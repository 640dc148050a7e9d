package minder

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
)

// finding is what is to be seen of a program right before it is told to end.
type finding struct {
	signal, advice string // what it will do on the signal, "" where nothing can be told
	tasks          string // that it was at its limit of tasks

	gone bool // it had ended before
	over subject.Ended
}

// look sees what the first process of a container will do on a signal. A guest's is not
// the workload.
func look(r subject.Reached, told unix.Signal, late time.Time) *finding {
	f := &finding{}
	bit := uint64(1) << (told - 1)
	status, err := procs.StatusOf(r.Pid)
	for err == nil && status.Blocked&bit != 0 && time.Now().Before(late) { // a shell blocks signals while it forks
		time.Sleep(time.Millisecond)
		status, err = procs.StatusOf(r.Pid)
	}
	if err != nil || r.Guest {
		return f
	}
	switch {
	case status.Ignored&bit != 0:
		f.signal, f.advice = "the workload ignores "+procs.SignalName(told), "have it end on "+procs.SignalName(told)
	case status.Blocked&bit != 0: // it may be waited for
	case status.Caught&bit == 0 && len(status.NSpid) > 1 && status.NSpid[len(status.NSpid)-1] == 1:
		f.signal = fmt.Sprintf("the workload had no handler for %s when it was sent, and the first process of a container gets no signal that it has no handler for", procs.SignalName(told))
		f.advice = "give the program a handler or an init before it (--command 'tini -- PROGRAM'); where it has one later, say with --ready when"
	}
	return f
}

// refused says that a program's cgroup has been refused another task, or that the group
// above has refused it one since it had done so that many times; "" where neither is so.
func refused(in *procs.Groups, before int64) string {
	own, above, limit := refusals(in)
	if own == 0 && above <= before {
		return ""
	}
	return fmt.Sprintf("it wanted more tasks than its limit of %d, and was refused them", limit)
}

// refusals are those of [cgroup.PIDsRefused].
func refusals(in *procs.Groups) (own, above, limit int64) {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return 0, 0, 0
	}
	return cgroup.PIDsRefused(machine.Root(""), hs, in)
}
