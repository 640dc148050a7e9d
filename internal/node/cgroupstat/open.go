package cgroupstat

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Group is one cgroup: the same path in all hierarchies that have it.
type Group struct {
	system *System
	path   string
	places []place
	files  [slots]file
	denied []error // folders that could not be opened

	last Sample // with SkipIdle: the last sample with memory.stat
	read time.Time
}

// place is the folder of a group in one hierarchy. The inode number distinguishes it from
// a later one of the same name.
type place struct {
	tree  *tree
	dir   string // relative to the mountpoint
	inode uint64
}

type state uint8

const (
	absent state = iota // the kernel or the hierarchy does not have it
	seldom              // opened for every reading; also if no descriptor is left or permission is missing
	open                // kept open
)

// file is one file of a group.
type file struct {
	state state
	alt   uint8 // index of its name
	place uint8
	fd    int32
}

// Group opens a cgroup by its path, as in /proc/PID/cgroup, in every hierarchy that has
// it. The error wraps ErrGone if none has it, errPath if the path is invalid, and
// os.ErrPermission if no folder can be opened.
func (s *System) Group(path string) (*Group, error) {
	path, err := clean(path)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &Group{system: s, path: path}
	for i := range s.trees {
		if err := g.enter(&s.trees[i]); err != nil {
			g.closeFiles()
			return nil, err
		}
	}
	if len(g.places) == 0 {
		if err := errors.Join(g.denied...); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("cgroup %s: %w", path, ErrGone)
	}
	return g, nil
}

// enter opens the group's folder in a hierarchy and the files for every tick. A hierarchy
// without the group is not an error.
func (g *Group) enter(t *tree) error {
	dir, ok := t.Below(g.path)
	if !ok {
		return nil
	}
	fd, err := openFolder(t, dir)
	var inode uint64
	if err == nil {
		inode, err = inodeOf(fd)
		defer unix.Close(fd)
	}
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOTDIR):
		return nil
	case errors.Is(err, os.ErrPermission):
		g.denied = append(g.denied, fmt.Errorf("open the cgroup's folder %s/%s: %w", t.Mount, dir, err))
		return nil
	case err != nil:
		return fmt.Errorf("open the cgroup's folder %s/%s: %w", t.Mount, dir, err)
	}
	g.places = append(g.places, place{t, dir, inode})
	for i := range slots {
		// Both versions may count CPU time. Then that of v1 is read.
		if files, _ := t.in(i); files == nil || g.files[i].state != absent {
			continue
		}
		g.files[i] = file{state: seldom, place: uint8(len(g.places) - 1)}
		if i >= hot {
			continue
		}
		if err := g.open(i, fd); err != nil {
			return fmt.Errorf("%s: %w", g.where(i), err)
		}
		// A removed folder has no files.
		if g.files[i].state == absent && !g.places[g.files[i].place].stands() {
			return fmt.Errorf("cgroup %s: %w", g.path, ErrGone)
		}
	}
	return nil
}

// open opens a file of a folder and keeps it open. An unreadable file is retried at every
// reading, which reports the error.
func (g *Group) open(i slot, folder int) error {
	f, s := &g.files[i], g.system
	if f.state = seldom; s.kept >= s.most {
		return nil
	}
	fd, alt, err := g.find(i, folder)
	switch {
	case err == nil:
		f.state, f.alt, f.fd = open, alt, int32(fd)
		s.kept++
	case errors.Is(err, unix.ENOENT):
		f.state = absent
	case !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENFILE) && !errors.Is(err, os.ErrPermission):
		return err
	}
	return nil
}

// find opens a file by the first name that exists in the folder.
func (g *Group) find(i slot, folder int) (fd int, alt uint8, err error) {
	files, _ := g.places[g.files[i].place].tree.in(i)
	for alt, name := range files {
		if fd, err = openFile(folder, name); !errors.Is(err, unix.ENOENT) {
			return fd, uint8(alt), err
		}
	}
	return -1, 0, unix.ENOENT
}

func openFile(folder int, name string) (int, error) {
	return machine.Retry(func() (int, error) {
		return unix.Openat(folder, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	})
}

func openFolder(t *tree, dir string) (int, error) {
	return unix.Openat(t.mount, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
}

func inodeOf(fd int) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Ino, err
}

// stands reports whether the folder still exists and is the same.
func (p *place) stands() bool {
	var st unix.Stat_t
	err := unix.Fstatat(p.tree.mount, p.dir, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Ino == p.inode
}

// where returns the path of a file, for messages.
func (g *Group) where(i slot) string {
	p := &g.places[g.files[i].place]
	files, _ := p.tree.in(i)
	return fmt.Sprintf("%s/%s/%s", p.tree.Mount, p.dir, files[min(int(g.files[i].alt), len(files)-1)])
}

// Close closes the group. Later reads return ErrGone.
func (g *Group) Close() {
	g.system.mu.Lock()
	defer g.system.mu.Unlock()
	g.closeFiles()
}

func (g *Group) closeFiles() {
	for i := range g.files {
		if f := &g.files[i]; f.state == open {
			unix.Close(int(f.fd))
			g.system.kept--
		}
		g.files[i] = file{}
	}
	g.places = nil
}
