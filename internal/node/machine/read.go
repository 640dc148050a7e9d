package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Read returns a whole file of at most limit bytes. A longer file is an error, because then
// something is mounted over a file of the kernel.
func (r Root) Read(name string, limit int) ([]byte, error) {
	data, err := r.head(name, limit+1)
	if len(data) > limit {
		return nil, fmt.Errorf("read %s: it is longer than the %d bytes that a kernel would write; check whether something is mounted over it", name, limit)
	}
	return data, err
}

// FirstLine returns the first line of a file without its end, of at most limit bytes.
func (r Root) FirstLine(name string, limit int) (string, error) {
	data, err := r.head(name, limit)
	line, _, found := bytes.Cut(data, []byte("\n"))
	if !found && len(data) == limit {
		return "", fmt.Errorf("read %s: its first line is longer than %d bytes; check whether something is mounted over it", name, limit)
	}
	return string(line), err
}

// head returns the first limit bytes of a file.
func (r Root) head(name string, limit int) ([]byte, error) {
	f, err := os.Open(string(r) + name)
	if err != nil {
		return nil, err
	}
	return readHead(f, limit)
}

func readHead(f *os.File, limit int) ([]byte, error) {
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)))
}

// Exists reports whether a file, folder or symbolic link exists.
func (r Root) Exists(name string) bool {
	_, err := os.Lstat(string(r) + name)
	return err == nil
}

const wordLimit = 4096 // sysfs files have at most a page

// Number reads a file with one number. It reports false for anything else.
func (r Root) Number(name string) (int64, bool) { return Number([]byte(r.Word(name))) }

// Keyed reads the numbers of a flat keyed file, such as cpu.stat. It returns an error and
// the other numbers if a line is malformed.
func (r Root) Keyed(name string) (map[string]int64, error) {
	text, err := r.Read(name, keyedLimit)
	values := map[string]int64{}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if n, ok := Number(value); ok {
			values[string(key)] = n
		} else {
			err = fmt.Errorf("read %s: %.80q is not a name and a number", name, line)
		}
	}
	return values, err
}

const keyedLimit = 64 << 10 // bytes; memory.stat has about sixty lines, /proc/vmstat two hundred

// Word returns the first line of a small file, or "" if it is unreadable.
func (r Root) Word(name string) string {
	line, err := r.FirstLine(name, wordLimit)
	if err != nil {
		return ""
	}
	return strings.Trim(line, " \t\x00") // device tree strings end in NUL
}

// ThreadFile reads a file of the calling thread, which can have another mount namespace
// than the first thread. /proc/thread-self exists since Linux 3.17.
func (r Root) ThreadFile(name string, limit int) ([]byte, error) {
	data, err := r.Read("/proc/thread-self/"+name, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return r.Read("/proc/self/"+name, limit)
	}
	return data, err
}

// Retry calls a system call until no signal interrupts it.
func Retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// OpenPlain opens a foreign file for reading, with flags such as O_NOFOLLOW. It fails if the
// file is not regular. It never blocks, and never reaches the driver of a device: the file is
// opened only after a look at its type.
func OpenPlain(path string, flags int) (*os.File, error) {
	look, err := os.OpenFile(path, unix.O_PATH|flags, 0)
	if err != nil {
		return nil, err
	}
	defer look.Close()
	if info, err := look.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", path), err)
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", look.Fd()), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	return f, nil
}

// ReadPlain returns the first limit bytes of a foreign file, see [OpenPlain].
func ReadPlain(path string, flags, limit int) ([]byte, error) {
	f, err := OpenPlain(path, flags)
	if err != nil {
		return nil, err
	}
	return readHead(f, limit)
}
