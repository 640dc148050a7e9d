package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/workspace"
)

const (
	shownContainers = 500
	topBound        = 0.03 // of a core, at one look a second
)

// top lets tare top look at 500 containers for a while: processes that wait, each
// in a pid namespace and cgroups of its own, and beside each one with the name of
// a shim.
func (b *bench) top() error {
	run, err := workspace.New(workspace.DefaultRoots())
	if err != nil {
		return err
	}
	if err := probe.Install(b.dir); err != nil {
		return errors.Join(err, run.Close())
	}
	var c contained
	err = c.fill(filepath.Join(b.dir, probe.Name), run.ID)
	if err == nil {
		err = b.look()
	}
	c.end()
	return errors.Join(err, run.Close())
}

// contained are made-up containers.
type contained struct{ processes []*exec.Cmd }

func (c *contained) fill(program, id string) error {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	controllers := []string{"memory", "cpuacct", "cpu", "blkio", "pids"}
	if cgroup.ModeOf(hs) == cgroup.V2 {
		controllers = []string{"memory", "cpu", "io", "pids"}
	}
	parent := cgroup.Prefix + id + "/bench"
	if err := cgroup.Delegate(hs, parent, controllers...); err != nil {
		return err
	}
	for i := range shownContainers {
		name := fmt.Sprintf("%s-%d", id, i)
		first := exec.Command(program, name)
		first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
		if err := c.start(first); err != nil {
			return err
		}
		for _, h := range cgroup.Using(hs, controllers...) {
			dir := filepath.Join(h.Mount, parent, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(first.Process.Pid)), 0o644); err != nil {
				return err
			}
		}
		shim := &exec.Cmd{Path: program, Args: []string{"containerd-shim-runc-v2", "-id=" + name}}
		if err := c.start(shim); err != nil {
			return err
		}
	}
	return nil
}

// start waits until the process says that it runs; it waits then.
func (c *contained) start(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.processes = append(c.processes, cmd)
	if n, err := out.Read(make([]byte, 256)); n == 0 {
		return fmt.Errorf("%s says nothing: %w", cmd.Path, err)
	}
	return nil
}

func (c *contained) end() {
	for _, p := range c.processes {
		_ = p.Process.Kill()
	}
	for _, p := range c.processes {
		_ = p.Wait()
	}
}

// look runs tare top on a terminal of its own.
func (b *bench) look() error {
	program, err := b.buildTare()
	if err != nil {
		return err
	}
	cpu, took, kib, bytes, err := b.drawn(exec.CommandContext(b.ctx, program, "top"), 160)
	if err != nil {
		return err
	}
	fmt.Printf("tare top on a terminal, %d containers with a shim each, a look a second for %s, load average %s\n", shownContainers, took.Round(time.Second), load())
	fmt.Printf("  %.2f %% of a core; bound: %.0f %%; %d KiB resident, %d KiB drawn\n\n", 100*float64(cpu)/float64(took), 100*topBound, kib, bytes>>10)
	return nil
}

// buildTare makes the command that is looked at.
func (b *bench) buildTare() (string, error) {
	program := filepath.Join(b.dir, "tare")
	build := exec.CommandContext(b.ctx, "go", "build", "-o", program, "./cmd/tare")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s (run from the project's root)", build, err, text)
	}
	return program, nil
}

// drawn is what a command that draws on a terminal of so many columns uses, and how
// many bytes it draws, until it is told to quit.
func (b *bench) drawn(tare *exec.Cmd, columns uint16) (cpu int64, took time.Duration, kib int, bytes int64, err error) {
	keys, terminal, err := openPTY(columns, 50)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer keys.Close()
	tare.Stdin, tare.Stdout, tare.Stderr = terminal, terminal, terminal
	tare.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = tare.Start()
	terminal.Close()
	if err != nil {
		return 0, 0, 0, 0, err
	}
	var read sync.WaitGroup
	read.Go(func() { bytes, _ = io.Copy(io.Discard, keys) }) // ends with EIO when nobody has the terminal
	cpu, took, kib, err = b.watch(tare.Process.Pid, 20*time.Second)
	_, quitErr := keys.Write([]byte("q"))
	err = errors.Join(err, quitErr, tare.Wait())
	keys.Close()
	read.Wait()
	return cpu, took, kib, bytes, err
}

// watch is what a process uses once it is under way.
func (b *bench) watch(pid int, d time.Duration) (cpu int64, took time.Duration, kib int, err error) {
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-b.ctx.Done():
		}
	}
	wait(5 * time.Second)
	id, err := procs.Identify(pid)
	if err != nil {
		return 0, 0, 0, err
	}
	begin, before := time.Now(), int64(0)
	if before, err = id.CPU(); err != nil {
		return 0, 0, 0, err
	}
	wait(d)
	after, err := id.CPU()
	if err != nil {
		return 0, 0, 0, err
	}
	took = time.Since(begin)
	kib, err = rss(pid)
	return after - before, took, kib, errors.Join(err, b.ctx.Err())
}

// openPTY opens a terminal, see pts(4): the side that a person sits at, and the
// program's.
func openPTY(columns, rows uint16) (person, program *os.File, err error) {
	if person, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	}
	if err == nil {
		program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		person.Close()
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	return person, program, nil
}
