package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxKept bounds what is read of a kept file.
const maxKept = 1 << 20

// Keep writes a file into the run's folder: what has to be known about the run
// once it is dead. It is there whole or not at all, also after a power failure.
func (r *Run) Keep(name string, content []byte) error {
	f, err := persist(filepath.Join(r.dataDir(), name), content, func(*os.File) error { return nil })
	if err != nil {
		return fmt.Errorf("note what the run makes: %w", err)
	}
	return f.Close()
}

// unfinished ends the name of a file that persist has not written whole.
const unfinished = ".new"

// persist writes a file that is there whole or not at all, also after a power cut,
// and leaves it open. prepare is called before it has its name.
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
	// The folder's names, and its own in the one above. Not every file system can do
	// that, and not every user may read the folder above.
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if d, err := os.Open(dir); err == nil {
			_ = errors.Join(d.Sync(), d.Close())
		}
	}
	return f, nil
}

// Kept reads such a file. It is nil where the run kept none.
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
		return nil, fmt.Errorf("run %s: read what it made: %w", l.RunID, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKept))
	if err != nil {
		return nil, fmt.Errorf("run %s: read what it made: %w", l.RunID, err)
	}
	return b, nil
}
