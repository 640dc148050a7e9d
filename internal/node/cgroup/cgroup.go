// Package cgroup finds the mounted cgroup hierarchies and manages a run's groups in them.
// All groups of a run are below "tare-run-" and the run's id. The package refuses to
// change a group of any other name.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// Prefix begins the name of every group that tare makes.
const Prefix = "tare-run-"

// The layouts, see [machine.Cgroups].
const (
	None   = machine.ModeNone
	V2     = machine.ModeV2
	Hybrid = machine.ModeHybrid
)

// Hierarchy is one mounted tree of cgroups.
type Hierarchy = machine.Hierarchy

// Hierarchies lists the mounted hierarchies, each once. It skips mounts of a part of a
// hierarchy, which are views of containers.
func Hierarchies() ([]Hierarchy, error) {
	mounted, err := machine.Root("").Cgroups()
	if err != nil {
		return nil, fmt.Errorf("read the mounted cgroup hierarchies: %w", err)
	}
	return whole(mounted), nil
}

func whole(mounted []Hierarchy) []Hierarchy {
	return slices.DeleteFunc(mounted, func(h Hierarchy) bool { return h.Root != "/" })
}

// ModeOf returns the name of the layout.
func ModeOf(hs []Hierarchy) string { return machine.Cgroups(hs).Mode() }

// Limit is a file of a group and the value to write to it.
type Limit struct{ File, Value string }

// Wanted are limits of a group; 0 means no limit.
type Wanted struct {
	Memory    int64 // bytes
	Pids      int64
	CPUShares int64
	Quota     int64 // µs of CPU time in each Period
	Period    int64 // µs
}

// Limits returns the files of a hierarchy for the given limits, in the order to write
// them.
func Limits(h Hierarchy, w Wanted) []Limit {
	var out []Limit
	add := func(controller, v1, v2 string, value, value2 int64) {
		if value <= 0 || !h.Has(controller) {
			return
		}
		if h.Version == 2 {
			out = append(out, Limit{v2, strconv.FormatInt(value2, 10)})
		} else {
			out = append(out, Limit{v1, strconv.FormatInt(value, 10)})
		}
	}
	add("memory", "memory.limit_in_bytes", "memory.max", w.Memory, w.Memory)
	add("pids", "pids.max", "pids.max", w.Pids, w.Pids)
	add("cpu", "cpu.shares", "cpu.weight", w.CPUShares, weight(w.CPUShares))
	if w.Quota <= 0 || w.Period <= 0 || !h.Has("cpu") {
		return out
	}
	quota, period := strconv.FormatInt(w.Quota, 10), strconv.FormatInt(w.Period, 10)
	if h.Version == 2 {
		return append(out, Limit{"cpu.max", quota + " " + period})
	}
	return append(out, Limit{"cpu.cfs_period_us", period}, Limit{"cpu.cfs_quota_us", quota})
}

// weight converts v1 shares (2…262144) to a v2 weight (1…10000) as OCI runtimes did until
// 2025: 1 + (shares − 2) × 9999 / 262142.
func weight(shares int64) int64 {
	if shares < 2 {
		return 1
	}
	return min(1+(shares-2)*9999/262142, 10000)
}

// ErrWithheld is returned by Delegate if the root of cgroup v2 does not enable a
// controller for its children. The group exists without it. Runtimes enable it themselves.
var ErrWithheld = errors.New("the root cgroup does not hand down all controllers that limits need")

// Delegate makes a group in every hierarchy that has one of the controllers. On a machine
// with v2 only, it always makes a group there. It enables the controllers for the group's
// children. name is the run's group or one below it.
func Delegate(hs []Hierarchy, name string, controllers ...string) error {
	if err := checkName(name); err != nil {
		return err
	}
	for _, h := range Using(hs, controllers...) {
		dir := filepath.Join(h.Mount, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the run's cgroup: %w", err)
		}
		if h.Version != 2 {
			continue
		}
		enable(h, name, controllers)
		enabled, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if lack := Added(strings.Fields(string(enabled)), controllers); err == nil && ModeOf(hs) == V2 && len(lack) > 0 {
			return fmt.Errorf("%w: %s; to change it: echo '+%s' > %s",
				ErrWithheld, strings.Join(lack, ", "), strings.Join(lack, " +"), filepath.Join(h.Mount, "cgroup.subtree_control"))
		}
	}
	return nil
}

// Using returns the hierarchies with one of the controllers.
func Using(hs []Hierarchy, controllers ...string) []Hierarchy {
	var out []Hierarchy
	for _, h := range hs {
		if slices.ContainsFunc(controllers, h.Has) || (h.Version == 2 && ModeOf(hs) == V2) {
			out = append(out, h)
		}
	}
	return out
}

// enable enables controllers for name's children as far as the ancestors allow it. It does
// not change the setting of the root, which belongs to the machine.
func enable(h Hierarchy, name string, controllers []string) {
	dir := h.Mount
	for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
		dir = filepath.Join(dir, part)
		have, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		for _, c := range controllers {
			if slices.Contains(strings.Fields(string(have)), c) {
				_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
			}
		}
	}
}

func checkName(name string) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	if !strings.HasPrefix(first, Prefix) || first == Prefix || strings.Contains(name, "..") {
		return fmt.Errorf("cgroup %q is not one of tare's: refused", name)
	}
	return nil
}

// Procs lists the processes in a group and below it, in all hierarchies.
func Procs(hs []Hierarchy, name string) []int {
	var out []int
	for _, h := range hs {
		for _, dir := range groups(filepath.Join(h.Mount, name)) {
			b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if err != nil {
				continue
			}
			for f := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil && pid > 1 && !slices.Contains(out, pid) {
					out = append(out, pid)
				}
			}
		}
	}
	return out
}

// Holds reports whether a process is in a group or below it, in any hierarchy. Call it
// before a kill of a pid that a runtime reported.
func Holds(name string, pid int) bool {
	if checkName(name) != nil || pid <= 1 {
		return false
	}
	g, err := procs.GroupsOf(pid)
	return err == nil && g.InSubtree("/"+strings.Trim(name, "/"))
}

// Kill ends a process of a group. It opens a pidfd before it checks the group, so it cannot
// kill a later process with the same pid.
func Kill(name string, pid int) error {
	return KillIf(pid, func() bool { return Holds(name, pid) })
}

// KillIf ends a process if condition returns true. The kernel cannot reuse the pid during
// the check.
func KillIf(pid int, condition func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !condition() {
		return fmt.Errorf("process %d is not ours", pid)
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// groups lists a group and its descendants, deepest first.
func groups(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out = append(out, path)
		}
		return nil
	})
	slices.Reverse(out)
	return out
}

// Remove kills the processes in one of tare's groups and below, and removes the groups in
// every hierarchy. A missing group is not an error.
func Remove(hs []Hierarchy, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		for _, pid := range Procs(hs, name) {
			_ = Kill(name, pid) // already gone, or retried in the next turn
		}
		var err error
		for _, h := range hs {
			err = errors.Join(err, rmdir(filepath.Join(h.Mount, name)))
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		// The kernel empties the group some time after the process has ended.
		time.Sleep(5 * time.Millisecond)
	}
}

// rmdir removes a group and its descendants if they have no processes.
func rmdir(dir string) error {
	var errs []error
	for _, g := range groups(dir) {
		// Processes in a frozen group do not end.
		_ = os.WriteFile(filepath.Join(g, "freezer.state"), []byte("THAWED"), 0o644)
		if err := unix.Rmdir(g); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("rmdir %s: %w", g, err))
		}
	}
	return errors.Join(errs...)
}
