package host

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Exec implements subject.Executor: the command is a child of tare. Paths in a container (the
// probe, carried files, the volume) are replaced by the host's.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	if n < 0 || n >= len(s.pids) || s.pids[n] == 0 {
		return subject.Executed{}, fmt.Errorf("target host: lane %d holds no workload", n)
	}
	pid := 0
	ended, err := child.Run(ctx, child.Command{
		Args: s.onHost(n, args), Env: lane.Environment([]string{"LC_ALL=C"}), // as in containers, since the output of tools is parsed
		Begun: func(p int) {
			pid = p
			s.note(n, func(list []int) []int { return append(list, p) })
		},
	})
	s.note(n, func(list []int) []int { return slices.DeleteFunc(list, func(p int) bool { return p == pid }) })
	if err != nil {
		err = fmt.Errorf("target host: %w", err)
	}
	return ended, err
}

func (s *session) note(n int, change func([]int) []int) {
	s.executing.Lock()
	defer s.executing.Unlock()
	s.more[n] = change(s.more[n])
}

// onHost returns a container's command with the host's paths.
func (s *session) onHost(n int, args []string) []string {
	out := slices.Clone(args)
	out[0] = s.program(args[0])
	for i := 1; i < len(out); i++ {
		out[i] = inPlace(out[i], func(path string) string { return s.path(n, path) })
	}
	return out
}

func (s *session) program(path string) string {
	if path == probe.Name {
		return filepath.Join(s.env.Dir, probe.Name)
	}
	for _, f := range s.env.Workload.Files {
		if "/"+f.Name() == path {
			return f.Source
		}
	}
	return path
}

// assigned matches an argument that is a path, or an option with a path as value: "/data/file",
// "--filename=/data/file", "of=/dev/tare".
var assigned = regexp.MustCompile(`^(-{0,2}[A-Za-z][A-Za-z0-9_-]*=)?(/.*)$`)

// inPlace replaces a container's paths in an argument by the host's: one, or several as for fio
// ("/data/a:/data/b").
func inPlace(arg string, host func(path string) string) string {
	m := assigned.FindStringSubmatch(arg)
	if m == nil {
		return arg
	}
	list := strings.Split(m[2], ":")
	for i := range list {
		list[i] = host(list[i])
	}
	return m[1] + strings.Join(list, ":")
}

// path returns the host's path for a container's.
func (s *session) path(n int, path string) string {
	below, onVolume := strings.CutPrefix(path, subject.VolumePath)
	if onVolume && (below == "" || below[0] == '/') {
		return s.folder(n) + below
	}
	if path == subject.DevicePath {
		return cmp.Or(s.places.All.Device.Node, path)
	}
	return path
}

// Sandboxes implements subject.Sandboxed.
func (s *session) Sandboxes(context.Context) ([]subject.Sandbox, error) {
	s.executing.Lock()
	defer s.executing.Unlock()
	var out []subject.Sandbox
	for n, pid := range s.pids {
		if pid != 0 {
			out = append(out, subject.Sandbox{Lane: n, Workload: pid, More: slices.Clone(s.more[n])})
		}
	}
	return out, nil
}

// Reach implements subject.Reachable.
func (s *session) Reach(n int) subject.Reached {
	return subject.Reached{Pid: s.pool.Pid(n), Host: true, Own: s.pool.Owns, Log: engine.Said(s.env, n), Plain: true}
}

// Ended implements subject.Reachable.
func (s *session) Ended(_ context.Context, n int) subject.Ended {
	return engine.EndOf(s.pool.Pid(n), engine.Said(s.env, n))
}
