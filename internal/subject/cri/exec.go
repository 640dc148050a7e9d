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

// answerSize bounds the reply of ExecSync: engines cut each stream to 16 MiB. A reply that
// exceeds the engine's own limit (containerd: 16 MiB in total) is an error.
const answerSize = 2*16<<20 + 1<<20

// giveUp is how long after the end of ctx an engine may still take to end a command. The
// engine's timeout is in whole seconds.
const giveUp = 4 * time.Second

// Exec implements subject.Executor by ExecSync. For a missing command some engines return an
// error and others the exit code 127 or 255.
//
// The call is not bound to ctx: after an abandoned call engines keep the command running, and
// CRI has no call to end it. At the end of ctx all processes in the container except the first
// are killed, so commands that share a lane end together. Inside a guest only the engine's
// timeout ends a command.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	c, err := s.Inside(n, args)
	h := s.held[c.Name]
	if err == nil && (h == nil || h.container == "") {
		err = engine.Failed(s.name, "exec", fmt.Errorf("lane %d has no container", n))
	}
	if err != nil {
		return subject.Executed{}, err
	}
	done, err := s.conn.exec(ctx, c, s.clock() == "guest", args)
	return done, engine.Failed(s.name, "exec", err)
}

// exec runs a command in a container. guest means that its processes are in a guest kernel.
func (c *connection) exec(ctx context.Context, in engine.State, guest bool, args []string) (subject.Executed, error) {
	done := subject.Executed{Command: "ExecSync " + in.Name + " " + lane.Quote(args)}
	reply, err := c.execute(ctx, in, guest, args)
	done.Exit, done.Output, done.Stderr = int(reply.GetExitCode()), cut(reply.GetStdout()), cut(reply.GetStderr())
	if err == nil && done.Exit < 0 {
		err = errors.New("the engine could not run it") // standard error has the engine's message
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

// execute makes the call, and ends the command at the end of ctx.
func (c *connection) execute(ctx context.Context, in engine.State, guest bool, args []string) (*api.ExecSyncResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	request := &api.ExecSyncRequest{ContainerId: in.ID, Cmd: args, Timeout: seconds(ctx)}
	answers := make(chan answer, 1)
	go func() {
		reply, err := c.runtime.ExecSync(call, request, grpc.MaxCallRecvMsgSize(answerSize))
		answers <- answer{reply, err}
	}()
	select {
	case a := <-answers:
		return a.ExecSyncResponse, a.err
	case <-ctx.Done():
	}
	early := fmt.Errorf("ended early: %w", ctx.Err())
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
	return nil, errors.Join(early, fmt.Errorf("the engine did not end it within %v: it may run until its container is removed", giveUp))
}

// seconds returns the remaining time of ctx plus one second, so that ctx ends first. It returns
// 0, which means no timeout, if ctx has no deadline.
func seconds(ctx context.Context) int64 {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return 1 + int64(math.Ceil(max(0, time.Until(end).Seconds())))
}

// cut bounds an output.
func cut(b []byte) string { return string(b[:min(len(b), subject.MaxOutput)]) }
