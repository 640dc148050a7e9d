// Package child runs untimed commands as children of tare, outside the lanes. Their output is
// bounded, they have no access to tare's terminal, and they are killed with their process
// group.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/thread"
)

// Command is a command to be run.
type Command struct {
	Args []string // the program's path first
	Env  []string
	Show string // for display; "" for Args

	// Enter is called on the thread that starts the command, before the start. Changes to that
	// thread (namespaces, cgroups) apply to the command and to no other thread. May be nil.
	Enter func() error
	// Group is the cgroup v2 of the command; nil for tare's.
	Group *os.File
	// End, if set, is called when ctx ends, to end the command. Processes that remain after the
	// grace period are killed.
	End func()
	// Begun is called with the command's pid. May be nil.
	Begun func(pid int)
}

func (c *Command) String() string {
	if c.Show != "" {
		return c.Show
	}
	return lane.Quote(c.Args)
}

// Run runs a command and waits for its end. At the end of ctx it is killed with its process
// group, and Run returns ctx's error and the output so far. A command without Enter also ends
// with tare.
func Run(ctx context.Context, c Command) (subject.Executed, error) {
	if c.Enter == nil {
		// The kernel sends the signal when the thread that started the command ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	return c.run(ctx, func(std *stdio) (int, error) { return c.start(std, c.Enter == nil) })
}

// run waits for the end of the process that begin started.
func (c *Command) run(ctx context.Context, begin func(std *stdio) (pid int, err error)) (subject.Executed, error) {
	ended := subject.Executed{Command: c.String()}
	if err := ctx.Err(); err != nil {
		return ended, fmt.Errorf("%s: not started: %w", ended.Command, err)
	}
	std, err := open()
	if err != nil {
		return ended, fmt.Errorf("%s: %w", ended.Command, err)
	}
	pid, err := begin(std)
	if err == nil {
		if c.Begun != nil {
			c.Begun(pid)
		}
		err = attend(ctx, pid, false, c.End, &ended)
	}
	ended.Output, ended.Stderr = std.close()
	if err != nil {
		return ended, fmt.Errorf("%s: %w", ended.Command, err)
	}
	return ended, nil
}

// patience bounds Ask.
const patience = 10 * time.Second

// Ask runs a command in the environment of tare's commands, for at most ten seconds.
func Ask(ctx context.Context, args []string) (subject.Executed, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return Run(ctx, Command{Args: args, Env: lane.Environment(nil)})
}

// start starts the command and closes tare's copies of its pipe ends. bound means that the
// kernel kills the command when this thread ends, and so also when tare ends.
func (c *Command) start(std *stdio, bound bool) (pid int, err error) {
	defer std.started()
	attr := &os.ProcAttr{
		Env: c.Env, Files: []*os.File{std.null, std.out.w, std.err.w},
		// In its own session it gets no Ctrl-C from the terminal.
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	if bound {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	if c.Group != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(c.Group.Fd())
	}
	begin := func() error {
		p, err := os.StartProcess(c.Args[0], c.Args, attr)
		if err != nil {
			return err
		}
		pid = p.Pid
		return p.Release() // attend waits for it
	}
	if c.Enter == nil {
		return pid, begin()
	}
	err = thread.Apart(func() error {
		if err := c.Enter(); err != nil {
			return err
		}
		return begin()
	})
	return pid, err
}

// blockSize is the unit of getrusage(2), whatever the device's is.
const blockSize = 512

// grace is the time for End to take effect.
const grace = 5 * time.Second

// attend waits for the end of a child and sets its exit code, 128+n for signal n, and the usage of
// the child and its reaped children (getrusage(2)). It kills the child when ctx ends. Unless leaves is set, it also kills the rest of the child's process
// group. No other process can join that group, since each command has its own session.
func attend(ctx context.Context, pid int, leaves bool, end func(), into *subject.Executed) error {
	var lock sync.Mutex
	reaped := false
	kill := func(all bool) {
		lock.Lock()
		defer lock.Unlock()
		if reaped {
			return // its pid may be reused
		}
		// A process group id is not reused while the child is in the group.
		if group, err := unix.Getpgid(pid); err == nil && (all || !leaves) && group > 1 && group != unix.Getpgrp() {
			_ = unix.Kill(-group, unix.SIGKILL)
		}
		if all {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	gone, ended := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		if end != nil {
			end()
			select {
			case <-gone:
			case <-time.After(grace):
			}
		}
		kill(true)
	})
	err := AwaitExit(pid)
	close(gone)
	called := !stop()
	if called {
		<-ended // the caller may release what end uses
	}
	if err != nil {
		return fmt.Errorf("wait for process %d: %w", pid, err)
	}
	kill(false)
	lock.Lock()
	defer lock.Unlock()
	err = collect(pid, into)
	if reaped = true; err == nil && called {
		err = fmt.Errorf("killed by an interruption or a time-out: %w", context.Cause(ctx))
	}
	return err
}

// AwaitExit waits for a child to exit and does not reap it.
func AwaitExit(pid int) error {
	return retry(func() error { return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) })
}

// retry repeats a system call that a signal interrupts.
func retry(call func() error) error {
	err := call()
	for errors.Is(err, unix.EINTR) {
		err = call()
	}
	return err
}

// collect reaps a child that has ended, see [attend].
func collect(pid int, into *subject.Executed) error {
	var status unix.WaitStatus
	var usage unix.Rusage
	if err := retry(func() error { _, err := unix.Wait4(pid, &status, 0, &usage); return err }); err != nil {
		return fmt.Errorf("wait for process %d: %w", pid, err)
	}
	fetched := usage.Inblock * blockSize
	into.CPU, into.Fetched, into.Exit = usage.Utime.Nano()+usage.Stime.Nano(), &fetched, status.ExitStatus()
	if status.Signaled() {
		into.Exit = 128 + int(status.Signal())
	}
	return nil
}
