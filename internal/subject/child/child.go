// Package child runs commands as children of tare's own, beside the lanes: what
// is not timed, but whose output and end matter. Their output is bounded, they
// see nothing of tare's terminal, and they end, with their process group, when
// tare says so.
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
	Show string // what is shown for it; its arguments when empty

	// Enter is called on the thread that starts the command, before it does:
	// what it changes of that thread (namespaces, cgroups) is the command's
	// too, and no other thread's. May be nil.
	Enter func() error
	// Group is the cgroup v2 in which the command begins; nil for tare's own.
	Group *os.File
	// End, when set, ends the command in its own way when ctx has ended; what is
	// still there some seconds later is killed.
	End func()
	// Begun is told the command's pid as soon as there is one. May be nil.
	Begun func(pid int)
	// Used is told what the command and the children that it waited for have used,
	// once it has ended: CPU time (ns), and bytes that storage was asked for, of
	// which the page cache held none (getrusage(2), ru_inblock). May be nil.
	Used func(cpu, fetched int64)
}

func (c *Command) String() string {
	if c.Show != "" {
		return c.Show
	}
	return lane.Quote(c.Args)
}

// Run runs a command and waits for its end. When ctx ends it is killed, with
// its process group, and ctx's error is returned beside what there was of it.
// One without Enter also ends with tare, however tare ends.
func Run(ctx context.Context, c Command) (subject.Executed, error) {
	if c.Enter == nil {
		// The signal is sent when the thread ends that started the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	return c.run(ctx, func(std *stdio) (int, error) { return c.start(std, c.Enter == nil) })
}

// run waits for the end of the process that begin has left to tare.
func (c *Command) run(ctx context.Context, begin func(std *stdio) (pid int, err error)) (subject.Executed, error) {
	ended := subject.Executed{Command: c.String()}
	if err := ctx.Err(); err != nil {
		return ended, fmt.Errorf("%s: not begun: %w", ended.Command, err)
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
		ended.Exit, err = attend(ctx, pid, false, c.End, c.Used)
	}
	ended.Output, ended.Stderr = std.close()
	if err != nil {
		return ended, fmt.Errorf("%s: %w", ended.Command, err)
	}
	return ended, nil
}

// patience is how long a command may take that only asks something.
const patience = 10 * time.Second

// Ask runs a command in the environment that all commands of tare's get, for at
// most ten seconds.
func Ask(ctx context.Context, args []string) (subject.Executed, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return Run(ctx, Command{Args: args, Env: lane.Environment(nil)})
}

// start starts the command and gives tare's copies of its ends of the pipes
// back, whatever comes of it. bound: the command is killed when this thread ends,
// and so when tare does, however that ends.
func (c *Command) start(std *stdio, bound bool) (pid int, err error) {
	defer std.started()
	attr := &os.ProcAttr{
		Env: c.Env, Files: []*os.File{std.null, std.out.w, std.err.w},
		// A session of its own keeps the terminal's Ctrl-C from it.
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
		return p.Release() // it is waited for here
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

// blockSize is that of getrusage(2), whatever the device's is.
const blockSize = 512

// grace is how long End may take to show.
const grace = 5 * time.Second

// attend waits for the end of a child, which is killed when ctx ends, and
// returns its exit code, 128+n for signal n. Nothing of its process group stays,
// unless it is a command that leaves something behind. That group is not tare's:
// all commands are started in sessions of their own, which nobody else can join.
func attend(ctx context.Context, pid int, leaves bool, end func(), used func(cpu, fetched int64)) (code int, err error) {
	var lock sync.Mutex
	reaped := false
	kill := func(all bool) {
		lock.Lock()
		defer lock.Unlock()
		if reaped {
			return // its number may be another's
		}
		// A group's number is no other's as long as the child is in it.
		if group, err := unix.Getpgid(pid); err == nil && (all || !leaves) && group > 1 && group != unix.Getpgrp() {
			_ = unix.Kill(-group, unix.SIGKILL)
		}
		if all {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	gone, told := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		if end != nil {
			end()
			select {
			case <-gone:
			case <-time.After(grace):
			}
		}
		kill(true)
	})
	for {
		err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(gone)
	called := !stop()
	if called {
		<-told // what end uses is the caller's again once this has returned
	}
	if err != nil {
		return 0, fmt.Errorf("wait for process %d: %w", pid, err)
	}
	kill(false)
	lock.Lock()
	defer lock.Unlock()
	code, err = collect(pid, used)
	reaped = true
	if err != nil {
		return 0, err
	}
	if called {
		return code, fmt.Errorf("killed, because tare was told to stop or the time was up: %w", context.Cause(ctx))
	}
	return code, nil
}

// collect takes the end of a child that has ended, see [attend].
func collect(pid int, used func(cpu, fetched int64)) (code int, err error) {
	var status unix.WaitStatus
	var usage unix.Rusage
	for {
		_, err = unix.Wait4(pid, &status, 0, &usage)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("wait for process %d: %w", pid, err)
	}
	if used != nil {
		used(usage.Utime.Nano()+usage.Stime.Nano(), usage.Inblock*blockSize)
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}
