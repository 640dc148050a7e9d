package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/thread"
)

// patience is the timeout for the start and the end of a process, on a busy node.
const patience = 30 * time.Second

// child is a process of the load.
type child struct {
	name   string // "the load's server"
	cmd    *exec.Cmd
	in     *os.File
	pipe   *os.File
	out    *bufio.Reader
	stderr beginning
	ended  chan struct{} // closed after it has ended
	kill   func()
	killed func() error // returns an error after kill, or once the context has ended
}

// begin executes tare as a process of the load, in the network namespace net, if any. It
// moves the process into the cgroups and sends it the configuration, if any. The process
// ends with ctx.
func begin(ctx context.Context, verb, name string, net *os.File, groups []string, config any) (*child, error) {
	ctx, kill := context.WithCancel(ctx)
	c := &child{name: name, ended: make(chan struct{}), kill: kill, killed: ctx.Err}
	if err := c.start(ctx, verb, net); err != nil {
		kill()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	for _, group := range groups {
		if err := enter(group, c.cmd.Process.Pid); err != nil {
			c.kill()
			return nil, errors.Join(fmt.Errorf("put %s into its cgroup: %w", name, err), c.close())
		}
	}
	if config == nil {
		return c, nil
	}
	// After EPIPE, hear returns why the process has ended.
	if err := write(c.in, config); err != nil && !errors.Is(err, syscall.EPIPE) {
		c.kill()
		return nil, errors.Join(fmt.Errorf("configure %s: %w", name, err), c.close())
	}
	return c, nil
}

func (c *child) start(ctx context.Context, verb string, net *os.File) error {
	inR, inW, err := os.Pipe()
	if err != nil {
		return err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, inR.Close(), inW.Close())
	}
	c.in, c.pipe, c.out = inW, outR, bufio.NewReaderSize(outR, longestLine)
	c.cmd = exec.CommandContext(ctx, "/proc/self/exe", verb) // not its path, which may have been replaced
	c.cmd.Args[0], c.cmd.Env = "tare", environment(os.Environ())
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inR, outW, &c.stderr
	// A new session protects it from Ctrl-C in the terminal; tare ends it.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	err = thread.Parent(ctx, func() error {
		if err := enterNet(net); err != nil {
			return err
		}
		return c.cmd.Start()
	})
	inR.Close()
	outW.Close()
	if err != nil {
		return errors.Join(err, inW.Close(), outR.Close())
	}
	go func() {
		_ = c.cmd.Wait() // cmd has the state
		close(c.ended)
	}()
	return nil
}

// enterNet moves the calling thread into a network namespace, if any.
func enterNet(net *os.File) error {
	if net == nil {
		return nil
	}
	if err := unix.Setns(int(net.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace of the server: setns: %w", err)
	}
	return nil
}

// environment returns tare's environment without the variables of fortio's log.
func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return strings.HasPrefix(s, "LOGGER_") })
}

// enter moves a process into a cgroup, of v1 or v2.
func enter(group string, pid int) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(group, &fs); err != nil {
		return fmt.Errorf("look at %s: %w", group, err)
	}
	if fs.Type != unix.CGROUP_SUPER_MAGIC && fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%s is not a cgroup", group)
	}
	f, err := os.OpenFile(filepath.Join(group, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strconv.Itoa(pid))
	return err
}

// hear reads the next line of the process until a time.
func (c *child) hear(to any, until time.Time) error {
	if err := c.pipe.SetReadDeadline(until); err != nil {
		return err
	}
	err := read(c.out, to)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.kill()
		return fmt.Errorf("%s (process %d) timed out and was killed", c.name, c.cmd.Process.Pid)
	case errors.Is(err, io.EOF):
		select {
		case <-c.ended:
		case <-time.After(patience): // it has closed its output and still runs
			c.kill()
			<-c.ended
		}
		return c.why()
	}
	c.kill()
	return fmt.Errorf("%s (process %d): malformed answer: %w", c.name, c.cmd.Process.Pid, err)
}

// why returns the reason of an unexpected end.
func (c *child) why() error {
	if said := c.stderr.String(); said != "" && c.cmd.ProcessState.Exited() {
		return fmt.Errorf("%s: %s", c.name, said)
	}
	return fmt.Errorf("%s (process %d) ended before its time: %s", c.name, c.cmd.Process.Pid, c.cmd.ProcessState)
}

// cpu returns the CPU time of the process in ns, or -1 if unknown.
func (c *child) cpu() int64 {
	if id, err := procs.Identify(c.cmd.Process.Pid); err == nil {
		if ns, err := id.CPU(); err == nil && !c.over() {
			return ns
		}
	}
	select {
	case <-c.ended:
		return int64(c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime())
	case <-time.After(time.Second): // it has ended, and Wait has not returned
		return -1
	}
}

func (c *child) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// close ends the process by closing its input, then by a kill. It returns an error if the
// process failed.
func (c *child) close() error {
	defer c.kill()
	c.in.Close()
	var err error
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.kill()
		<-c.ended
		err = fmt.Errorf("%s (process %d) had to be killed", c.name, c.cmd.Process.Pid)
	}
	c.pipe.Close()
	if err == nil && c.killed() == nil && !c.cmd.ProcessState.Success() {
		err = c.why()
	}
	return err
}

// beginning keeps the first part of a process's stderr.
type beginning struct{ kept bytes.Buffer }

func (b *beginning) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), 2048-min(b.kept.Len(), 2048))])
	return len(p), nil
}

// String returns it as one line without control characters. Call it after the end of the
// process.
func (b *beginning) String() string {
	return term.Clean(strings.Join(strings.Fields(b.kept.String()), " "))
}
