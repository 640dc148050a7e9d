// Package oci measures bare OCI runtimes: command lines with create, start, state, kill and
// delete, driven with a bundle that tare writes.
//
// Differences between runtimes are data in [flavour]. An unknown runtime is driven by the
// standard verbs.
package oci

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// Target is one OCI runtime.
type Target struct {
	name    string
	path    string // absolute
	version string
	spec    string // ociVersion of bundles
	flavour flavour
	private bool // needs a mount namespace without the cgroup2 mount
	hs      []cgroup.Hierarchy
}

// Names returns the runtimes that are looked up on PATH.
func Names() []string {
	var names []string
	for _, f := range known {
		names = append(names, f.name)
	}
	return names
}

// New returns the runtime at a path, or with that name on PATH. If it cannot be measured, the
// error is a *subject.Unavailable.
func New(ctx context.Context, name, path string) (subject.Target, error) {
	file, err := exec.LookPath(cmp.Or(path, name))
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return nil, engine.Unavailable(name, install(name), "no %s on PATH", cmp.Or(path, name))
	}
	if err != nil {
		return nil, engine.Unavailable(name, "give the runtime's program with NAME=PATH, or make this one executable: chmod +x", "%v", err)
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil, engine.Unavailable(name, "", "%v", err)
	}
	t := &Target{name: name, path: file}
	var banner string
	if t.flavour, t.version, banner, err = ask(ctx, file, name); err != nil {
		return nil, engine.Unavailable(name, "run it by hand; if it is not an OCI runtime, give another with NAME=PATH", "%v", err)
	}
	t.spec = specVersion(banner)
	if os.Geteuid() != 0 {
		return nil, engine.Unavailable(name, "run tare as root (sudo tare …)", "namespaces and cgroups need root")
	}
	if t.hs, err = cgroup.Hierarchies(); err != nil {
		return nil, engine.Unavailable(name, "", "%v", err)
	}
	if t.flavour.install == "" && t.acceptsAll(ctx) {
		return nil, engine.Unavailable(name, "give another with NAME=PATH", "%s is not an OCI runtime: it reports a container that does not exist", file)
	}
	t.private = t.flavour.refusesHybrid && cgroup.ModeOf(t.hs) == cgroup.Hybrid
	return t, nil
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	cmd := func(verb ...string) string { return lane.Quote(t.args("ROOT", verb...)) }
	info := record.Target{
		Name: t.name, Kind: "oci", Version: t.version, Path: t.path, SpecVersion: t.spec, Clock: "host",
		Operations: map[string]record.Operation{
			string(subject.Create): {Command: cmd("create", "--bundle", "BUNDLE", "--pid-file", "FILE", "ID"), Done: record.StampReturned, Means: "the command has exited with 0; then: state says created"},
			string(subject.Start):  {Command: cmd("start", "ID"), Done: record.StampReturned, Means: "the command has exited with 0; then: the workload has reported, state says running"},
			string(subject.Stop):   {Command: cmd("kill", "ID", "SIGNAL"), Done: record.StampExited, Means: "the container's process has exited on the stop signal"},
			string(subject.Remove): {Command: cmd("delete", "ID"), Done: record.StampReturned, Means: "the command has exited with 0; then: state does not know the container"},
			string(subject.Run):    {Command: cmd("run", "--detach", "--bundle", "BUNDLE", "--pid-file", "FILE", "ID"), Done: record.StampReturned, Means: "the command has exited with 0; then: the workload has reported, state says running"},
		},
		Config: map[string]string{"flavour": t.flavour.name, "root file system": engine.RootMade},
	}
	if t.flavour.guestClock {
		info.Clock = "guest"
		info.Notes = append(info.Notes, "the workload has a guest clock, so its first instruction has no stamp; \"seen\", the arrival of its first output, is the closest")
	}
	if t.private {
		info.Notes = append(info.Notes, "started in a private mount namespace without the cgroup2 mount: it refuses a hybrid cgroup layout")
	}
	if len(t.flavour.global) > 0 {
		info.Config["arguments"] = strings.Join(t.flavour.global, " ")
	}
	return info
}

// args returns a command line of the runtime with the state folder root.
func (t *Target) args(root string, verb ...string) []string {
	args := append([]string{t.path, "--root", root}, t.flavour.global...)
	return append(args, verb...)
}

// acceptsAll reports whether a program succeeds whatever its arguments are, even for an unknown
// container. Operations with it would wait for a workload in vain.
func (t *Target) acceptsAll(ctx context.Context) bool {
	root, err := os.MkdirTemp("", "tare-state-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(root)
	ended, err := child.Ask(ctx, t.args(root, "state", "tare-none"))
	return err == nil && ended.Exit == 0
}

// withNetwork returns a copy of the target whose sandboxes use networks that tare makes.
func (t *Target) withNetwork() *Target {
	r := *t
	r.flavour.global = slices.Clone(t.flavour.global)
	for i, arg := range r.flavour.global {
		if arg == "--network=none" {
			r.flavour.global[i] = "--network=sandbox"
		}
	}
	return &r
}
