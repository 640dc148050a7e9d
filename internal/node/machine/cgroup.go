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

// Cgroups are the control group hierarchies that are mounted.
type Cgroups struct {
	Mode string
	V1   []Hierarchy
	V2   *Hierarchy // nil where cgroup2 is not mounted
}

// Hierarchy is one tree of control groups.
type Hierarchy struct {
	Mountpoint string
	// Root is the cgroup that is seen at the mountpoint: "/", or in a
	// container without a cgroup namespace the container's own.
	Root        string
	Controllers []string // sorted; none for a v1 hierarchy that only has a name
	Name        string   // of a v1 hierarchy that was given one: "systemd"
	ReadOnly    bool     // as containers often have it
}

// Cgroups returns the control groups below the root.
func (r Root) Cgroups() (Cgroups, error) {
	data, err := r.own("mountinfo", mountinfoLimit)
	if err != nil {
		return Cgroups{}, err
	}
	return ReadCgroups(bytes.NewReader(data), string(r))
}

// ReadCgroups finds the control groups in a mountinfo. The controllers of
// version 2 are not there, but in cgroup.controllers below the mountpoint,
// which is read below root, "" for the real one.
//
// A hierarchy that is mounted more than once is given once, at its place below
// /sys/fs/cgroup where it has one. Mounts that others cover are left out.
func ReadCgroups(mountinfo io.Reader, root string) (Cgroups, error) {
	m, err := readMounts(mountinfo)
	if err != nil {
		return Cgroups{}, err
	}
	c := Cgroups{Mode: ModeNone, V1: hierarchies(m.visible("cgroup"))}
	if v2 := preferred(m.visible("cgroup2")); v2 != nil {
		h := hierarchy(v2)
		if h.Controllers, err = readControllers(Root(root), v2.Mountpoint); err != nil {
			return Cgroups{}, fmt.Errorf("read the controllers of cgroup2 at %s: %w", v2.Mountpoint, err)
		}
		c.V2 = &h
	}
	switch {
	case len(c.V1) > 0 && c.V2 != nil:
		c.Mode = ModeHybrid
	case len(c.V1) > 0:
		c.Mode = ModeV1
	case c.V2 != nil:
		c.Mode = ModeV2
	}
	return c, nil
}

// Find returns the hierarchy that a controller is in. Version 1 is asked
// first: a controller can be in one hierarchy only, and where both are mounted
// version 2 lists what version 1 has not taken.
func (c Cgroups) Find(controller string) (h Hierarchy, version int, ok bool) {
	for _, h := range c.V1 {
		if slices.Contains(h.Controllers, controller) {
			return h, 1, true
		}
	}
	if c.V2 != nil && slices.Contains(c.V2.Controllers, controller) {
		return *c.V2, 2, true
	}
	return Hierarchy{}, 0, false
}

// Controllers returns the controllers of all hierarchies, sorted.
func (c Cgroups) Controllers() []string {
	var all []string
	for _, h := range c.V1 {
		all = append(all, h.Controllers...)
	}
	if c.V2 != nil {
		all = append(all, c.V2.Controllers...)
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
func hierarchies(mounts []*mountinfo.Info) []Hierarchy {
	byDevice := map[int][]*mountinfo.Info{} // one superblock, one anonymous device
	var order []int
	for _, m := range mounts {
		if byDevice[m.Minor] == nil {
			order = append(order, m.Minor)
		}
		byDevice[m.Minor] = append(byDevice[m.Minor], m)
	}
	var found []Hierarchy
	for _, device := range order {
		m := preferred(byDevice[device])
		h := hierarchy(m)
		for option := range strings.SplitSeq(m.VFSOptions, ",") {
			if slices.Contains(v1Controllers, option) {
				h.Controllers = append(h.Controllers, option)
			}
			if name, ok := strings.CutPrefix(option, "name="); ok {
				h.Name = name
			}
		}
		sort.Strings(h.Controllers)
		found = append(found, h)
	}
	return found
}

func hierarchy(m *mountinfo.Info) Hierarchy {
	return Hierarchy{
		Mountpoint: m.Mountpoint,
		Root:       m.Root,
		ReadOnly:   slices.Contains(strings.Split(m.Options, ","), "ro"),
	}
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
