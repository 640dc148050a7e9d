package procs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// What can be wrong with a process; errors wrap them.
var (
	ErrGone   = errors.New("the process is gone")
	errReused = fmt.Errorf("another has its pid: %w", ErrGone)
	errForm   = errors.New("it is of an unknown form")
)

// Gone tells whether an error says that a process, or a thread, has ended.
func Gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, ErrGone)
}

// Count counts what could not be read, of a process or a cgroup, by what the error
// says; nil is nothing.
func Count(p *record.Problems, err error) {
	switch {
	case err == nil:
		return
	case errors.Is(err, errReused):
		p.Reused++
	case Gone(err):
		p.Gone++
	case errors.Is(err, fs.ErrPermission):
		p.Denied++
	default:
		p.Broken++
	}
	p.Note(err.Error())
}

// Reader reads processes into a buffer of its own, and is for one goroutine. Its
// zero value reads this machine's.
type Reader struct {
	Root   machine.Root
	buffer []byte
}

// Dir is /proc/PID, held open: what is opened below it is of that process, or an
// error, also where the pid was given to another meanwhile.
type Dir struct {
	reader *Reader
	fd     int
	path   string
}

// Open opens a process's folder.
func (r *Reader) Open(pid int) (Dir, error) {
	path := string(r.Root) + "/proc/" + strconv.Itoa(pid)
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return Dir{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return Dir{r, fd, path}, nil
}

// Close gives the folder back.
func (d Dir) Close() { unix.Close(d.fd) }

// MaxPid is the largest that the kernel gives, PID_MAX_LIMIT of linux/threads.h.
const MaxPid = 1 << 22

// What is read of each file at most, and of a list of threads.
const (
	fileLimit  = 64 << 10
	maxThreads = 1 << 16
)

// Read reads a whole file, which is valid until the reader's next. One that is
// longer than a kernel would write it is an error.
func (d Dir) Read(name string) ([]byte, error) {
	b, err := d.head(name, fileLimit+1)
	if err == nil && len(b) > fileLimit {
		err = fmt.Errorf("read %s/%s: it is longer than the %d bytes that a kernel would write", d.path, name, fileLimit)
	}
	return b, err
}

// open opens a file of the folder for reading.
func (d Dir) open(name string, flags int) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0) })
	if err != nil {
		return 0, &os.PathError{Op: "read", Path: d.path + "/" + name, Err: err}
	}
	return fd, nil
}

// head reads the first limit bytes of a file. It goes past package os, whose
// files cost as much again as what is read here.
func (d Dir) head(name string, limit int) ([]byte, error) {
	fd, err := d.open(name, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	r := d.reader
	if r.buffer == nil {
		r.buffer = make([]byte, 8<<10)
	}
	n := 0
	for n < limit {
		if n == len(r.buffer) {
			r.buffer = append(r.buffer, make([]byte, len(r.buffer))...)
		}
		room := r.buffer[n:min(limit, len(r.buffer))]
		got, err := retry(func() (int, error) { return unix.Read(fd, room) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: d.path + "/" + name, Err: err}
		}
		n += got
		if got < len(room) { // these files are written out whole: there is no more
			break
		}
	}
	return r.buffer[:n], nil
}

func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Exe is the program's file, "" where there is none or it may not be told.
func (d Dir) Exe() string { return strings.TrimSuffix(d.link("exe"), " (deleted)") }

// Namespaces are those that the process is in, as "net:[4026531840]", without what may not
// be read.
func (d Dir) Namespaces() (all []string) {
	for _, kind := range []string{"ipc", "mnt", "net", "pid", "uts"} {
		if space := d.link("ns/" + kind); space != "" {
			all = append(all, space)
		}
	}
	return all
}

func (d Dir) link(name string) string {
	buffer := make([]byte, 512)
	n, err := unix.Readlinkat(d.fd, name, buffer)
	if err != nil || n <= 0 {
		return ""
	}
	return string(buffer[:n])
}

// Args are a process's program and its arguments, at most 64 KiB of them.
func (d Dir) Args() ([]string, error) {
	text, err := d.head("cmdline", fileLimit)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

// Tasks lists the threads, ascending.
func (d Dir) Tasks() ([]int, error) {
	all, err := numbers(d.path + "/task")
	return all[:min(len(all), maxThreads)], err
}

// Task is the folder of a thread, for the name of a file in it.
func Task(tid int) string { return "task/" + strconv.Itoa(tid) + "/" }

// TaskName is a thread's name, "" where it ended.
func (d Dir) TaskName(tid int) string {
	text, err := d.Read(Task(tid) + "comm")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

// Pids lists the processes, ascending.
func (r *Reader) Pids() ([]int, error) { return numbers(string(r.Root) + "/proc") }

// Self is this process's pid as those files know it, 0 where they do not.
func (r *Reader) Self() int {
	link, err := os.Readlink(string(r.Root) + "/proc/self")
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(link)
	return pid
}

// numbers lists what of a folder has a number for a name.
func numbers(path string) ([]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	out := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 && n <= MaxPid {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}
