package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// limited is a set of cgroups, one per client, each with its share of the limit.
type limited struct {
	hs        []cgroup.Hierarchy
	name      string // name of the parent group
	place     string // cgroup v2 directory without a limit
	cpus      float64
	instances int
}

// standing returns the cgroup for the clients: the deepest of the chosen ones. Only
// there do the programs of all chosen cgroups see them.
func standing(cgroups []string) (string, error) {
	deepest := ""
	for _, path := range cgroups {
		if path = filepath.Clean(path); strings.HasPrefix(path+"/", deepest+"/") {
			deepest = path
		}
	}
	for _, path := range cgroups {
		if !strings.HasPrefix(deepest+"/", filepath.Clean(path)+"/") {
			return "", fmt.Errorf("%w: clients run in one cgroup, and neither of %s and %s lies below the other: choose one", subject.ErrUnsupported, deepest, path)
		}
	}
	handed, err := os.ReadFile(filepath.Join(deepest, "cgroup.subtree_control"))
	if _, root := os.Stat(filepath.Join(deepest, "cgroup.type")); err == nil && root == nil && len(bytes.TrimSpace(handed)) > 0 {
		return "", fmt.Errorf("%w: %s hands controllers (%s) to cgroups below it, so clients cannot stand in it, where its programs would see them: choose one of those, or the programs by --name", subject.ErrUnsupported, deepest, bytes.TrimSpace(handed))
	}
	return deepest, nil
}

// MakeGroups creates one cgroup per client, which share a limit in CPUs (0: none).
// place is the cgroup v2 directory of the programs. If cgroup v2 has the cpu
// controller, the groups are below place. Otherwise each client is in place and in a v1
// group.
func MakeGroups(runID, place string, cpus float64, instances int) (Groups, error) {
	g := &limited{place: place, cpus: cpus, instances: instances, name: cgroup.Prefix + runID + "/clients"}
	if cpus == 0 {
		return g, nil
	}
	all, err := cgroup.Hierarchies()
	if err != nil {
		return nil, err
	}
	g.hs = cgroup.Using(all, "cpu", "cpuacct")
	if err := cgroup.Delegate(all, g.name, "cpu", "cpuacct"); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if len(g.hs) == 0 {
		return nil, fmt.Errorf("%w: no cgroup hierarchy has the cpu controller: a limit cannot be set", subject.ErrUnsupported)
	}
	for _, h := range g.hs {
		if h.Version == 2 && !strings.HasPrefix(g.folder(h, 0), place+"/") {
			return nil, fmt.Errorf("%w: a limit of the clients needs a cgroup v2 of their own, and programs of %s would not see them there: choose the programs by --name, or ask for no limit", subject.ErrUnsupported, place)
		}
	}
	// Each client gets an equal share of the limit.
	quota := subject.Limits{CPU: cpus / float64(instances)}.CPUQuota()
	for i := range instances {
		for _, h := range g.hs {
			dir := g.folder(h, i)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, errors.Join(fmt.Errorf("make a client's cgroup: %w", err), g.Close())
			}
			for _, l := range cgroup.Limits(h, cgroup.Wanted{Quota: quota, Period: subject.CPUPeriod}) {
				if err := os.WriteFile(filepath.Join(dir, l.File), []byte(l.Value), 0o644); err != nil {
					return nil, errors.Join(fmt.Errorf("limit a client's cgroup to %s in %s: %w", l.Value, l.File, err), g.Close())
				}
			}
		}
	}
	return g, nil
}

func (g *limited) folder(h cgroup.Hierarchy, i int) string {
	return filepath.Join(h.Mount, g.name, fmt.Sprintf("c-%d", i))
}

func (g *limited) Folders() [][]string {
	all := make([][]string, g.instances)
	for i := range all {
		for _, h := range g.hs {
			all[i] = append(all[i], g.folder(h, i))
		}
		if !slices.ContainsFunc(g.hs, func(h cgroup.Hierarchy) bool { return h.Version == 2 }) {
			all[i] = append(all[i], g.place)
		}
	}
	return all
}

func (g *limited) Close() error { return cgroup.Remove(g.hs, g.name) }

// Read implements Groups and returns the sum over all clients.
func (g *limited) Read() (record.GroupCPU, error) {
	sum := record.GroupCPU{Version: 2, Limit: g.cpus, Ticks: -1}
	for _, h := range g.hs {
		if h.Version == 1 {
			sum.Version = 1
		}
		for i := range g.instances {
			if err := charge(&sum, h, g.folder(h, i)); err != nil {
				return sum, err
			}
		}
	}
	return sum, nil
}

// charge adds the usage charged to a group. For v1 it reads cpuacct.usage (ns), the
// ticks of cpuacct.stat, and cpu.stat; for v2 only cpu.stat (µs).
func charge(sum *record.GroupCPU, h cgroup.Hierarchy, dir string) error {
	if h.Version == 2 || h.Has("cpu") {
		stat, err := machine.Root("").Keyed(dir + "/cpu.stat")
		if err != nil {
			return err
		}
		sum.Usage += stat["usage_usec"] * 1000
		sum.Periods, sum.Throttled, sum.Held = sum.Periods+stat["nr_periods"], sum.Throttled+stat["nr_throttled"], sum.Held+stat["throttled_usec"]*1000+stat["throttled_time"]
	}
	if h.Version == 2 || !h.Has("cpuacct") {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
	usage, bad := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err = cmp.Or(err, bad); err != nil {
		return fmt.Errorf("read cpuacct.usage: %w", err)
	}
	stat, err := machine.Root("").Keyed(dir + "/cpuacct.stat")
	if err != nil {
		return err
	}
	sum.Usage += usage
	sum.Ticks = max(sum.Ticks, 0) + (stat["user"]+stat["system"])*procs.Tick
	return nil
}
