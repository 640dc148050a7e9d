package engine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
)

// Ground is the part of the machine that tare chooses for containers or pods: a cgroup and
// a log file for each. The cgroups are below the run's own, so that they can be found when
// all other records are lost. A nil Ground has neither.
type Ground struct {
	hs   []cgroup.Hierarchy
	path string // the target's cgroup, from the root of the hierarchies; "" if the engine chooses cgroups
	logs string
}

// OpenGround makes the folder of logs and, if groups is set, the target's own cgroup.
func OpenGround(env subject.Env, hs []cgroup.Hierarchy, groups bool) (*Ground, error) {
	g := &Ground{hs: hs, logs: filepath.Join(env.Dir, "log")}
	if err := os.MkdirAll(g.logs, 0o755); err != nil {
		return g, fmt.Errorf("make the log folder: %w", err)
	}
	if !groups {
		return g, nil
	}
	g.path = path.Join("/", cgroup.Prefix+env.RunID, filepath.Base(env.Dir))
	return g, g.delegate(g.path)
}

// delegate makes a group. On v2 the controllers have to be enabled in all its ancestors,
// which not all runtimes do.
func (g *Ground) delegate(group string) error {
	if err := cgroup.Delegate(g.hs, group, "memory", "pids", "cpu"); err != nil && !errors.Is(err, cgroup.ErrWithheld) {
		return err
	}
	return nil
}

// Group returns the cgroup for a name, as a path from the root of the hierarchies.
func (g *Ground) Group(name string) string {
	if g == nil || g.path == "" {
		return ""
	}
	return path.Join(g.path, name)
}

// Make makes that group with limits, for engines that leave it to tare.
func (g *Ground) Make(name string, l subject.Limits) error {
	group := g.Group(name)
	if group == "" {
		return nil
	}
	if err := g.delegate(group); err != nil {
		return err
	}
	for _, h := range g.hs {
		for _, limit := range cgroup.Limits(h, cgroup.Wanted{Memory: l.Memory, Pids: l.Pids, CPUShares: l.CPUShares, Quota: l.CPUQuota(), Period: subject.CPUPeriod}) {
			if err := os.WriteFile(filepath.Join(h.Mount, group, limit.File), []byte(limit.Value), 0o644); err != nil {
				return fmt.Errorf("limit the cgroup of a pod: %w", err)
			}
		}
	}
	return nil
}

// Logs returns the folder of logs.
func (g *Ground) Logs() string { return g.logs }

// Log returns the log file of a container.
func (g *Ground) Log(name string) string {
	if g == nil {
		return ""
	}
	return filepath.Join(g.logs, LogName(name))
}

// LogName returns the name of that file in its folder.
func LogName(name string) string { return name + ".log" }

// Erase removes the log and the cgroup of a container.
func (g *Ground) Erase(name string) error {
	os.Remove(g.Log(name))
	if g.Group(name) == "" {
		return nil
	}
	return cgroup.Remove(g.hs, g.Group(name))
}

// Close removes the target's cgroup. The session removes the logs with its folders.
func (g *Ground) Close() error {
	if g == nil || g.path == "" {
		return nil
	}
	return cgroup.Remove(g.hs, g.path)
}
