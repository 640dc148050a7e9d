package bpfstat

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// maxCgroups limits the walk over cgroups, as does [longestWalk].
const maxCgroups = 20000

// attachments are the known attach points of programs. The lists in at have no
// duplicates.
type attachments struct {
	at      map[uint32][]string
	cgroups map[uint64]string // paths by cgroup id
	xdp     map[int][]uint32  // program ids by interface index
	// interfaces holds the names of this network namespace's interfaces. elsewhere
	// holds the interface names of XDP programs in other namespaces, by program id.
	interfaces map[int]string
	elsewhere  map[uint32]string
}

func (at *attachments) add(program uint32, where string) {
	where = strings.TrimSpace(where)
	if !slices.Contains(at.at[program], where) {
		at.at[program] = append(at.at[program], where)
	}
}

// cgroup returns the path of a cgroup, or its number if the path is unknown.
func (at *attachments) cgroup(id uint64) string {
	return cmp.Or(at.cgroups[id], fmt.Sprintf("cgroup id %d, not seen here", id))
}

// walkCgroups finds the v2 cgroups and the programs attached to each, with or without a
// link.
func (m *Meter) walkCgroups(at *attachments) (problems []string) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup2"))
	if err != nil {
		return []string{fmt.Sprintf("read where cgroup2 is mounted: %v", err)}
	}
	until := time.Now().Add(longestWalk)
	for _, mount := range mounts {
		seen, err := walkBelow(mount.Mountpoint, maxCgroups, until, func(path string, e fs.DirEntry) bool {
			if e.IsDir() {
				m.cgroupAt(path, at)
			}
			return e.IsDir()
		})
		switch {
		case errors.Is(err, errMore):
			problems = append(problems, fmt.Sprintf("only the first %d cgroups of %s were asked what is attached to them", seen, mount.Mountpoint))
		case err != nil:
			problems = append(problems, fmt.Sprintf("look for cgroups in %s: %v", mount.Mountpoint, err))
		}
	}
	return problems
}

// cgroupAt records a cgroup and the programs attached to it. If a cgroup is mounted
// several times, the first path is used.
func (m *Meter) cgroupAt(path string, at *attachments) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return
	}
	if _, known := at.cgroups[st.Ino]; known {
		return
	}
	at.cgroups[st.Ino] = path // the inode number is the cgroup id since Linux 5.5
	m.atCgroup(fd, func(kind, id uint32) { at.add(id, "cgroup "+kindOf(attachKinds, kind)+" "+path) })
}

// atCgroup calls found with each program attached to a cgroup.
func (m *Meter) atCgroup(fd int, found func(kind, id uint32)) {
	for _, kind := range cgroupAttach {
		for _, id := range m.query(uint32(fd), kind) {
			found(kind, id)
		}
	}
}

// attachedTo returns the programs attached to the cgroups themselves, without inherited
// ones.
func (m *Meter) attachedTo(paths []string) (map[uint32]bool, error) {
	ids := map[uint32]bool{}
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		var at unix.Statfs_t
		if err == nil {
			if err = unix.Fstatfs(fd, &at); err == nil && at.Type == unix.CGROUP2_SUPER_MAGIC {
				m.atCgroup(fd, func(_, id uint32) { ids[id] = true })
			}
			unix.Close(fd)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("which programs are attached to the cgroup %s: %w", path, err)
		case at.Type != unix.CGROUP2_SUPER_MAGIC:
			return nil, fmt.Errorf("%s is not a cgroup2 directory, which programs are attached to; cgroup2 is mounted at %s", path, mounted("cgroup2"))
		}
	}
	return ids, nil
}

// mounted returns the mount point of file systems of a type.
func mounted(kind string) string {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter(kind))
	var places []string
	for _, mount := range mounts {
		places = append(places, mount.Mountpoint)
	}
	if err != nil || len(places) == 0 {
		return "no visible mount point"
	}
	return strings.Join(places, ", ")
}
