// Package cgroupstat reads what cgroups are charged for, on machines with cgroup v1,
// v2 or both.
//
// [Group.Sample] is the reading for a sampler's tick: three files on descriptors
// that are kept, one pread each, without an allocation. [Group.Read] is everything
// that a record holds of a group, for the edges of phases; the other files that it
// needs are opened for it and closed, since one that stays open has the kernel
// keep five KiB for it, which would be in the node's change of memory for every
// sandbox (seventeen KiB are for a group that is sampled). No group that gets the
// same path later is ever taken for the one that was opened.
//
// What files hold is described by the kernel in
// Documentation/admin-guide/cgroup-v1/memory.rst (5.2, "stat file") and
// Documentation/admin-guide/cgroup-v2.rst ("Memory Interface Files", "CPU
// Interface Files", "IO Interface Files"). A file is read in one piece: the
// kernel makes all of it for a read from its beginning. Different files are read
// one after the other and do not add up to the byte.
//
// Two things in mm/memcontrol.c bound how exact they are. Usage is charged to
// CPUs in batches of 64 pages, so that it may be above the truth by as much for
// every CPU. memory.stat is added up every two seconds, and at a reading only when
// more than 64 pages for every CPU have changed: so much it may be behind until
// then. On four CPUs that is one MiB, on 128 it is 32. Who wants figures that are
// right to the page lets the group rest for two seconds before.
package cgroupstat

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/node/machine"
)

// What can be wrong with a group; errors wrap them. A file that may not be read
// gives os.ErrPermission.
var (
	ErrGone = fmt.Errorf("the cgroup is gone: %w", fs.ErrNotExist) // or was never there
	errForm = errors.New("it has a form that no kernel gives it")  // nothing of the file is used
	errPath = errors.New("not a path of a cgroup")
)

// System is the mounted hierarchies of a machine. It and its groups may be used
// by several goroutines; they take turns.
type System struct {
	root  machine.Root
	trees []tree

	mu    sync.Mutex // guards what follows, and the descriptors of all groups
	buf   []byte
	kept  int
	most  int
	idle  time.Duration
	disks disk.Disks
}

// tree is one mounted hierarchy.
type tree struct {
	machine.Hierarchy
	mount int // descriptor of the mountpoint, opened as a path
}

// bufferSize is far more than any of the files has; io.stat has a hundred bytes
// for each disk.
const bufferSize = 64 << 10

// Open finds the mounted hierarchies. The error says why none can be read.
func Open(root machine.Root) (*System, error) {
	mounted, err := root.Cgroups()
	if err != nil {
		return nil, fmt.Errorf("find the mounted cgroup hierarchies: %w", err)
	}
	s := &System{root: root, buf: make([]byte, bufferSize), most: allowance()}
	for _, h := range mounted {
		// The CPU time of a group is in version 2 without any controller.
		if h.Version == 2 || slices.ContainsFunc(controllers1, h.Has) {
			err = errors.Join(err, s.add(h))
		}
	}
	if len(s.trees) == 0 {
		if err == nil {
			err = errors.New("no hierarchy with one of the controllers memory, cpuacct, cpu, blkio, io, pids is mounted; mount -t cgroup2 none /sys/fs/cgroup")
		}
		return nil, fmt.Errorf("read cgroups: %w", err)
	}
	return s, nil // a hierarchy that cannot be opened is as one that is not mounted
}

func (s *System) add(h machine.Hierarchy) error {
	fd, err := unix.Open(string(s.root)+h.Mount, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", h.Mount, err)
	}
	s.trees = append(s.trees, tree{h, fd})
	return nil
}

// Close gives back what the system holds. Its groups are closed on their own.
func (s *System) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.trees {
		if s.trees[i].mount >= 0 {
			unix.Close(s.trees[i].mount)
		}
		s.trees[i].mount = -1
	}
}

// allowance is how many descriptors may be kept: what the process may have, less
// what the rest of it needs. Go raises a process's soft limit to the hard one when
// it starts, and gives the old one to what it executes; to set it here would
// change it for everything that is weighed.
func allowance() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 512
	}
	return int(min(l.Cur, 1<<20)) - int(min(l.Cur/2, 512))
}
