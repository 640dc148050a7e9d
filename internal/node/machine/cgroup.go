package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// The ways in which a machine can have control groups.
const (
	ModeV1     = "v1"     // hierarchies of version 1, each with its controllers
	ModeV2     = "v2"     // the one hierarchy of version 2
	ModeHybrid = "hybrid" // both are mounted; each controller is in one of them
	ModeNone   = "none"   // neither is mounted
)

// Cgroups are the control group hierarchies that are mounted, those of version 1
// first.
type Cgroups []Hierarchy

// Hierarchy is one tree of control groups.
type Hierarchy struct {
	Mount       string
	Version     int      // 1 or 2
	Controllers []string // sorted; none for a v1 hierarchy that only has a name
	// Root is the cgroup that is seen at the mount: "/", or in a container
	// without a cgroup namespace the container's own.
	Root string
}

// Has reports whether the hierarchy has a controller.
func (h Hierarchy) Has(controller string) bool { return slices.Contains(h.Controllers, controller) }

// Cgroups returns the control groups below the root.
func (r Root) Cgroups() (Cgroups, error) {
	data, err := r.own("mountinfo", mountinfoLimit)
	if err != nil {
		return nil, err
	}
	return readCgroups(bytes.NewReader(data), string(r))
}

// readCgroups finds the control groups in a mountinfo. The controllers of
// version 2 are not there, but in cgroup.controllers below the mountpoint,
// which is read below root, "" for the real one.
//
// A hierarchy that is mounted more than once is given once, at its place below
// /sys/fs/cgroup where it has one. Mounts that others cover are left out.
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

// Mode names the layout. Hybrid is v1 controllers beside a cgroup2 mount, whatever
// controllers that one has.
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

// Find returns the hierarchy that a controller is in: version 1's where both are
// mounted, for version 2 lists what version 1 has not taken.
func (c Cgroups) Find(controller string) (h Hierarchy, ok bool) {
	if i := slices.IndexFunc(c, func(h Hierarchy) bool { return h.Has(controller) }); i >= 0 {
		return c[i], true
	}
	return Hierarchy{}, false
}

// controllers returns the controllers of all hierarchies, sorted.
func (c Cgroups) controllers() []string {
	var all []string
	for _, h := range c {
		all = append(all, h.Controllers...)
	}
	sort.Strings(all)
	return slices.Compact(all)
}

// v1Controllers are all that version 1 ever had. Other words among the options
// of a mount are options.
var v1Controllers = []string{
	"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb",
	"memory", "misc", "net_cls", "net_prio", "perf_event", "pids", "rdma",
}

// hierarchies returns each hierarchy of version 1 once, in the order mounted.
func hierarchies(mounts []*mountinfo.Info) (found Cgroups) {
	byDevice := map[int][]*mountinfo.Info{} // one superblock, one anonymous device
	var order []int
	for _, m := range mounts {
		if byDevice[m.Minor] == nil {
			order = append(order, m.Minor)
		}
		byDevice[m.Minor] = append(byDevice[m.Minor], m)
	}
	for _, device := range order {
		m := preferred(byDevice[device])
		h := Hierarchy{Mount: m.Mountpoint, Version: 1, Root: m.Root}
		for option := range strings.SplitSeq(m.VFSOptions, ",") {
			if slices.Contains(v1Controllers, option) {
				h.Controllers = append(h.Controllers, option)
			}
		}
		sort.Strings(h.Controllers)
		found = append(found, h)
	}
	return found
}

// preferred returns the mount that engines use: one of the whole hierarchy, and
// in the usual place, as far as there are such; else the first. Others are some
// container's view, or for a tool's own use, such as the cgroup2 that a service
// mesh mounts for its BPF programs.
func preferred(mounts []*mountinfo.Info) *mountinfo.Info {
	var best *mountinfo.Info
	most := -1
	for _, m := range mounts {
		rank := 0
		if m.Root == "/" {
			rank += 2
		}
		if m.Mountpoint == "/sys/fs/cgroup" || strings.HasPrefix(m.Mountpoint, "/sys/fs/cgroup/") {
			rank++
		}
		if rank > most {
			best, most = m, rank
		}
	}
	return best
}

func readControllers(root Root, mountpoint string) ([]string, error) {
	line, err := root.FirstLine(mountpoint+"/cgroup.controllers", wordLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; it is there since Linux 4.5", err)
	}
	if err != nil {
		return nil, err
	}
	controllers := strings.Fields(line)
	sort.Strings(controllers)
	return controllers, nil
}
