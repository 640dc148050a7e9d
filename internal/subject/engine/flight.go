package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Flight finds processes that still work on containers which were abandoned or removed, by
// the containers' ids. An engine or a shim continues a start after its client disconnected:
// Kata's shim boots its VM for up to 20 s, and no engine removes the result.
type Flight struct {
	runID    string          // all names of this run belong to the flight; "" for ids only
	ids      map[string]bool // container names, and the engine's ids of containers and pods
	networks map[uint64]bool // inodes of the network namespaces of their processes
	foreign  map[string]bool // network namespaces that existed before the run, by name
	root     string          // "" except in tests
	began    time.Time       // start of the wait for processes
	said     time.Time
	ended    bool // processes that exceeded the time limit were killed
}

// NewFlight returns a Flight for ids, and for all names of a run if runID is not "".
func NewFlight(runID string, ids ...string) *Flight {
	f := &Flight{runID: runID, ids: map[string]bool{}, networks: map[uint64]bool{}, foreign: map[string]bool{}}
	f.add(ids...)
	return f
}

// foreignPrefix marks, among ids, a network namespace that existed before the run.
const foreignPrefix = "-"

func (f *Flight) add(ids ...string) {
	for _, id := range ids {
		if name, is := strings.CutPrefix(id, foreignPrefix); is {
			f.foreign[name] = true
		} else if unique(id) {
			f.ids[id] = true
		}
	}
}

// unique reports whether an id is so specific that no unrelated program has it among its
// arguments by chance: a name of a run, or an engine's id (64 hexadecimal digits or a UUID).
// An id such as "1" would match, and kill, foreign processes.
func unique(id string) bool {
	const shortest = 16
	return strings.HasPrefix(id, "tare-") && strings.Count(id, "-") >= 2 || len(id) >= shortest
}

func (f *Flight) owns(id string) bool { return f.ids[id] || OfRun(id, f.runID) }

// mentions reports whether text contains one of the ids as a whole word. An underscore
// separates words too, as in "k8s_POD_NAME_tare".
func (f *Flight) mentions(text string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(c rune) bool { return c == '_' || procs.NotOfID(c) }), f.owns)
}

// learn asks the engine for the ids of containers before they are removed.
func (f *Flight) learn(ctx context.Context, d Driver, names []string) {
	if len(names) == 0 {
		return
	}
	f.add(names...)
	states, _ := d.Look(ctx, names) // a broken container may be missing
	for _, s := range states {
		if !s.Remote {
			f.add(s.ID, s.Pod.ID)
		}
	}
}

// processes returns the shims, monitors, VMMs and CNI plugins of the containers, and the
// runtimes and clients that work on them. It records their network namespaces.
func (f *Flight) processes() (all []procs.Found) {
	for _, p := range procs.Programs() {
		helper := procs.HelperRole(p.Name, p.Args) != ""
		name, _ := procs.SkipLinker(p.Name, p.Args)
		switch {
		case !helper && len(p.Args) == 0: // a CNI plugin has its parameters in its environment
			helper = slices.ContainsFunc(procs.EnvironmentOf(p.Pid), func(v string) bool { return strings.HasPrefix(v, "CNI_ARGS=") && f.mentions(v) })
		case !helper && !procs.IsCommand(name):
		default:
			helper = f.mentions(strings.Join(p.Args, " ")) || helper && f.adopt(p)
		}
		if helper && p.Pid != os.Getpid() {
			all = append(all, p)
			if n := kata.NetworkOf(p.Pid); n != 0 {
				f.networks[n] = true
			}
		}
	}
	return all
}

// adopt reports whether the bundle in a shim's working folder mentions one of the ids. It adds
// the sandbox's id, which the engine may not list yet.
func (f *Flight) adopt(p procs.Found) bool {
	if p.Role != record.RoleShim {
		return false
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.Pid))
	if err != nil || !slices.Contains(p.Args, filepath.Base(dir)) {
		return false
	}
	text, _ := machine.ReadPlain(fmt.Sprintf("/proc/%d/cwd/config.json", p.Pid), unix.O_NOFOLLOW, 1<<20) // a foreign file
	is := f.mentions(string(text))
	if is {
		f.add(filepath.Base(dir))
	}
	return is
}

const (
	// shimEnds bounds the wait for processes of removed containers. vmBoots replaces it for
	// VMs: Kata's shim handles nothing else before the VM has booted.
	shimEnds = 10 * time.Second
	vmBoots  = 40 * time.Second
	// killEnds bounds the wait for killed processes.
	killEnds = 10 * time.Second
)

// underWay reports whether processes are still running, after a short wait for their end. It
// kills those that exceed the time limit. The error names processes that survive that.
func (f *Flight) underWay(ctx context.Context) (bool, error) {
	all := f.processes()
	if len(all) == 0 {
		f.began = time.Time{}
		return false, nil
	}
	if f.began.IsZero() {
		f.began, f.said = time.Now(), time.Now().Add(-time.Second/2)
	}
	patience := shimEnds
	if slices.ContainsFunc(all, func(p procs.Found) bool {
		return p.Role == record.RoleVMM || p.Role == record.RoleVirtiofs || strings.Contains(p.Name, "kata")
	}) {
		patience = vmBoots
	}
	waited := time.Since(f.began)
	switch {
	case waited > patience+killEnds:
		var errs []error
		for _, p := range all {
			errs = append(errs, fmt.Errorf("process %d (%s) of a removed container is still running after %v: kill -9 %[1]d; tare clean", p.Pid, p.Name, waited.Round(time.Second)))
		}
		return true, errors.Join(errs...)
	case waited > patience && !f.ended:
		// containerd 1.6 forgets a shim whose task creation was abandoned and never ends it.
		// Once the shim has exited, containerd removes its resources.
		f.ended = true
		for _, p := range all {
			if procs.HelperRole(p.Name, p.Args) != "" {
				_ = cgroup.KillIf(p.Pid, func() bool {
					return strings.HasSuffix(strings.Join(procs.ArgsOf(p.Pid), "\x00"), "\x00"+strings.Join(p.Args, "\x00"))
				}) // fails if it has ended
				Ended(p.Pid, killEnds)
			}
		}
	case time.Since(f.said) > time.Second:
		f.said = time.Now()
		term.Say(ctx, fmt.Sprintf("waiting for %d processes of interrupted starts, such as %s (%d): %v of at most %v", len(all), all[0].Name, all[0].Pid, waited.Round(time.Second), patience+killEnds))
	}
	if err := machine.Sleep(ctx, min(max(pollRemoval, waited/10), pollArrival)); err != nil {
		return true, errors.Join(errLate, ctx.Err())
	}
	return true, nil
}

// left returns the ids of sandboxes with remains of Kata.
func (f *Flight) left(hs []cgroup.Hierarchy) []string {
	if f.runID != "" { // a sandbox that the engine never listed is found by its state
		kata.Sandboxes(f.root, hs, func(id string) bool {
			if !f.owns(id) && f.mentions(kata.State(f.root, id)) {
				f.add(id)
			}
			return false
		})
	}
	return kata.Sandboxes(f.root, hs, f.owns)
}

// Keeps lists what Kata keeps of the sandboxes, one line each.
func (f *Flight) Keeps(hs []cgroup.Hierarchy) (lines []string) {
	for _, id := range f.left(hs) {
		for _, what := range kata.Of(f.root, hs, id) {
			lines = append(lines, map[bool]string{true: "cgroup ", false: "folder "}[what == kata.OverheadPath(id)]+what)
		}
	}
	return lines
}

// Sweep removes what Kata keeps of ended sandboxes and returns the removed paths. The error
// names what stays, with the command that removes it.
func (f *Flight) Sweep(hs []cgroup.Hierarchy) (removed []string, err error) {
	var errs []error
	left := f.left(hs)
	for _, id := range left {
		if n := kata.Network(f.root, id); n != 0 {
			f.networks[n] = true
		}
		gone, err := kata.Remove(f.root, hs, id)
		removed, errs = append(removed, gone...), append(errs, err)
	}
	if len(left) == 0 && len(f.networks) == 0 {
		return removed, nil
	}
	mine, unknown := kata.Networks(f.root, f.networks)
	for _, path := range mine {
		err := kata.RemoveNetwork(path)
		if errs = append(errs, err); err == nil {
			removed = append(removed, path)
		}
	}
	for _, path := range unknown {
		if f.foreign[filepath.Base(path)] {
			continue
		}
		errs = append(errs, fmt.Errorf("the unused network namespace %s stays: it may come from a Kata start of this run or of another; to remove it: ip netns delete %s", path, filepath.Base(path)))
	}
	return removed, errors.Join(errs...)
}

// Settle lists what is left of sandboxes that the engine has forgotten. Unless dryRun, it
// waits for their processes to end and removes it.
func (f *Flight) Settle(ctx context.Context, dryRun bool) (found []string, err error) {
	hs, err := cgroup.Hierarchies()
	if found = f.Keeps(hs); err != nil || dryRun {
		return found, err
	}
	for busy := true; busy && err == nil; busy, err = f.underWay(ctx) {
	}
	_, swept := f.Sweep(hs)
	return found, errors.Join(err, swept)
}

// nameOfARun matches the results of [Name].
var nameOfARun = regexp.MustCompile(`^tare-([a-z2-7]{8})-\d+-\d+$`)

// Unclear lists what Kata keeps of sandboxes whose run has no folder on this machine, one
// line each, with the command that removes it. root is "" except in tests.
func Unclear(root string, known []string) []string {
	hs, _ := cgroup.Hierarchies()
	lines := []string{}
	for _, id := range kata.Sandboxes(root, hs, func(id string) bool {
		m := nameOfARun.FindStringSubmatch(id)
		return m != nil && !slices.Contains(known, m[1]) && len(procs.Mentioning([]string{id})) == 0
	}) {
		for _, what := range kata.Of(root, hs, id) {
			command := "rm -r --one-file-system " + what
			if what == kata.OverheadPath(id) {
				command = "find /sys/fs/cgroup -depth -path '*" + what + "' -exec rmdir {} +"
			}
			lines = append(lines, what+" stays: its run has no folder here; to remove it: "+command)
		}
	}
	return lines
}

// known returns all ids, sorted.
func (f *Flight) known() []string { return slices.Sorted(maps.Keys(f.ids)) }
