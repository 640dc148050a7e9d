package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
)

// grace is how long a process group has to end once it was told to.
const grace = 5 * time.Second

// wait waits for the command's end and says when that was. When ctx ends the
// command is told to end, with its process group, and what is left of that is
// killed five seconds later, be it without the command.
//
// The command is not reaped before all that is done: until then its number, which
// is the group's, is nobody else's.
func wait(ctx context.Context, p *os.Process) (state *os.ProcessState, returned int64, err error) {
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-ended:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			end(p.Pid)
		}
	}()
	for {
		if err = unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	returned = lane.Now()
	close(ended)
	<-told
	state, err = p.Wait() // which says what waitid did not
	return state, returned, err
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
	dir, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return true
	}
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		b, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// pid (comm) state ppid pgrp …: comm may have brackets and blanks.
		fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(fields) < 3 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
			continue
		}
		if pgrp, err := strconv.Atoi(string(fields[2])); err == nil && pgrp == group {
			return true
		}
	}
	return false
}
