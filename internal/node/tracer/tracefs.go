package tracer

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/thread"
)

// tracefs is the kernel's trace events, in an instance of our own, so that other
// users of them are not disturbed. It reads the per-CPU buffers as they are
// (trace_pipe_raw), never the text that is made of them: names of files and
// processes are in it, and nothing keeps them from looking like events.
//
// The events have no arguments. These are read from /proc as soon as an exec
// arrives; what has ended by then keeps them for itself, and what has executed
// something else meanwhile shows that. Exit codes are not told either: -1 unless
// the process still waits for its parent.
type tracefs struct {
	listener
	root     int    // the top folder of a tracefs
	instance string // below root; empty: not made
	events   []*format
	cpus     []int  // trace_pipe_raw of each CPU
	page     []byte // what is read at once
}

var instanceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func openTracefs(o Options, q *queue) (_ source, err error) {
	if err := initialPids(); err != nil {
		return nil, err
	}
	if !littleEndian() {
		return nil, fmt.Errorf("the events' form on this architecture is not known: %w", ErrUnsupported)
	}
	if !instanceName.MatchString(o.Instance) {
		return nil, fmt.Errorf("%q is no name for an instance", o.Instance)
	}
	t := &tracefs{root: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.root, err = tracefsRoot(); err != nil {
		return nil, err
	}
	name := "instances/" + o.Instance
	if err := unix.Mkdirat(t.root, name, 0o700); err != nil {
		return nil, fmt.Errorf("tracefs: make %s: %w", name, err)
	}
	t.instance = name
	if err := t.prepare(); err != nil {
		return nil, fmt.Errorf("tracefs: %w", err)
	}
	return t, t.listen(q, t.cpus, t.fill)
}

// tracefsRoot opens a mounted tracefs; where there is none, one that only a
// thread that is gone by then had in its own mount namespace.
func tracefsRoot() (int, error) {
	const magic = 0x74726163 // TRACEFS_MAGIC of linux/magic.h
	places := []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}
	for _, place := range places {
		var st unix.Statfs_t
		if unix.Statfs(place, &st) == nil && st.Type == magic {
			return unix.Open(place, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
	}
	root := -1
	err := thread.Apart(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make mounts private: %w", err)
		}
		err := unix.Mount("tracefs", places[0], "tracefs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		if err == nil {
			root, err = unix.Open(places[0], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		return err
	})
	switch {
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENOENT):
		return -1, fmt.Errorf("the kernel has no tracefs (%w): %w", err, ErrUnsupported)
	case err != nil:
		return -1, fmt.Errorf("mount tracefs: %w", err)
	}
	return root, nil
}

// prepare sets the instance up, and switches its events on last.
func (t *tracefs) prepare() error {
	if err := t.write("trace_clock", "mono"); err != nil {
		return fmt.Errorf("this kernel's events are not on CLOCK_MONOTONIC: %w", err)
	}
	if err := t.write("buffer_size_kb", "2048"); err != nil {
		return err
	}
	// A reader is woken up by the first event (Linux 5.0; before, always).
	if err := t.write("buffer_percent", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	page, err := t.text("events/header_page")
	if err != nil {
		return err
	}
	size, err := pageSize(page)
	if err != nil {
		return err
	}
	t.page = make([]byte, size)
	names := map[string][]string{
		"task/task_newtask":        {"pid", "comm", "clone_flags"},
		"sched/sched_process_exec": {"filename", "pid"},
		"sched/sched_process_exit": {"comm", "pid"},
	}
	for name, wants := range names {
		text, err := t.text("events/" + name + "/format")
		if err != nil {
			return err
		}
		f, err := parseFormat(text)
		if err != nil {
			return fmt.Errorf("events/%s/format: %w", name, err)
		}
		for _, want := range wants {
			if _, ok := f.fields[want]; !ok {
				return fmt.Errorf("events/%s has no %s", name, want)
			}
		}
		t.events = append(t.events, f)
	}
	if err := t.openCPUs(); err != nil {
		return err
	}
	for name := range names {
		if err := t.write("events/"+name+"/enable", "1"); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracefs) openCPUs() error {
	dir, err := t.open("per_cpu", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "cpu") {
			continue
		}
		path := t.instance + "/per_cpu/" + name + "/trace_pipe_raw"
		fd, err := unix.Openat(t.root, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		t.cpus = append(t.cpus, fd)
	}
	return nil
}

func (t *tracefs) open(name string, flags int) (*os.File, error) {
	path := t.instance + "/" + name
	fd, err := unix.Openat(t.root, path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (t *tracefs) write(name, value string) error {
	f, err := t.open(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

// text reads a small file, of the instance or where only the top has it.
func (t *tracefs) text(name string) (string, error) {
	f, err := t.open(name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	n, err := f.Read(b)
	return string(b[:n]), err
}

// fill reads the CPUs' buffers to their ends.
func (t *tracefs) fill() error {
	for _, fd := range t.cpus {
		for {
			n, err := unix.Read(fd, t.page)
			if err != nil || n <= 0 {
				break
			}
			lost, err := pages(t.page[:n], func(time int64, payload []byte) {
				if r, ok := t.parse(time, payload); ok {
					t.held = append(t.held, r)
				}
			})
			if err != nil {
				lost++
			}
			t.missed.Add(lost)
		}
	}
	return nil
}

func (t *tracefs) close() error {
	err := t.stop()
	for _, fd := range t.cpus {
		unix.Close(fd)
	}
	if t.instance != "" {
		err = errors.Join(err, removeInstance(t.root, t.instance))
	}
	if t.root >= 0 {
		unix.Close(t.root)
	}
	return err
}

func removeInstance(root int, name string) error {
	if err := unix.Unlinkat(root, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("tracefs: remove %s: %w", name, err)
	}
	return nil
}

// Sweep removes instances of tracefs whose names begin like that, which an
// interrupted run has left: it is not asked whether the run is alive. Where
// there is no tracefs, there is nothing to remove.
func Sweep(instancePrefix string) error {
	if !instanceName.MatchString(instancePrefix) {
		return fmt.Errorf("%q is no beginning of an instance's name", instancePrefix)
	}
	return sweep(func(name string) bool { return strings.HasPrefix(name, instancePrefix) })
}

// sweepChecks removes the instances of checks whose process is gone, and of one
// that had this process's pid before. What cannot be removed is for the next check.
func sweepChecks() {
	if initialPids() != nil {
		return // the names have pids of another namespace
	}
	_ = sweep(func(name string) bool {
		number, ok := strings.CutPrefix(name, checks)
		pid, err := strconv.Atoi(number)
		if !ok || err != nil || pid <= 0 || pid > maxPid {
			return false
		}
		return pid == os.Getpid() || errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	})
}

func sweep(left func(name string) bool) error {
	root, err := tracefsRoot()
	if errors.Is(err, ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(root)
	fd, err := unix.Openat(root, "instances", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tracefs: instances: %w", err)
	}
	dir := os.NewFile(uintptr(fd), "instances")
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	errs := []error{err}
	for _, name := range names {
		if left(name) {
			errs = append(errs, removeInstance(root, "instances/"+name))
		}
	}
	return errors.Join(errs...)
}
