package cgroupstat

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// bytes reads a file of the group into the system's buffer, which the next call
// overwrites. It returns nil if the group does not have the file.
func (g *Group) bytes(i slot) ([]byte, error) {
	f := &g.files[i]
	switch f.state {
	case open:
		b, err := read(int(f.fd), g.system.buf)
		if err != nil {
			return nil, g.fault(i, err)
		}
		return b, nil
	case seldom:
		return g.once(i)
	}
	return nil, nil
}

// read reads a whole file by one pread.
func read(fd int, buf []byte) ([]byte, error) {
	n, err := machine.Retry(func() (int, error) { return unix.Pread(fd, buf, 0) })
	if err != nil {
		return nil, err
	}
	if n == len(buf) {
		return nil, fmt.Errorf("%w: it is longer than %d bytes", errForm, n)
	}
	return buf[:n], nil
}

// once opens a file, reads it and closes it.
func (g *Group) once(i slot) ([]byte, error) {
	folder, err := g.folder(i)
	if err != nil {
		return nil, g.fault(i, err)
	}
	defer unix.Close(folder)
	fd, alt, err := g.find(i, folder)
	g.files[i].alt = alt
	switch {
	case errors.Is(err, unix.ENOENT) && g.places[g.files[i].place].stands():
		return nil, nil
	case err != nil: // ENOENT included: the folder itself was removed
		return nil, g.fault(i, err)
	}
	defer unix.Close(fd)
	b, err := read(fd, g.system.buf)
	if err != nil {
		return nil, g.fault(i, err)
	}
	return b, nil
}

// folder opens the folder of a file. It fails if the folder belongs to a later group of
// the same path.
func (g *Group) folder(i slot) (int, error) {
	p := &g.places[g.files[i].place]
	fd, err := openFolder(p.tree, p.dir)
	if err != nil {
		return -1, err
	}
	if inode, err := inodeOf(fd); err != nil || inode != p.inode {
		unix.Close(fd)
		return -1, ErrGone
	}
	return fd, nil
}

// fault wraps an error of reading a file. The kernel returns ENODEV if the group was
// removed while the file was open.
func (g *Group) fault(i slot, err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, ErrGone) {
		return fmt.Errorf("cgroup %s: %w", g.path, ErrGone)
	}
	return fmt.Errorf("read %s: %w", g.where(i), err)
}
