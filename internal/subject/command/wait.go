package command

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/child"
)

// errEnded means that a command was ended by tare.
var errEnded = errors.New("ended by tare")

// grace is the time from SIGTERM to SIGKILL of a process group.
const grace = 5 * time.Second

// wait waits for the command's end and returns its time. At the end of ctx the command's
// process group gets SIGTERM, and SIGKILL five seconds later, whether or not the command itself
// has ended; the error is errEnded then.
//
// The command is reaped after that: until then its number, which is the group's, is not reused.
func wait(ctx context.Context, p *os.Process) (state *os.ProcessState, returned int64, err error) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		end(p.Pid)
	})
	_ = child.AwaitExit(p.Pid) // p.Wait returns the error
	returned = machine.Now()
	var by error
	if !stop() {
		<-ended
		by = errEnded
	}
	state, err = p.Wait() // for the status and usage
	return state, returned, errors.Join(err, by)
}

// end ends a process group.
func end(group int) {
	_ = unix.Kill(-group, unix.SIGTERM)
	for deadline := time.Now().Add(grace); alive(group) && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	_ = unix.Kill(-group, unix.SIGKILL)
}

// alive reports whether a process of a group is running. The group's leader stays until it is
// reaped, so signal 0 does not show it.
func alive(group int) bool {
	for _, pid := range procs.All() {
		if s, err := procs.StatOf(pid); err == nil && s.Group == group && !s.Ended() {
			return true
		}
	}
	return false
}
