// Package cgroupstat reads the usage and the limits of cgroups v1, v2 or both.
//
// [Group.Sample] is for a sampler's tick: one pread of each of three open files, without
// an allocation. [Group.Read] reads everything that a record has of a group, at the edges
// of phases. It opens and closes the other files each time: the kernel needs five KiB for
// an open file, which would add to the node's memory for every sandbox. (A sampled group
// takes seventeen KiB.) A later group of the same path is never mistaken for the one that
// was opened.
//
// The files are described in Documentation/admin-guide/cgroup-v1/memory.rst (5.2, "stat
// file") and Documentation/admin-guide/cgroup-v2.rst ("Memory Interface Files", "CPU
// Interface Files", "IO Interface Files"). One read returns a consistent file. Files are
// read one after the other, so their sums can differ.
//
// mm/memcontrol.c limits the precision in two ways. The kernel charges usage in batches of
// 64 pages per CPU, so usage may be too high by that much. It updates memory.stat every
// two seconds, and at a read only if more than 64 pages per CPU have changed. So
// memory.stat may lag by that much: one MiB on four CPUs, 32 MiB on 128. For exact figures
// wait two seconds without activity in the group.
package cgroupstat

import (
	"cmp"
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

// Causes that errors of this package wrap. For an unreadable file it is os.ErrPermission.
var (
	ErrGone = fmt.Errorf("the cgroup is gone: %w", fs.ErrNotExist) // or never existed
	errForm = errors.New("it has a form that no kernel gives it")  // the whole file is discarded
	errPath = errors.New("not a path of a cgroup")
)

// System is the mounted hierarchies of a machine. It and its groups are safe for
// concurrent use.
type System struct {
	root  machine.Root
	trees []tree

	mu    sync.Mutex // guards the fields below and the descriptors of all groups
	buf   []byte
	kept  int
	most  int
	idle  time.Duration
	disks disk.Disks
}

// tree is one mounted hierarchy.
type tree struct {
	machine.Hierarchy
	mount int // O_PATH descriptor of the mountpoint
}

// bufferSize exceeds every file; io.stat has a hundred bytes per disk.
const bufferSize = 64 << 10

// Open finds the mounted hierarchies. It returns an error if none is readable.
func Open(root machine.Root) (*System, error) {
	mounted, err := root.Cgroups()
	if err != nil {
		return nil, fmt.Errorf("find the mounted cgroup hierarchies: %w", err)
	}
	s := &System{root: root, buf: make([]byte, bufferSize), most: allowance()}
	for _, h := range mounted {
		// v2 counts CPU time without any controller.
		if h.Version == 2 || slices.ContainsFunc(controllers1, h.Has) {
			fd, openErr := unix.Open(string(root)+h.Mount, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if openErr != nil {
				err = errors.Join(err, fmt.Errorf("open %s: %w", h.Mount, openErr))
				continue
			}
			s.trees = append(s.trees, tree{h, fd})
		}
	}
	if len(s.trees) == 0 {
		none := errors.New("no hierarchy with one of the controllers memory, cpuacct, cpu, blkio, io, pids is mounted; mount -t cgroup2 none /sys/fs/cgroup")
		return nil, fmt.Errorf("read cgroups: %w", cmp.Or(err, none))
	}
	return s, nil // an unreadable hierarchy counts as not mounted
}

// Close closes the hierarchies. Groups must be closed separately.
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

// allowance returns how many descriptors groups may keep open: the soft limit minus the
// needs of the rest of the process. Go raises the soft limit to the hard limit at start
// and restores it for child processes. Setting the limit here would change it for every
// measured process.
func allowance() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 512
	}
	return int(min(l.Cur, 1<<20)) - int(min(l.Cur/2, 512))
}
