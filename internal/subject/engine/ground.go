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

// Ground is what containers or pods have of this machine where tare itself says
// what that is: a cgroup each below the run's own, so that they can be found when
// everything else is lost, and a file for what they say. Nil has neither.
type Ground struct {
	hs   []cgroup.Hierarchy
	path string // of the target's cgroup, from the root of the hierarchies; "" where groups are the engine's to choose
	logs string
}

// OpenGround makes the target's own cgroup, if groups are tare's to choose, and
// the folder of logs.
func OpenGround(env subject.Env, hs []cgroup.Hierarchy, groups bool) (*Ground, error) {
	g := &Ground{hs: hs, logs: filepath.Join(env.Dir, "log")}
	if err := os.MkdirAll(g.logs, 0o755); err != nil {
		return g, fmt.Errorf("make the folder of the containers' outputs: %w", err)
	}
	if !groups {
		return g, nil
	}
	g.path = path.Join("/", cgroup.Prefix+env.RunID, filepath.Base(env.Dir))
	return g, g.delegate(g.path)
}

// delegate makes a group. On v2 the controllers have to be handed down on the way
// to the containers' groups; runtimes do that too, but not all of them.
func (g *Ground) delegate(group string) error {
	if err := cgroup.Delegate(g.hs, group, "memory", "pids", "cpu"); err != nil && !errors.Is(err, cgroup.ErrWithheld) {
		return err
	}
	return nil
}

// Group is the cgroup of a name, as a path from the root of the hierarchies.
func (g *Ground) Group(name string) string {
	if g == nil || g.path == "" {
		return ""
	}
	return path.Join(g.path, name)
}

// Make makes that group, which others leave to the runtime, with these limits.
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

// Logs is the folder of logs.
func (g *Ground) Logs() string { return g.logs }

// Log is the file of what the container of a name says.
func (g *Ground) Log(name string) string {
	if g == nil {
		return ""
	}
	return filepath.Join(g.logs, LogName(name))
}

// LogName is that file in its folder.
func LogName(name string) string { return name + ".log" }

// Erase removes what the container of a name left.
func (g *Ground) Erase(name string) error {
	os.Remove(g.Log(name))
	if g.Group(name) == "" {
		return nil
	}
	return cgroup.Remove(g.hs, g.Group(name))
}

// Close removes the target's cgroup; the logs go with the folders of the session.
func (g *Ground) Close() error {
	if g == nil || g.path == "" {
		return nil
	}
	return cgroup.Remove(g.hs, g.path)
}
