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

// Causes that errors of this package wrap.
var (
	ErrGone   = errors.New("the process is gone")
	errReused = fmt.Errorf("another has its pid: %w", ErrGone)
	errForm   = errors.New("it is of an unknown form")
)

// Gone reports whether an error means that a process or a thread has ended.
func Gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, ErrGone)
}

// Count adds an error of reading a process or a cgroup to p, by its cause. It ignores nil.
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

// Reader reads processes into one buffer. One goroutine may use it. The zero value reads
// this machine's /proc.
type Reader struct {
	Root   machine.Root
	buffer []byte
}

// Dir is an open /proc/PID. Files opened below it belong to that process, or fail to
// open, even if the kernel has reused the pid.
type Dir struct {
	reader *Reader
	fd     int
	path   string
}

// Open opens the folder of a process.
func (r *Reader) Open(pid int) (Dir, error) {
	path := string(r.Root) + "/proc/" + strconv.Itoa(pid)
	fd, err := machine.Retry(func() (int, error) {
		return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return Dir{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return Dir{r, fd, path}, nil
}

// Close closes the directory.
func (d Dir) Close() { unix.Close(d.fd) }

// MaxPid is PID_MAX_LIMIT of linux/threads.h.
const MaxPid = 1 << 22

const (
	fileLimit  = 64 << 10 // bytes of one file
	maxThreads = 1 << 16
)

// Read returns a whole file. The slice is valid until the reader's next read. A file
// longer than a kernel would write is an error.
func (d Dir) Read(name string) ([]byte, error) {
	b, err := d.head(name, fileLimit+1)
	if err == nil && len(b) > fileLimit {
		err = fmt.Errorf("read %s/%s: it is longer than the %d bytes that a kernel would write", d.path, name, fileLimit)
	}
	return b, err
}

func (d Dir) open(name string, flags int) (int, error) {
	fd, err := machine.Retry(func() (int, error) { return unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0) })
	if err != nil {
		return 0, &os.PathError{Op: "read", Path: d.path + "/" + name, Err: err}
	}
	return fd, nil
}

// head returns the first limit bytes of a file. Package os would double the cost.
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
		got, err := machine.Retry(func() (int, error) { return unix.Read(fd, room) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: d.path + "/" + name, Err: err}
		}
		n += got
		if got < len(room) { // the kernel fills the buffer unless the file ends
			break
		}
	}
	return r.buffer[:n], nil
}

// Exe returns the path of the program, or "" if there is none or it is unreadable.
func (d Dir) Exe() string { return strings.TrimSuffix(d.link("exe"), " (deleted)") }

// Namespaces returns the readable namespaces of the process, as "net:[4026531840]".
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

// Args returns the program and its arguments, at most 64 KiB of them.
func (d Dir) Args() ([]string, error) {
	text, err := d.head("cmdline", fileLimit)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

// Tasks lists the thread ids in ascending order.
func (d Dir) Tasks() ([]int, error) {
	all, err := numbers(d.path + "/task")
	return all[:min(len(all), maxThreads)], err
}

// Task returns the folder of a thread, relative to that of its process.
func Task(tid int) string { return "task/" + strconv.Itoa(tid) + "/" }

// TaskName returns the name of a thread, or "" if it has ended.
func (d Dir) TaskName(tid int) string {
	text, err := d.Read(Task(tid) + "comm")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

// Pids lists the processes in ascending order.
func (r *Reader) Pids() ([]int, error) { return numbers(string(r.Root) + "/proc") }

// Self returns the pid of this process in the reader's /proc, or 0 if it is not there.
func (r *Reader) Self() int {
	link, err := os.Readlink(string(r.Root) + "/proc/self")
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(link)
	return pid
}

// numbers lists the entries of a folder that are pids, in ascending order.
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
