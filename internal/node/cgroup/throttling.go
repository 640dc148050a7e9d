package cgroup

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Throttling finds the cgroups that were throttled by a CPU limit between two moments.
type Throttling struct {
	root        machine.Root
	hierarchies []Hierarchy
	before      map[string]CPULimit // by group
	known       map[string]bool     // groups to read at the next Begin
}

// NewThrottling returns a Throttling of this machine. If cgroups are unreadable, it finds
// none.
func NewThrottling() *Throttling {
	all, _ := machine.Root("").Cgroups()
	return &Throttling{hierarchies: all, known: map[string]bool{}}
}

// Begin reads the limits of the cgroups of processes, of their ancestors, and of groups
// found by an earlier End.
func (t *Throttling) Begin(pids []int) {
	t.before = t.read(pids)
	for group := range t.known {
		t.add(t.before, &procs.Groups{Paths: map[string]string{"": group, "cpu": group}})
	}
}

// End returns the cgroups that were throttled since Begin, or since they were made if that
// was later. It covers the cgroups of processes and their ancestors. made reports whether a
// group was made after Begin.
func (t *Throttling) End(pids []int, made func(group string) bool) (held []record.Throttled) {
	const most = 64 // maximum for one start in a record
	now := t.read(pids)
	for _, group := range slices.Sorted(maps.Keys(now)) {
		was, known := t.before[group]
		if !known && !made(group) {
			t.known[group] = true
			continue
		}
		l := now[group]
		if n := l.Throttled - was.Throttled; n > 0 && len(held) < most {
			held = append(held, record.Throttled{Group: group, CPUs: l.CPUs, Periods: max(l.Periods-was.Periods, n), Throttled: n, Held: max(l.Held-was.Held, 0)})
		}
	}
	return held
}

// read reads the limits of the cgroups of processes and of their ancestors.
func (t *Throttling) read(pids []int) map[string]CPULimit {
	all, read := map[string]CPULimit{}, map[string]bool{}
	for _, pid := range pids {
		lines, err := t.root.Read(fmt.Sprintf("/proc/%d/cgroup", pid), groupsLimit)
		if err == nil && !read[string(lines)] { // an error means that it has ended
			read[string(lines)] = true
			t.add(all, procs.ParseGroups(string(lines)))
		}
	}
	return all
}

func (t *Throttling) add(all map[string]CPULimit, in *procs.Groups) {
	h, group := find(t.hierarchies, in, "cpu")
	for up, dir := range h.Upwards(group) {
		if _, read := all[up]; !read {
			all[up] = cpuLimit(t.root, h.Version, up, dir)
		}
	}
}
