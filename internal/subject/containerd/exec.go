package containerd

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Exec implements subject.Executor as ctr tasks exec does: Tasks.Exec, Tasks.Wait, Tasks.Start, and
// Tasks.DeleteProcess at the end. The command has the rights and the environment of the container's
// first process. Two FIFOs in the run's folder connect the shim with tare.
//
// At the end of ctx the command gets SIGTERM, and after a moment all processes in the container
// except the first are killed, so commands that share a lane end together. Processes inside gVisor or
// a VM cannot be reached until the container is removed.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	held, err := s.Inside(n, args)
	c := s.containers[held.Name]
	if err == nil && (c == nil || c.task == nil) {
		err = engine.Failed(s.name, "exec", fmt.Errorf("no container on lane %d", n))
	}
	if err != nil {
		return subject.Executed{}, err
	}
	e := &execution{container: c, pid: held.Pid, id: engine.NewName(s.env.RunID, n), guest: s.clock() == "guest", out: engine.Kept{Most: subject.MaxOutput}, err: engine.Kept{Most: subject.MaxOutput}}
	done := subject.Executed{Command: "task.Exec " + c.id + " " + lane.Quote(args)}
	done.Exit, err = e.run(ctx, s, args)
	done.Output, done.Stderr = e.out.String(), e.err.String()
	if err != nil {
		err = engine.Failed(s.name, "exec", fmt.Errorf("%s: %w", done.Command, err))
	}
	return done, err
}

// execution is a command in a container.
type execution struct {
	*container
	pid      int    // of the container's first process
	id       string // of the command, in containerd
	guest    bool   // its processes are in a guest kernel
	out, err engine.Kept
	process  client.Process
	exits    <-chan client.ExitStatus
}

// run runs the command and returns its exit code. The calls are not bound to ctx: an abandoned
// call might succeed later and leave a process that is never killed.
func (e *execution) run(ctx context.Context, s *session, args []string) (exit int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	spec := *e.spec
	spec.Args, spec.Terminal = args, false
	streams := cio.NewCreator(cio.WithStreams(nil, &e.out, &e.err), cio.WithFIFODir(s.fifos))
	if err := patiently(calls, func(ctx context.Context) (err error) {
		e.process, err = e.task.Exec(ctx, e.id, &spec, streams)
		return err
	}); err != nil {
		return 0, fmt.Errorf("Tasks.Exec: %w", err)
	}
	defer func() { err = errors.Join(err, e.remove(calls, s)) }()
	if e.exits, err = e.process.Wait(calls); err != nil {
		return 0, fmt.Errorf("Tasks.Wait: %w", err)
	}
	if err := patiently(calls, e.process.Start); err != nil {
		return 0, fmt.Errorf("Tasks.Start: %w", err)
	}
	select {
	case status := <-e.exits:
		if err := status.Error(); err != nil {
			return 0, fmt.Errorf("Tasks.Wait: %w", errgrpc.ToNative(err))
		}
		e.drain(ctx)
		return int(status.ExitCode()), nil
	case <-ctx.Done():
		return 0, errors.Join(fmt.Errorf("ended early: %w", ctx.Err()), e.end(calls))
	}
}

// drain waits until all output has arrived. Background processes of the command may keep the
// streams open.
func (e *execution) drain(ctx context.Context) {
	all := make(chan struct{})
	go func() {
		e.process.IO().Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-ctx.Done():
	case <-time.After(patience):
	}
}

// grace is the time from SIGTERM to the kill of the command's processes. Inside a guest only the
// command itself can be killed.
const grace = time.Second

// end ends the command and its descendants, and waits for its exit.
func (e *execution) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	kill := func() {
		if !e.guest {
			engine.KillCommands(e.container.id, e.pid)
		}
	}
	for signal, pause := syscall.SIGTERM, grace; ; signal, pause = syscall.SIGKILL, 20*time.Millisecond {
		if signal == syscall.SIGKILL {
			kill()
		}
		err := e.process.Kill(ctx, signal)
		select {
		case status := <-e.exits:
			kill() // its descendants
			return status.Error()
		case <-ctx.Done():
			return fmt.Errorf("it may still run: it has not exited %v after the kill (%w)", patience, errors.Join(err, ctx.Err()))
		case <-time.After(pause):
		}
	}
}

// remove deletes the command in containerd, and its FIFOs.
func (e *execution) remove(ctx context.Context, s *session) error {
	if io := e.process.IO(); io != nil {
		io.Cancel()
		io.Wait()
		_ = io.Close()
	}
	timeout := patience
	if e.guest { // with runsc, the runc shim waits for output until the command in the sandbox has ended
		timeout = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := s.client.TaskService().DeleteProcess(ctx, &tasks.DeleteProcessRequest{ContainerID: e.container.id, ExecID: e.id})
	err = errgrpc.ToNative(err)
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("Tasks.DeleteProcess (the command may run until its container is removed): %w", err)
}

// patiently calls call with the time-out patience.
func patiently(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return call(ctx)
}
