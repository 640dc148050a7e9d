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

// Leftover is what one interrupted run left behind.
type Leftover struct {
	RunID     string   `json:"run_id"`
	Processes []int    `json:"processes,omitempty"` // in its cgroups, started with or from one of its folders, or with its variable
	Mounts    []string `json:"mounts,omitempty"`
	Cgroups   []string `json:"cgroups,omitempty"`
	Folders   []string `json:"folders,omitempty"`
	Absent    []string `json:"absent,omitempty"` // folders of which it cannot be told whether they are there
	// Rebooted says that the machine was started again since: what ran then does not.
	Rebooted bool `json:"rebooted,omitempty"`
	roots    Roots
	own      []string // its folders that bore its mark, also once the mark is gone
}

// Leftovers finds what runs left that are not alive any more, by the marks in
// their folders below the roots. live lists the runs that are under way, which
// are left alone.
func Leftovers(roots Roots) (left []Leftover, live []string, err error) {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return nil, nil, err
	}
	found := map[string]bool{} // whether the run is alive
	for _, root := range []*string{&roots.State, &roots.Data} {
		path, err := secure(*root, false)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("look for what runs left: %w", err)
		}
		*root = path
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, nil, fmt.Errorf("look for what runs left: %w", err)
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

// isID tells a run's id from any other name.
func isID(s string) bool {
	return len(s) == 8 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// folders are those of the run that bear its mark.
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
	if len(l.Absent) > 0 { // or nothing would tell of those
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

// commands finds processes that were started with one of the run's folders as
// an argument: runtimes, their monitors and sandboxes; and those of a program that
// lies there: workloads on the host, which are in no cgroup of the run; and a user's own
// ones there, by their environment. A folder's
// name in the middle of an argument is not enough, so an editor or a grep for the
// id is not taken for one.
func (l *Leftover) commands() []int {
	return slices.DeleteFunc(procs.All(), func(pid int) bool { return pid <= 1 || pid == os.Getpid() || !l.has(pid) })
}

func (l *Leftover) has(pid int) bool {
	return l.names(procs.ArgsOf(pid)) || slices.Contains(procs.EnvironmentOf(pid), procs.RunVariable+"="+l.RunID)
}

// names reports whether a command line is that of a runtime with one of the
// run's folders, or of a program in one.
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

// isRuntime keeps programs that people run on such folders (ls, vi, tail) out:
// a runtime's command line has a --root or --bundle with it.
func isRuntime(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--root" || strings.HasPrefix(arg, "--root=") || strings.HasPrefix(arg, "--bundle")
	})
}

// Remove ends and removes all of it. Where a folder is out of sight, the run's own
// stays with what it keeps of it, unless that is to be forgotten, and the error says
// so.
func (l *Leftover) Remove(forget bool) error {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	group := cgroup.Prefix + l.RunID
	// A runtime that is still dying, or was forked and not yet executed, may put back
	// what is being removed: again, until nothing is left at two looks.
	deadline := time.Now().Add(10 * time.Second)
	var errs []error
	for gone := false; ; {
		l.end(hs, group)
		there, absent, err := l.elsewhere() // which the run's own folder tells of
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
		err = errors.Join(err, fmt.Errorf("%s is out of sight: mount its disk and clean again; %s stays until then, or until tare clean --forget", strings.Join(l.Absent, ", "), l.memory()))
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", l.RunID, err)
	}
	return nil
}

// memory is the folder in which the run kept what has to be known.
func (l *Leftover) memory() string { return filepath.Join(l.roots.Data, l.RunID) }

// end ends what runs of the run: its runtimes, and what is in its cgroups.
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
