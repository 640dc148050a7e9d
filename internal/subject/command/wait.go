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

// wait waits for the command to end and returns the time of its end. When ctx ends, the
// command's process group gets SIGTERM, and SIGKILL five seconds later, even if the command
// itself has ended by then. The error is then errEnded.
//
// The command is reaped last: until then its pid, which is also the group's id, is not reused.
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

// alive reports whether any process of a group is running. Signal 0 cannot tell, since it also
// succeeds for a leader that has ended but is not reaped.
func alive(group int) bool {
	for _, pid := range procs.All() {
		if s, err := procs.StatOf(pid); err == nil && s.Group == group && !s.Ended() {
			return true
		}
	}
	return false
}
