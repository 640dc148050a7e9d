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

// Exec implements subject.Executor as ctr tasks exec does it: Tasks.Exec,
// Tasks.Wait, Tasks.Start, and Tasks.DeleteProcess at the end. The command has
// the rights and the environment of the container's own process. What comes
// between the container's shim and tare are two FIFOs in the run's own folder.
//
// When ctx ends, the command is told to end by SIGTERM, and a moment later
// everything in the container beside its first process is killed, so that
// commands which share a lane end together. What a command left running inside
// gVisor or a VM is out of reach until the container is removed.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	held, err := s.Inside(n, args)
	c := s.containers[held.Name]
	if err == nil && (c == nil || c.task == nil) {
		err = s.failed("exec", fmt.Errorf("the container on lane %d was not made", n))
	}
	if err != nil {
		return subject.Executed{}, err
	}
	e := &execution{container: c, pid: held.Pid, id: engine.NewName(s.env.RunID, n), guest: s.clock() == "guest", out: engine.Kept{Most: subject.MaxOutput}, err: engine.Kept{Most: subject.MaxOutput}}
	done := subject.Executed{Command: "task.Exec " + c.id + " " + lane.Quote(args)}
	done.Exit, err = e.run(ctx, s, args)
	done.Output, done.Stderr = e.out.String(), e.err.String()
	if err != nil {
		err = s.failed("exec", fmt.Errorf("%s: %w", done.Command, err))
	}
	return done, err
}

// execution is one command in a container.
type execution struct {
	*container
	pid      int    // of the container's own process
	id       string // of the command, in containerd
	guest    bool   // its processes are not the host's
	out, err engine.Kept
	process  client.Process
	exits    <-chan client.ExitStatus
}

// run runs it and returns its exit code. No call is bound to ctx: one that was
// given up might still succeed, and nobody would end what it began.
func (e *execution) run(ctx context.Context, s *session, args []string) (exit int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	spec := *e.spec
	spec.Args, spec.Terminal = args, false
	streams := cio.NewCreator(cio.WithStreams(nil, &e.out, &e.err), cio.WithFIFODir(s.fifos))
	if err := patiently(own, func(ctx context.Context) (err error) {
		e.process, err = e.task.Exec(ctx, e.id, &spec, streams)
		return err
	}); err != nil {
		return 0, fmt.Errorf("Tasks.Exec: %w", err)
	}
	defer func() { err = errors.Join(err, e.remove(own, s)) }()
	if e.exits, err = e.process.Wait(own); err != nil {
		return 0, fmt.Errorf("Tasks.Wait: %w", err)
	}
	if err := patiently(own, e.process.Start); err != nil {
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
		return 0, errors.Join(fmt.Errorf("it was ended before its time: %w", ctx.Err()), e.end(own))
	}
}

// drain waits until all output has arrived. What the command left running may
// hold it open.
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

// grace is how long a command has to end on SIGTERM, with what it started, before
// all of it is killed. Inside a guest only the command itself can be.
const grace = time.Second

// end ends the command, with what it started, and waits for its exit.
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
			kill() // what it left running
			return status.Error()
		case <-ctx.Done():
			return fmt.Errorf("it may still run: it was killed and has not exited %v later (%w)", patience, errors.Join(err, ctx.Err()))
		case <-time.After(pause):
		}
	}
}

// remove has containerd forget the command, and removes its FIFOs.
func (e *execution) remove(ctx context.Context, s *session) error {
	if io := e.process.IO(); io != nil {
		io.Cancel()
		io.Wait()
		_ = io.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, e.deletion())
	defer cancel()
	_, err := s.client.TaskService().DeleteProcess(ctx, &tasks.DeleteProcessRequest{ContainerID: e.container.id, ExecID: e.id})
	err = errgrpc.ToNative(err)
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("Tasks.DeleteProcess, so that it may still run until its container is removed: %w", err)
}

// deletion is how long containerd may take to forget the command. Where the
// runc shim calls runsc, a kill ends what waits for the command outside of the
// sandbox only, and the shim waits for its output as long as it runs inside.
func (e *execution) deletion() time.Duration {
	if e.guest {
		return 2 * time.Second
	}
	return patience
}

// patiently bounds one call.
func patiently(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return call(ctx)
}
