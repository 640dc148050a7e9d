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
	if err := keep(filepath.Join(r.dataDir(), name), content); err != nil {
		return fmt.Errorf("note what the run makes: %w", err)
	}
	return nil
}

func keep(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
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
