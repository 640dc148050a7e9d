package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
)

// Leftover is the remains of one interrupted run.
type Leftover struct {
	RunID     string   `json:"run_id"`
	Processes []int    `json:"processes,omitempty"` // in its cgroups, started with or from one of its folders, or with its environment variable
	Mounts    []string `json:"mounts,omitempty"`
	Cgroups   []string `json:"cgroups,omitempty"`
	Folders   []string `json:"folders,omitempty"`
	Absent    []string `json:"absent,omitempty"` // folders of unknown state
	// Rebooted means that the machine was rebooted since, so its processes have ended.
	Rebooted bool `json:"rebooted,omitempty"`
	roots    Roots
	own      []string // its folders that had its mark, even if the mark is gone
}

// Leftovers finds the remains of dead runs by the marks in their folders below the
// roots. live lists the running runs.
func Leftovers(roots Roots) (left []Leftover, live []string, err error) {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return nil, nil, err
	}
	found := map[string]bool{} // by run id: whether the run is alive
	for _, root := range []*string{&roots.State, &roots.Data} {
		var entries []os.DirEntry
		path, err := secure(*root, false)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			*root = path
			entries, err = os.ReadDir(path)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("look for leftovers of runs: %w", err)
		}
		for _, e := range entries {
			if !e.IsDir() || !isID(e.Name()) {
				continue
			}
			if is, alive := marked(filepath.Join(*root, e.Name()), e.Name()); is {
				found[e.Name()] = found[e.Name()] || alive
			}
		}
	}
	for id, alive := range found {
		if alive {
			live = append(live, id)
			continue
		}
		l := Leftover{RunID: id, roots: roots}
		if err := l.look(hs); err != nil {
			return nil, nil, err
		}
		left = append(left, l)
	}
	slices.Sort(live)
	slices.SortFunc(left, func(a, b Leftover) int { return strings.Compare(a.RunID, b.RunID) })
	return left, live, nil
}

// isID reports whether a name is a run's id.
func isID(s string) bool {
	return len(s) == 8 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// folders returns the folders of the run that have its mark.
func (l *Leftover) folders() []string {
	var out []string
	for _, root := range []string{l.roots.State, l.roots.Data} {
		dir := filepath.Join(root, l.RunID)
		if is, _ := marked(dir, l.RunID); is {
			out = append(out, dir)
		}
	}
	return out
}

func (l *Leftover) look(hs []cgroup.Hierarchy) error {
	there, absent, err := l.elsewhere()
	if err != nil {
		return err
	}
	l.own = l.folders()
	l.Folders, l.Absent = slices.Concat(l.own, paths(there)), paths(absent)
	for _, dir := range l.own {
		now := bootID()
		was, _, _ := readMark(dir, l.RunID)
		l.Rebooted = l.Rebooted || was != "" && now != "" && was != now
	}
	group := cgroup.Prefix + l.RunID
	for _, h := range hs {
		if dir := filepath.Join(h.Mount, group); exists(dir) {
			l.Cgroups = append(l.Cgroups, dir)
		}
	}
	l.Processes = append(cgroup.Procs(hs, group), l.commands()...)
	slices.Sort(l.Processes)
	l.Processes = slices.Compact(l.Processes)
	for _, dir := range l.Folders {
		points, err := mounts.Below(dir)
		if err != nil {
			return err
		}
		l.Mounts = append(l.Mounts, points...)
	}
	if len(l.Absent) > 0 { // the notes list the absent folders, so keep them
		l.Folders = slices.DeleteFunc(l.Folders, func(dir string) bool { return dir == l.memory() })
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (l *Leftover) inside(path string) bool {
	for _, dir := range l.own {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// commands finds processes that have one of the run's folders as an argument: runtimes,
// their monitors and sandboxes. It also finds processes of programs in such a folder
// (workloads on the host), and the user's commands on the host by their environment. A
// folder that is only part of an argument does not count. So an editor or a grep does not
// match.
func (l *Leftover) commands() []int {
	return slices.DeleteFunc(procs.All(), func(pid int) bool { return pid <= 1 || pid == os.Getpid() || !l.has(pid) })
}

func (l *Leftover) has(pid int) bool {
	return l.names(procs.ArgsOf(pid)) || slices.Contains(procs.EnvironmentOf(pid), procs.RunVariable+"="+l.RunID)
}

// names reports whether a command line belongs to the run: that of a runtime with one of the
// run's folders as an argument, or of a program in such a folder.
func (l *Leftover) names(args []string) bool {
	for i, arg := range args {
		if i == 0 && l.inside(arg) {
			return true
		}
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "--") {
			arg = value
		}
		if l.inside(arg) && isRuntime(args) {
			return true
		}
	}
	return false
}

// isRuntime excludes programs that users run on such folders (ls, vi, tail): a
// runtime's command line has --root or --bundle.
func isRuntime(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--root" || strings.HasPrefix(arg, "--root=") || strings.HasPrefix(arg, "--bundle")
	})
}

// Remove ends and removes everything. If a folder is unreachable, the run's folder and its
// notes stay, unless forget is set, and the error reports that.
func (l *Leftover) Remove(forget bool) error {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	group := cgroup.Prefix + l.RunID
	// A runtime that is still ending or not yet executed may recreate what is removed.
	// So repeat until two checks find nothing.
	deadline := time.Now().Add(10 * time.Second)
	var errs []error
	for gone := false; ; {
		l.end(hs, group)
		there, absent, err := l.elsewhere() // listed in the run's folder
		err = errors.Join(err, removeElsewhere(l.RunID, there))
		errs = []error{cgroup.Remove(hs, group), err}
		l.Absent = paths(absent)
		back := len(l.commands()) > 0
		for _, dir := range l.own {
			back = back || gone && exists(dir)
			switch {
			case err != nil:
			case len(absent) > 0 && !forget && dir == l.memory():
				errs = append(errs, empty(dir, elsewhereKept))
				back = false
			default:
				errs = append(errs, removeMarked(dir))
			}
		}
		was := gone
		gone = errors.Join(errs...) == nil
		if gone && was && !back || time.Now().After(deadline) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	err = errors.Join(errs...)
	if len(l.Absent) > 0 && !forget {
		err = errors.Join(err, fmt.Errorf("%s is unreachable: mount its disk and clean again; %s stays until then, or until tare clean --forget", strings.Join(l.Absent, ", "), l.memory()))
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", l.RunID, err)
	}
	return nil
}

// memory returns the folder with the run's notes.
func (l *Leftover) memory() string { return filepath.Join(l.roots.Data, l.RunID) }

// end kills the processes of the run: its runtimes, and those in its cgroups.
func (l *Leftover) end(hs []cgroup.Hierarchy, group string) {
	for range 3 {
		commands, members := l.commands(), cgroup.Procs(hs, group)
		if len(commands)+len(members) == 0 {
			return
		}
		for _, pid := range commands {
			_ = cgroup.KillIf(pid, func() bool {
				return l.has(pid)
			})
		}
		for _, pid := range members {
			_ = cgroup.Kill(group, pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
