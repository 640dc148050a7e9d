package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxKept limits the size of a kept file.
const maxKept = 1 << 20

// Keep writes a file for tare clean to the run's folder. The write is atomic, also across a
// power failure.
func (r *Run) Keep(name string, content []byte) error {
	f, err := persist(filepath.Join(r.dataDir(), name), content, func(*os.File) error { return nil })
	if err != nil {
		return fmt.Errorf("store the run's notes: %w", err)
	}
	return f.Close()
}

// unfinished is the suffix of a file that persist has not completed.
const unfinished = ".new"

// persist writes a file atomically, also across a power failure, and leaves it open. It
// calls prepare before the file gets its name.
func persist(path string, content []byte, prepare func(*os.File) error) (f *os.File, err error) {
	f, err = os.OpenFile(path+unfinished, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = prepare(f)
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	// Sync the entries in both folders. Some file systems do not support it, and some users
	// cannot read the parent.
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if d, err := os.Open(dir); err == nil {
			_ = errors.Join(d.Sync(), d.Close())
		}
	}
	return f, nil
}

// Kept reads a kept file, or returns nil if there is none.
func (l *Leftover) Kept(name string) ([]byte, error) {
	dir := l.memory()
	if is, _ := marked(dir, l.RunID); !is {
		return nil, nil
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: read its notes: %w", l.RunID, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKept))
	if err != nil {
		return nil, fmt.Errorf("run %s: read its notes: %w", l.RunID, err)
	}
	return b, nil
}
