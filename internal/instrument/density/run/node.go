package run

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
)

// Resources other than memory and pids.
const (
	ownPIDs   = "pids of tare's cgroup"
	ownMemory = "memory of tare's cgroup"
	disk      = "disk"
	inodes    = "inodes"
)

func isTasks(name string) bool { return name == density.PIDs || name == ownPIDs }

// isCount reports whether a resource is a count rather than bytes.
func isCount(name string) bool { return isTasks(name) || strings.HasPrefix(name, inodes) }

// Machine is the node that tare runs on.
type Machine struct {
	Floor func(total int64) int64 // of memory, bytes
	Dir   string                  // directory of the run; its file system is guarded
	Roots map[string]string       // known storage directories of engines, by target name

	groups machine.Cgroups
	in     *procs.Groups
}

// Minimum reserves other than memory; the reserve is a twentieth of the total or
// this, whichever is larger. It must allow a user to log in.
const (
	leastTasks    = 256
	leastOwnTasks = 64
	leastOwnBytes = 64 << 20
	leastDisk     = 512 << 20
	leastInodes   = 1024
)

// Levels implements Node.
func (m *Machine) Levels() ([]Level, error) {
	h, err := nodestat.ReadHost("")
	if err != nil {
		return nil, err
	}
	all := []Level{{Name: density.Memory, Left: h.Available, Total: h.Total, Floor: m.Floor(h.Total), Least: 64 << 10}}
	if h.MaxTasks > 0 {
		all = append(all, Level{Name: density.PIDs, Left: h.MaxTasks - h.Tasks, Total: h.MaxTasks, Floor: max(h.MaxTasks/20, leastTasks), Least: 1})
	}
	if m.in == nil {
		hs, err := machine.Root("").Cgroups() // in a container, its own part of them
		in, inErr := procs.GroupsOf(os.Getpid())
		if err := errors.Join(err, inErr); err != nil {
			return nil, err
		}
		m.groups, m.in = hs, in
	}
	if left, limit, _, ok := cgroup.PIDsLeft("", m.groups, m.in); ok {
		all = append(all, ownTasks(left, limit))
	}
	if left, limit, _, ok := cgroup.MemoryLeft("", m.groups, m.in); ok {
		all = append(all, Level{Name: ownMemory, Left: left, Total: limit, Floor: max(limit/20, leastOwnBytes), Least: 4 << 10})
	}
	disks, err := m.disks()
	return append(all, disks...), err
}

// ownTasks returns the level of tasks in tare's own cgroup.
func ownTasks(left, limit int64) Level {
	return Level{Name: ownPIDs, Left: left, Total: limit, Floor: max(limit/20, leastOwnTasks), Least: 1}
}

// disks reads the file systems of the run's directory and of the engines' storage, each
// once.
func (m *Machine) disks() ([]Level, error) {
	seen := map[uint64]bool{}
	all, err := fileSystem(m.Dir, "", seen)
	for _, target := range slices.Sorted(maps.Keys(m.Roots)) {
		levels, rootErr := fileSystem(m.Roots[target], " of "+target, seen)
		all, err = append(all, levels...), errors.Join(err, rootErr)
	}
	return all, err
}

// fileSystem reads the file system of a directory, unless its device was already seen.
// File systems without a limit on inodes (btrfs) have no inode level.
func fileSystem(dir, of string, seen map[uint64]bool) ([]Level, error) {
	var device unix.Stat_t
	var st unix.Statfs_t
	if err := unix.Stat(dir, &device); err != nil {
		return nil, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if err := unix.Statfs(dir, &st); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if seen[device.Dev] {
		return nil, nil
	}
	seen[device.Dev] = true
	size, files := int64(st.Blocks)*st.Bsize, int64(st.Files)
	all := []Level{{Name: disk + of, Left: int64(st.Bavail) * st.Bsize, Total: size, Floor: max(min(size/20, 8<<30), leastDisk), Least: 4 << 10}}
	if files > 0 {
		all = append(all, Level{Name: inodes + of, Left: int64(st.Ffree), Total: files, Floor: max(files/20, leastInodes), Least: 1})
	}
	return all, nil
}

// Roots returns the storage directories of the targets' engines, if known. Engines on
// other machines or in other mount namespaces are skipped.
func Roots(targets []subject.Target) map[string]string {
	all := map[string]string{}
	for _, t := range targets {
		info := t.Info()
		root := cmp.Or(info.Config["storage root"], info.Config["root"]) // Docker's name
		if _, err := os.Stat(root); err == nil && filepath.IsAbs(root) && !strings.HasPrefix(info.Config["daemon"], "elsewhere") {
			all[info.Name] = root
		}
	}
	return all
}
