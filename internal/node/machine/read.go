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

// Read returns a whole file of at most limit bytes. A longer one is an error:
// kernels write these files, and where one is far too long something else is
// mounted over it.
func (r Root) Read(name string, limit int) ([]byte, error) {
	f, err := os.Open(string(r) + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, fmt.Errorf("read %s: it is longer than the %d bytes that a kernel would write; look whether something is mounted over it", name, limit)
	}
	return data, nil
}

// FirstLine returns a file's first line, without its end, and reads no more
// than limit bytes to find it.
func (r Root) FirstLine(name string, limit int) (string, error) {
	f, err := os.Open(string(r) + name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)))
	if err != nil {
		return "", err
	}
	line, _, found := bytes.Cut(data, []byte("\n"))
	if !found && len(data) == limit {
		return "", fmt.Errorf("read %s: its first line is longer than %d bytes; look whether something is mounted over it", name, limit)
	}
	return string(line), nil
}

// Exists tells whether there is a file, folder or link of that name.
func (r Root) Exists(name string) bool {
	_, err := os.Lstat(string(r) + name)
	return err == nil
}

// wordLimit is a page: sysfs gives no more in one file.
const wordLimit = 4096

// word returns the first line of a small file, or "" where it can't be read.
func (r Root) word(name string) string {
	line, err := r.FirstLine(name, wordLimit)
	if err != nil {
		return ""
	}
	return strings.Trim(line, " \t\x00") // device tree strings end in NUL
}

// own reads a file of the calling thread. A thread can be in a mount namespace
// of its own, so /proc/self, which is the first thread's, may be wrong;
// /proc/thread-self is there since Linux 3.17.
func (r Root) own(name string, limit int) ([]byte, error) {
	data, err := r.Read("/proc/thread-self/"+name, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return r.Read("/proc/self/"+name, limit)
	}
	return data, err
}

// OpenPlain opens a foreign file for reading, with flags such as O_NOFOLLOW. It refuses
// what is no plain file, and never waits for one.
func OpenPlain(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no plain file", path), err, f.Close())
	}
	return f, nil
}
