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

// finding describes a program right before its stop.
type finding struct {
	signal, advice string // the program's expected reaction to the signal; "" if unknown
	tasks          string // says that the program was at its task limit; "" if it was not

	gone bool // the program had ended before the stop
	over subject.Ended
}

// look determines how the first process of a container will react to a signal. With a guest
// that process is not the workload.
func look(r subject.Reached, stop unix.Signal, late time.Time) *finding {
	f := &finding{}
	bit := uint64(1) << (stop - 1)
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
		f.signal, f.advice = "the workload ignores "+procs.SignalName(stop), "have it end on "+procs.SignalName(stop)
	case status.Blocked&bit != 0: // the program may wait for the signal
	case status.Caught&bit == 0 && len(status.NSpid) > 1 && status.NSpid[len(status.NSpid)-1] == 1:
		f.signal = fmt.Sprintf("the workload had no handler for %s when it was sent, and the kernel drops such signals for the first process of a container", procs.SignalName(stop))
		f.advice = "add a handler or an init (--command 'tini -- PROGRAM'); if it installs one later, wait for that with --ready"
	}
	return f
}

// refused describes refused tasks. They were refused by the program's cgroup, or by its
// parent if the parent's count rose above before. It returns "" if there are none.
func refused(in *procs.Groups, before int64) string {
	own, above, limit := refusals(in)
	if own == 0 && above <= before {
		return ""
	}
	return fmt.Sprintf("it was refused more tasks than its limit of %d", limit)
}

// refusals returns the counts of [cgroup.PIDsRefused].
func refusals(in *procs.Groups) (own, above, limit int64) {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return 0, 0, 0
	}
	return cgroup.PIDsRefused(machine.Root(""), hs, in)
}
