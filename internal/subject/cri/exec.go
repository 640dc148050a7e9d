package cri

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// answerSize is how large ExecSync's answer may be: engines cut each stream to
// 16 MiB. One that is larger than the engine itself may send, containerd's is
// 16 MiB in all, is an error.
const answerSize = 2*16<<20 + 1<<20

// giveUp is how much longer than ctx an engine may take to end a command by
// itself: its time-out is of whole seconds.
const giveUp = 4 * time.Second

// Exec implements subject.Executor by ExecSync. A command that is missing is an
// error with some engines and exit code 127 or 255 with others, as the engine
// reports it.
//
// The call is not bound to ctx: engines go on with a command whose call was
// given up, and CRI has none to end it. When ctx ends, everything in the
// container beside its first process is killed, so that commands which share a
// lane end together; inside a guest, only the engine's own time-out can.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	c, err := s.Inside(n, args)
	h := s.held[c.Name]
	if err == nil && (h == nil || h.container == "") {
		err = s.failed("exec", fmt.Errorf("lane %d has no container", n))
	}
	if err != nil {
		return subject.Executed{}, err
	}
	done, err := s.conn.exec(ctx, c, s.clock() == "guest", args)
	return done, s.failed("exec", err)
}

// exec runs a command in a container; guest: its processes are not this kernel's.
func (c *connection) exec(ctx context.Context, in engine.State, guest bool, args []string) (subject.Executed, error) {
	done := subject.Executed{Command: "ExecSync " + in.Name + " " + lane.Quote(args)}
	reply, err := c.execute(ctx, in, guest, args)
	done.Exit, done.Output, done.Stderr = int(reply.GetExitCode()), cut(reply.GetStdout()), cut(reply.GetStderr())
	if err == nil && done.Exit < 0 {
		err = errors.New("the engine could not run it") // its standard error is the engine's own
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", done.Command, err)
	}
	return done, err
}

type answer struct {
	*api.ExecSyncResponse
	err error
}

// execute makes the call, and ends the command when ctx does.
func (c *connection) execute(ctx context.Context, in engine.State, guest bool, args []string) (*api.ExecSyncResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	request := &api.ExecSyncRequest{ContainerId: in.ID, Cmd: args, Timeout: seconds(ctx)}
	answers := make(chan answer, 1)
	go func() {
		reply, err := c.runtime.ExecSync(own, request, grpc.MaxCallRecvMsgSize(answerSize))
		answers <- answer{reply, err}
	}()
	select {
	case a := <-answers:
		return a.ExecSyncResponse, a.err
	case <-ctx.Done():
	}
	early := fmt.Errorf("it was ended before its time: %w", ctx.Err())
	for until := time.Now().Add(giveUp); time.Now().Before(until); {
		if !guest {
			engine.KillCommands(in.ID, in.Pid)
		}
		select {
		case a := <-answers:
			return a.ExecSyncResponse, early
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil, errors.Join(early, fmt.Errorf("the engine has not ended it %v later: it may still run until its container is removed", giveUp))
}

// seconds are those that are left of ctx, and one more, so that it is ctx that
// ends first; 0, which is for ever, where it has no end.
func seconds(ctx context.Context) int64 {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return 1 + int64(math.Ceil(max(0, time.Until(end).Seconds())))
}

// cut bounds what is kept of an output.
func cut(b []byte) string { return string(b[:min(len(b), subject.MaxOutput)]) }
