package command

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// errEnded says that a command was told to end, and did not by itself.
var errEnded = errors.New("it was told to end")

// grace is how long a process group has to end once it was told to.
const grace = 5 * time.Second

// wait waits for the command's end and says when that was. When ctx ends the
// command is told to end, with its process group, and what is left of that is
// killed five seconds later, be it without the command; the error is errEnded then.
//
// The command is not reaped before all that is done: until then its number, which
// is the group's, is nobody else's.
func wait(ctx context.Context, p *os.Process) (state *os.ProcessState, returned int64, err error) {
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		end(p.Pid)
	})
	for {
		if err = unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	returned = machine.Now()
	var by error
	if !stop() {
		<-told
		by = errEnded
	}
	state, err = p.Wait() // which says what waitid did not
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

// alive tells whether somebody of a process group has not ended. The group's own
// process stays in it until it is reaped, so that a signal 0 tells nothing.
func alive(group int) bool {
	for _, pid := range procs.All() {
		if s, err := procs.StatOf(pid); err == nil && s.Group == group && !s.Ended() {
			return true
		}
	}
	return false
}
