// Package containerd weighs containers made by containerd itself, without Docker or CRI, through
// its Go client and one gRPC connection.
//
// containerd has no call that makes a container: a client makes a snapshot, a container record and
// a task. The operations are those of the Go client (client.NewContainer, container.NewTask, …), as
// in ctr, nerdctl and Docker; each lists its calls. The image's configuration and the name of its
// snapshot are read in advance.
package containerd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/defaults"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/errdefs"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// Target is one runtime behind one containerd.
type Target struct {
	name        string
	at          address
	called      string // the requested runtime
	runtime     runtime
	network     string
	snapshotter string
	root        string // the snapshotter's folder, as reported
	version     string
	hs          []cgroup.Hierarchy
	kata        map[string]string // facts about Kata, for its shim
}

// New returns a runtime of the containerd of e. If it cannot be weighed, the error is a
// *subject.Unavailable.
func New(ctx context.Context, name, runtime, _ string, e subject.Engine) (subject.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t := &Target{name: name, called: runtime, network: cmp.Or(e.Network, subject.NetworkNone)}
	if t.network != subject.NetworkNone && t.network != subject.NetworkHost {
		return nil, engine.Unavailable(name, "use the network none or host, or weigh it through CRI",
			"containerd does not support the network %q", t.network)
	}
	var err error
	if t.at, err = addressOf(e); err != nil {
		return nil, engine.Unavailable(name, "give the path of its socket", "%v", err)
	}
	c, err := Connect(ctx, t.at.socket, t.at.namespace)
	if err != nil {
		return nil, engine.Unavailable(name, adviceFor(err), "%v", err)
	}
	defer func() { _ = c.Close() }()
	if err := t.ask(ctx, c); err != nil {
		return nil, err
	}
	in, letGo := searchOf(t.at.socket)
	defer letGo()
	if t.runtime, err = resolve(ctx, name, runtime, in); err != nil {
		return nil, err
	}
	if t.hs, err = cgroup.Hierarchies(); err != nil {
		return nil, engine.Unavailable(name, "", "%v", err)
	}
	if kata.Is(t.runtime.shim) {
		// Shims other than runc's get no options from tare, and so no configuration file.
		t.kata = KataFacts(ctx, t.at.socket, t.runtime.program, "")
	}
	return t, nil
}

// ask queries the engine's version and default snapshotter.
func (t *Target) ask(ctx context.Context, c *client.Client) error {
	v, err := c.Version(ctx)
	if err != nil {
		return engine.Unavailable(t.name, adviceFor(err), "%s does not answer like containerd: %v", t.at.socket, err)
	}
	if t.version = v.Version; !supported(v.Version) {
		return engine.Unavailable(t.name, "install containerd 1.6 or newer", "containerd %s is too old (minimum: %v)", v.Version, oldest)
	}
	t.snapshotter, t.root, err = snapshotter(ctx, c)
	if err != nil {
		return engine.Unavailable(t.name, "see ctr plugins ls, or set another default: ctr namespaces label "+
			t.at.namespace+" "+defaults.DefaultSnapshotterNSLabel+"=NAME", "%v", err)
	}
	return nil
}

// snapshotter returns the namespace's default snapshotter and its folder. The folder is "" if
// the snapshotter does not report one; a proxy does not. A snapshotter that does not work is an
// error.
func snapshotter(ctx context.Context, c *client.Client) (name, root string, err error) {
	labels, err := c.NamespaceService().Labels(ctx, c.DefaultNamespace())
	if err != nil && !errdefs.IsNotFound(err) {
		return "", "", fmt.Errorf("query the namespace %s: %w", c.DefaultNamespace(), err)
	}
	name = cmp.Or(labels[defaults.DefaultSnapshotterNSLabel], defaults.DefaultSnapshotter)
	reply, err := c.IntrospectionService().Plugins(ctx, "type=="+string(plugins.SnapshotPlugin))
	if err != nil {
		return "", "", fmt.Errorf("list the snapshotters: %w", err)
	}
	var others []string
	why := "not found"
	for _, p := range reply.Plugins {
		switch {
		case p.InitErr == nil && p.ID == name:
			return name, p.Exports["root"], nil
		case p.InitErr == nil:
			others = append(others, p.ID)
		case p.ID == name:
			why = p.InitErr.Message
		}
	}
	return "", "", fmt.Errorf("snapshotter %s: %s (available: %s)", name, why, strings.Join(others, ", "))
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	const create = "client.NewContainer ID (Leases.Create, Snapshots.Prepare, Containers.Create, Leases.Delete), container.NewTask (Containers.Get thrice, Snapshots.Mounts, Tasks.Create)"
	const start = "task.Start ID (Tasks.Start)"
	const started = "Tasks.Start has replied; then: the task is running, its process alive, and the workload has reported"
	calls := map[subject.Op]string{
		subject.Create: create, subject.Start: start, subject.Run: create + ", " + start,
		subject.Stop:   "task.Kill ID SIGNAL (Tasks.Kill), task.Wait (Tasks.Wait, called before)",
		subject.Remove: "task.Delete ID (Tasks.Get, Tasks.Delete), container.Delete ID with its snapshot (Tasks.Get, Containers.Get, Snapshots.Remove, Containers.Delete)",
	}
	info := record.Target{
		Name: t.name, Kind: "containerd", Version: t.version, Path: t.at.socket, SpecVersion: specVersion, Clock: t.clock(),
		Operations: engine.Operations("containers of containerd have no pods", func(op subject.Op) string { return calls[op] }, map[subject.Op]string{
			subject.Create: "Tasks.Create has replied: the shim runs, the OCI runtime's create has ended; then: the task is created and its process alive",
			subject.Start:  started,
			subject.Stop:   "Tasks.Wait has replied: the shim has seen the exit; then: the task is stopped, with status 0",
			subject.Remove: "Containers.Delete has replied; then: containerd does not know the container",
			subject.Run:    started,
		}),
		Config: t.config(),
		Notes:  []string{"containers have no seccomp profile and no LSM label, as with ctr and unlike other engines"},
	}
	if info.Clock == "guest" {
		info.Notes = append(info.Notes, "the workload has a guest clock, so its first instruction has no stamp")
	}
	if t.runtime.note != "" {
		info.Notes = append(info.Notes, t.runtime.note)
	}
	return info
}

func (t *Target) clock() string {
	return engine.Clock(t.runtime.shim + " " + filepath.Base(t.runtime.path))
}

func (t *Target) config() map[string]string {
	config := map[string]string{
		"address": t.at.socket, "namespace": t.at.namespace, "via": "api",
		"snapshotter": t.snapshotter, "storage root": t.root, "network": t.network, "log driver": "file",
		"runtime": t.runtime.shim, "shim path": t.runtime.program, "runtime path": t.runtime.path, "runtime version": t.runtime.version,
		"cgroup driver": "cgroupfs", "cgroup version": cgroup.ModeOf(t.hs),
	}
	maps.Copy(config, t.kata)
	maps.DeleteFunc(config, func(_, value string) bool { return value == "" })
	return config
}
