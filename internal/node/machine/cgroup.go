package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Layouts of the mounted hierarchies.
const (
	ModeV1     = "v1"     // hierarchies of v1, each with its controllers
	ModeV2     = "v2"     // the single hierarchy of v2
	ModeHybrid = "hybrid" // both; each controller is in one of them
	ModeNone   = "none"
)

// Cgroups are the mounted hierarchies, those of v1 first.
type Cgroups []Hierarchy

// Hierarchy is one tree of control groups.
type Hierarchy struct {
	Mount       string
	Version     int      // 1 or 2
	Controllers []string // sorted; none for a named v1 hierarchy
	// Root is the cgroup at the mount: "/", or the container's in a container without a
	// cgroup namespace.
	Root string
}

// Has reports whether the hierarchy has a controller.
func (h Hierarchy) Has(controller string) bool { return slices.Contains(h.Controllers, controller) }

// Below returns the path of a group relative to the mountpoint, "." for the mount itself.
// It reports false if the mount shows only another part of the hierarchy.
func (h Hierarchy) Below(group string) (dir string, ok bool) {
	top := strings.TrimSuffix(path.Clean(h.Root), "/") + "/"
	dir, ok = strings.CutPrefix(strings.TrimSuffix(path.Clean(group), "/")+"/", top)
	return path.Clean(dir), ok && path.IsAbs(group) && !slices.Contains(strings.Split(h.Root+"/"+group, "/"), "..") // ".." leads out of the cgroup namespace
}

// Upwards iterates over a group and its ancestors, with their folders. It ends at the
// mount, which in a container is the container's group.
func (h Hierarchy) Upwards(group string) iter.Seq2[string, string] {
	return func(yield func(group, dir string) bool) {
		for up := group; ; up = path.Dir(up) {
			if dir, ok := h.Below(up); !ok || !yield(up, path.Join(h.Mount, dir)) || up == "/" {
				return
			}
		}
	}
}

// Cgroups returns the control groups below the root.
func (r Root) Cgroups() (Cgroups, error) {
	data, err := r.ThreadFile("mountinfo", mountinfoLimit)
	if err != nil {
		return nil, err
	}
	return readCgroups(bytes.NewReader(data), string(r))
}

// readCgroups finds the hierarchies in a mountinfo. It reads the controllers of v2 from
// cgroup.controllers below root and the mountpoint.
//
// Each hierarchy is listed once, preferably with its mount below /sys/fs/cgroup. Covered
// mounts are skipped.
func readCgroups(mountinfo io.Reader, root string) (Cgroups, error) {
	m, err := readMounts(mountinfo)
	if err != nil {
		return nil, err
	}
	c := hierarchies(m.visible("cgroup"))
	if v2 := preferred(m.visible("cgroup2")); v2 != nil {
		controllers, err := readControllers(Root(root), v2.Mountpoint)
		if err != nil {
			return nil, fmt.Errorf("read the controllers of cgroup2 at %s: %w", v2.Mountpoint, err)
		}
		c = append(c, Hierarchy{v2.Mountpoint, 2, controllers, v2.Root})
	}
	return c, nil
}

// Mode returns the layout. It is hybrid with v1 controllers and any cgroup2 mount.
func (c Cgroups) Mode() string {
	one := slices.ContainsFunc(c, func(h Hierarchy) bool { return h.Version == 1 })
	two := slices.ContainsFunc(c, func(h Hierarchy) bool { return h.Version == 2 })
	switch {
	case one && two:
		return ModeHybrid
	case one:
		return ModeV1
	case two:
		return ModeV2
	}
	return ModeNone
}

// Find returns the hierarchy of a controller. If v1 has it, v2 does not list it.
func (c Cgroups) Find(controller string) (h Hierarchy, ok bool) {
	if i := slices.IndexFunc(c, func(h Hierarchy) bool { return h.Has(controller) }); i >= 0 {
		return c[i], true
	}
	return Hierarchy{}, false
}

// controllers returns the sorted controllers of all hierarchies.
func (c Cgroups) controllers() []string {
	var all []string
	for _, h := range c {
		all = append(all, h.Controllers...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// v1Controllers are all controllers of v1. Other words in the options of a mount are
// options.
var v1Controllers = []string{
	"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb",
	"memory", "misc", "net_cls", "net_prio", "perf_event", "pids", "rdma",
}

// hierarchies returns each hierarchy of v1 once, in the order of mounts.
func hierarchies(mounts []*mountinfo.Info) (found Cgroups) {
	seen := map[int]bool{} // one superblock, one anonymous device
	for _, first := range mounts {
		if seen[first.Minor] {
			continue
		}
		seen[first.Minor] = true
		m := preferred(slices.DeleteFunc(slices.Clone(mounts), func(m *mountinfo.Info) bool { return m.Minor != first.Minor }))
		h := Hierarchy{Mount: m.Mountpoint, Version: 1, Root: m.Root}
		for option := range strings.SplitSeq(m.VFSOptions, ",") {
			if slices.Contains(v1Controllers, option) {
				h.Controllers = append(h.Controllers, option)
			}
		}
		slices.Sort(h.Controllers)
		found = append(found, h)
	}
	return found
}

// preferred returns the mount that engines use. It prefers a mount of the whole hierarchy
// and below /sys/fs/cgroup, and otherwise returns the first. Other mounts are views of
// containers or belong to a tool, such as the cgroup2 that a service mesh mounts for its BPF
// programs.
func preferred(mounts []*mountinfo.Info) *mountinfo.Info {
	if len(mounts) == 0 {
		return nil
	}
	rank := func(m *mountinfo.Info) (rank int) {
		if m.Root == "/" {
			rank += 2
		}
		if strings.HasPrefix(m.Mountpoint+"/", "/sys/fs/cgroup/") {
			rank++
		}
		return rank
	}
	return slices.MaxFunc(mounts, func(a, b *mountinfo.Info) int { return rank(a) - rank(b) }) // the first of equals
}

func readControllers(root Root, mountpoint string) ([]string, error) {
	line, err := root.FirstLine(mountpoint+"/cgroup.controllers", wordLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; it exists since Linux 4.5", err)
	}
	if err != nil {
		return nil, err
	}
	controllers := strings.Fields(line)
	slices.Sort(controllers)
	return controllers, nil
}
