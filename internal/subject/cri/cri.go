// Package cri weighs pods and their containers through the Container Runtime Interface v1 of
// containerd, CRI-O, iSulad, and Docker with cri-dockerd. Each operation is the CRI call of the
// same name, except for run, which is the three calls that crictl run makes.
package cri

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/record"
)

// Target is one runtime handler of one engine.
type Target struct {
	name       string
	engineName string
	handler    string // "" for the engine's default
	e          subject.Engine
	socket     string
	network    string // subject.NetworkHost or subject.NetworkBridge
	version    *api.VersionResponse
	facts      facts
	runtime    string            // version of the handler's program; "" if unknown
	kata       map[string]string // facts about Kata, for a handler of Kata's
	ownPause   bool              // tare makes the pause image: the engine has none
	command    *cli.Program      // crictl; nil with the API
	client     string            // version of crictl
	hs         []cgroup.Hierarchy
}

// New returns a runtime handler of a CRI engine ("containerd", "cri-o", "isulad",
// "cri-dockerd"); an empty handler is the default. If it cannot be weighed, the error is a
// *subject.Unavailable.
func New(ctx context.Context, name, engineName, handler string, e subject.Engine) (subject.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	c, version, err := open(ctx, name, engineName, e)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := &Target{name: name, engineName: engineName, handler: handler, e: e, socket: c.socket, version: version, network: subject.NetworkHost}
	if e.Network == subject.NetworkBridge {
		t.network = subject.NetworkBridge
	}
	if t.facts, err = c.ask(ctx, engineName); err != nil {
		return nil, engine.Unavailable(name, "see the engine's log", "%v", err)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	if err := t.askKata(ctx); err != nil {
		return nil, err
	}
	if t.facts.pause != "" {
		id, err := c.find(ctx, t.facts.pause)
		if err != nil {
			return nil, engine.Unavailable(name, "see the engine's log", "%v", err)
		}
		if t.ownPause = id == ""; t.ownPause {
			if err := c.mayMakePause(ctx, name, t.facts.pause); err != nil {
				return nil, err
			}
		}
	} else if engineName == isuladEngine { // the others have a default
		return nil, engine.Unavailable(name, pauseAdvice[isuladEngine], "isulad has no pause image: its pod-sandbox-image is empty")
	}
	if t.hs, err = cgroup.Hierarchies(); err != nil {
		return nil, engine.Unavailable(name, "", "%v", err)
	}
	t.runtime = containerd.RuntimeVersion(ctx, c.socket, t.program().path)
	return t, nil
}

// check checks the requested handler and network against the facts.
func (t *Target) check() error {
	if _, ok := t.facts.handlers[t.handler]; !ok && t.handler != "" && len(t.facts.handlers) > 0 && (t.facts.has == nil || !t.facts.has(t.handler)) {
		return engine.Unavailable(t.name, "add it to the engine's configuration", "%s has no runtime handler %q (configured: %s)",
			t.engineName, t.handler, strings.Join(t.facts.names(), ", "))
	}
	if t.network == subject.NetworkBridge && !t.facts.networkReady {
		return engine.Unavailable(t.name, "add a CNI configuration, or omit the network",
			"%s has no network for pods: %s", t.engineName, t.facts.networkReason)
	}
	return nil
}

// program returns the handler in use, with its path.
func (t *Target) program() handler {
	name := cmp.Or(t.handler, t.facts.standard)
	h := t.facts.handlers[name]
	if h.path == "" && (h.kind == "io.containerd.runc.v2" || h.kind == "oci" || h.kind == "") {
		h.path = name // default of the shim or the engine, from its PATH
		if h.kind == "io.containerd.runc.v2" {
			h.path = "runc"
		}
	}
	return h
}

func (t *Target) clock() string {
	p := t.program()
	return engine.Clock(t.handler + " " + p.kind + " " + filepath.Base(p.path))
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	return record.Target{
		Name: t.name, Kind: "cri", Version: t.version.RuntimeVersion, Path: t.socket, Clock: t.clock(),
		Operations: t.operations(),
		Config:     t.config(),
		Notes:      t.notes(),
	}
}

// operations describes the timed calls.
func (t *Target) operations() map[string]record.Operation {
	op := func(command, means string) record.Operation {
		return record.Operation{Command: command, Done: record.StampReturned, Means: "the call has replied; then: " + means}
	}
	const runs = "the container is running, its process alive, and the workload has reported"
	all := map[string]record.Operation{
		string(subject.RunPod):    op("RunPodSandbox ID", "the pod is ready"),
		string(subject.Create):    op("CreateContainer ID in an existing pod", "the container is created"),
		string(subject.Start):     op("StartContainer ID", runs),
		string(subject.Stop):      op("StopContainer ID timeout 10", "the container has exited, with status 0"),
		string(subject.Remove):    op("RemoveContainer ID", "the engine does not know the container"),
		string(subject.StopPod):   op("StopPodSandbox ID", "the pod is not ready"),
		string(subject.RemovePod): op("RemovePodSandbox ID", "the engine does not know the pod"),
		string(subject.Run):       op("RunPodSandbox ID, CreateContainer ID, StartContainer ID", runs),
	}
	if t.command != nil {
		for name, o := range all {
			o.Command = lane.Quote(t.shown(subject.Op(name)))
			o.Means = strings.Replace(o.Means, "the call has replied", "crictl has exited with 0", 1)
			all[name] = o
		}
	}
	return all
}

func (t *Target) config() map[string]string {
	p := t.program()
	config := map[string]string{
		"address": t.socket, "via": "CRI " + t.version.RuntimeApiVersion, "handler": t.handler, "default handler": t.facts.standard,
		"runtime": p.kind, "runtime path": p.path, "runtime version": t.runtime, "network": t.network,
		"cgroup driver": t.facts.cgroups, "cgroup version": cgroup.ModeOf(t.hs),
		"snapshotter": t.facts.snapshotter, "storage driver": t.facts.storage.driver, "storage root": t.facts.storage.root, "pause image": t.facts.pause,
	}
	if t.command != nil {
		config["via"], config["command"], config["command version"] = "cli, CRI "+t.version.RuntimeApiVersion, t.command.Path, t.client
	}
	if t.ownPause {
		config["pause image"] += " (made by tare: the engine has none)"
	}
	config["handler's snapshotter"], config["sandboxer"] = p.snapshotter, p.sandboxer
	maps.Copy(config, t.facts.more)
	maps.Copy(config, t.kata)
	maps.DeleteFunc(config, func(_, value string) bool { return value == "" })
	return config
}

func (t *Target) notes() []string {
	notes := []string{
		"CRI has no task limit for containers: the engine's configured limit applies; for a user's program tare limits the pod's cgroup where it makes that",
		"tare requests containers without a seccomp profile, as a kubelet does by default",
	}
	if t.command != nil {
		notes = append(notes, "each operation is a crictl process and includes its start, connection and further queries; compare with the target without +cli")
	}
	if t.engineName == crioEngine {
		notes = append(notes, "StopContainer polls for the end of the process every 100 ms, so its time is a multiple of that; \"exited\" is the real end")
	}
	if t.facts.podless && t.kata == nil {
		notes = append(notes, "drop_infra_ctr is on: pods here have no pause process, and cost less than pods with one")
	}
	if kubelet(t.socket) {
		notes = append(notes, "a kubelet runs here and ends unknown pods within seconds, so operations fail: stop it during the run")
	}
	if t.clock() == "guest" {
		notes = append(notes, "the workload has a guest clock, so its first instruction has no stamp")
	}
	if t.kata != nil && t.network == subject.NetworkHost {
		notes = append(notes, "Kata cannot use the host's network; use --network bridge to weigh it with a network")
	}
	return notes
}
