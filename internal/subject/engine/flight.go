package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Flight finds what is still under way of containers that were given up or removed, by their
// known ids. An engine or a shim goes on with a start after its client has gone: Kata's shim
// boots its VM for up to 20 s, and what it makes in that time no engine removes.
type Flight struct {
	runID    string          // all of whose names are among the ids; "" for those of ids alone
	ids      map[string]bool // names of containers, and what the engine calls them and their pods
	networks map[uint64]bool // inodes of network namespaces that their processes had
	foreign  map[string]bool // names of network namespaces that were there before
	root     string          // "" but for tests
	began    time.Time       // when a process was first waited for
	said     time.Time
	ended    bool // those were killed that did not end in time
}

// NewFlight returns that of ids, and of all names of a run where one is given.
func NewFlight(runID string, ids ...string) *Flight {
	f := &Flight{runID: runID, ids: map[string]bool{}, networks: map[uint64]bool{}, foreign: map[string]bool{}}
	f.add(ids...)
	return f
}

// before marks names of network namespaces that were there before the run, among ids.
const before = "-"

func (f *Flight) add(ids ...string) {
	for _, id := range ids {
		if name, is := strings.CutPrefix(id, before); is {
			f.foreign[name] = true
		} else if unique(id) {
			f.ids[id] = true
		}
	}
}

// unique reports whether an id is one that no other program's arguments have by chance: a
// name of a run's, or what engines make, 64 hexadecimal digits or a UUID. By an id such as
// "1" processes of others would be found, and killed.
func unique(id string) bool {
	const shortest = 16
	return strings.HasPrefix(id, "tare-") && strings.Count(id, "-") >= 2 || len(id) >= shortest
}

func (f *Flight) owns(id string) bool { return f.ids[id] || OfRun(id, f.runID) }

// mentions reports whether one of the ids is in a text, between characters that cannot be in
// one: also in "k8s_POD_NAME_tare".
func (f *Flight) mentions(text string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(c rune) bool { return c == '_' || procs.NotOfID(c) }), f.owns)
}

// learn asks the engine what it calls containers, before they are removed.
func (f *Flight) learn(ctx context.Context, d Driver, names []string) {
	if len(names) == 0 {
		return
	}
	f.add(names...)
	states, _ := d.Look(ctx, names) // a broken one may be missing
	for _, s := range states {
		if !s.Afar {
			f.add(s.ID, s.Pod.ID)
		}
	}
}

// processes returns the shims, monitors and VMMs of the containers, the runtimes and clients
// that work on them, and their CNI plugins. It notes the network namespaces of all.
func (f *Flight) processes() (all []procs.Found) {
	for _, p := range procs.Programs() {
		_, beside := procs.Beside(p.Name, p.Args)
		name, _ := procs.Behind(p.Name, p.Args)
		switch {
		case !beside && len(p.Args) == 0: // a CNI plugin has everything in its environment
			beside = slices.ContainsFunc(procs.EnvironmentOf(p.Pid), func(v string) bool { return strings.HasPrefix(v, "CNI_ARGS=") && f.mentions(v) })
		case !beside && !procs.IsCommand(name):
		default:
			beside = f.mentions(strings.Join(p.Args, " ")) || beside && f.adopt(p)
		}
		if beside && p.Pid != os.Getpid() {
			all = append(all, p)
			if n := kata.NetworkOf(p.Pid); n != 0 {
				f.networks[n] = true
			}
		}
	}
	return all
}

// adopt reports whether a shim's bundle, which is its working folder, has one of the names. It
// adds the sandbox's id: the engine may not list the sandbox yet.
func (f *Flight) adopt(p procs.Found) bool {
	if p.Role != record.RoleShim {
		return false
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.Pid))
	if err != nil || !slices.Contains(p.Args, filepath.Base(dir)) {
		return false
	}
	file, err := OpenLog(fmt.Sprintf("/proc/%d/cwd/config.json", p.Pid)) // which is foreign, too
	if err != nil {
		return false
	}
	defer file.Close()
	const most = 1 << 20
	text, _ := io.ReadAll(io.LimitReader(file, most))
	is := f.mentions(string(text))
	if is {
		f.add(filepath.Base(dir))
	}
	return is
}

const (
	// shimEnds is how long processes may take to end by themselves once their containers were
	// removed, and vmBoots those of a VM, whose shim does nothing else before it has booted.
	shimEnds = 10 * time.Second
	vmBoots  = 40 * time.Second
	// killEnds is how long they may take to go once they were killed.
	killEnds = 10 * time.Second
)

// underWay reports whether something still is, after a moment in which it may have ended.
// What does not end in time is killed, and is the error if that does not help either.
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
			errs = append(errs, fmt.Errorf("process %d (%s) of what was removed has not ended %v later: kill -9 %[1]d; tare clean", p.Pid, p.Name, waited.Round(time.Second)))
		}
		return true, errors.Join(errs...)
	case waited > patience && !f.ended:
		// containerd 1.6 forgets a shim whose task was given up while it was made, and never
		// ends it. When the shim has gone, containerd removes what it had.
		f.ended = true
		for _, p := range all {
			if _, beside := procs.Beside(p.Name, p.Args); beside {
				_ = cgroup.KillIf(p.Pid, func() bool {
					return strings.HasSuffix(strings.Join(procs.ArgsOf(p.Pid), "\x00"), "\x00"+strings.Join(p.Args, "\x00"))
				}) // or it has gone
				Ended(p.Pid, killEnds)
			}
		}
	case time.Since(f.said) > time.Second:
		f.said = time.Now()
		term.Say(ctx, fmt.Sprintf("waiting for %d processes of starts that were interrupted, such as %s (%d): %v of at most %v", len(all), all[0].Name, all[0].Pid, waited.Round(time.Second), patience+killEnds))
	}
	if err := machine.Sleep(ctx, min(max(step, waited/10), sight)); err != nil {
		return true, errors.Join(errLate, ctx.Err())
	}
	return true, nil
}

// Left are the ids of sandboxes of which Kata still keeps something.
func (f *Flight) left(hs []cgroup.Hierarchy) []string {
	if f.runID != "" { // the engine may have forgotten a sandbox that it never listed
		kata.Sandboxes(f.root, hs, func(id string) bool {
			if !f.owns(id) && f.mentions(kata.State(f.root, id)) {
				f.add(id)
			}
			return false
		})
	}
	return kata.Sandboxes(f.root, hs, f.owns)
}

// Keeps are what Kata keeps of the sandboxes, a line each.
func (f *Flight) Keeps(hs []cgroup.Hierarchy) (lines []string) {
	for _, id := range f.left(hs) {
		for _, what := range kata.Of(f.root, hs, id) {
			if what == kata.OverheadPath(id) {
				what = "cgroup " + what
			} else {
				what = "folder " + what
			}
			lines = append(lines, what)
		}
	}
	return lines
}

// Sweep removes what Kata keeps of sandboxes that have gone, and returns the paths. The error
// says what stays, and the command that removes it.
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
		errs = append(errs, fmt.Errorf("%s, a network namespace that nothing is in, may be one that Kata left of a start of this run or of another: it stays; ip netns delete %s removes it", path, filepath.Base(path)))
	}
	return removed, errors.Join(errs...)
}

// Settle finds what is left of sandboxes that no engine knows any more, and removes it unless
// dryRun, when nothing of theirs is under way.
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

// nameOfARun is one that [Name] gives.
var nameOfARun = regexp.MustCompile(`^tare-([a-z2-7]{8})-\d+-\d+$`)

// Unclear are what Kata keeps of sandboxes with names of runs that have no folder on this
// machine, a line each, with the command that removes it. Root is "" but for tests.
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
			lines = append(lines, what+" has a name of a run that has no folder here: it stays; "+command+" removes it")
		}
	}
	return lines
}

// known are all ids, sorted.
func (f *Flight) known() []string { return slices.Sorted(maps.Keys(f.ids)) }
