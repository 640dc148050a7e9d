package attribution

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// folder is /proc/PID, held open: what is opened below it is of that process,
// or an error.
type folder struct {
	fd   int
	path string
}

func (r *Reader) open(pid int) (folder, error) {
	path := string(r.Root) + "/proc/" + strconv.Itoa(pid)
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return folder{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return folder{fd, path}, nil
}

func (d folder) close() { unix.Close(d.fd) }

// file reads a whole file of at most limit bytes into the reader's buffer. A
// longer one is an error.
func (r *Reader) file(d folder, name string, limit int) ([]byte, error) {
	b, err := r.head(d, name, limit+1)
	if err == nil && len(b) > limit {
		err = fmt.Errorf("read %s/%s: it is longer than the %d bytes that a kernel would write", d.path, name, limit)
	}
	return b, err
}

// head reads the first limit bytes of a file. What it returns is valid until
// the next call. It goes past package os, whose files cost as much again as
// what is read here.
func (r *Reader) head(d folder, name string, limit int) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, &os.PathError{Op: "read", Path: d.path + "/" + name, Err: err}
	}
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
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
			return fail(err)
		}
		n += got
		if got < len(room) { // these files are written out whole: there is no more
			break
		}
	}
	return r.buffer[:n], nil
}

// link reads a symbolic link, "" where there is none or it may not be read.
func (d folder) link(name string) string {
	buffer := make([]byte, 512)
	n, err := unix.Readlinkat(d.fd, name, buffer)
	if err != nil || n <= 0 {
		return ""
	}
	return strings.TrimSuffix(string(buffer[:n]), " (deleted)")
}

func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// names lists a folder, unordered.
func names(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
