package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Node is the engine of a cluster's node that this machine is: a kubelet makes the
// pods, and here they are looked at, and the image is given.
type Node struct{ *driver }

// The labels that a kubelet gives its pods and containers.
const (
	uidLabel = "io.kubernetes.pod.uid"
	k3s      = "/run/k3s/containerd/containerd.sock"
)

// OpenNode connects to the engine that a node says it has, such as
// "containerd://2.1.0", at the address of e or where such engines usually listen. It
// is of that node only if [Node.Has] one of its pods.
func OpenNode(ctx context.Context, says string, e subject.Engine, env subject.Env) (*Node, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	kind, version, _ := strings.Cut(says, "://")
	k, is := saying(kind)
	if !is {
		return nil, fmt.Errorf("%q is no engine that tare knows: it knows %s", kind, strings.Join(names(), ", "))
	}
	if e.Address == "" && strings.Contains(version, "k3s") {
		e.Address = k3s
	}
	c, v, err := open(ctx, "kubernetes", k.name, e)
	if err != nil {
		return nil, err
	}
	t := &Target{name: "kubernetes", engineName: k.name, e: e, socket: c.socket, version: v}
	d := &driver{Target: t, env: env, conn: c}
	if t.facts, err = c.ask(ctx, t.engineName); err == nil {
		d.probe, err = env.Image()
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("%s at %s: %w", t.engineName, c.socket, err)
	}
	return &Node{d}, nil
}

// Close ends the connection.
func (n *Node) Close() { n.conn.close() }

// Socket is where the engine listens.
func (n *Node) Socket() string { return n.socket }

// Has tells whether the engine has the pod of that uid.
func (n *Node) Has(ctx context.Context, uid string) (bool, error) {
	pods, err := n.conn.pods(ctx, map[string]string{uidLabel: uid})
	return len(pods) > 0, err
}

// Look asks for the run's pods, by their names, with the container in each.
func (n *Node) Look(ctx context.Context) (map[string]engine.State, error) {
	pods, err := n.conn.pods(ctx, map[string]string{engine.RunLabel: n.env.RunID})
	if err != nil {
		return nil, err
	}
	list, err := ask(ctx, "ListContainers", n.conn.runtime.ListContainers, &api.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	of := map[string]*api.Container{}
	for _, c := range list.Containers {
		of[c.PodSandboxId] = c
	}
	states, errs := make([]engine.State, len(pods)), make([]error, len(pods))
	_ = engine.Each(len(pods), func(i int) error {
		p := pods[i]
		states[i] = engine.State{ID: p.Id, Pod: engine.Pod{ID: p.Id, Said: p.State.String(), Made: p.CreatedAt}}
		if c := of[p.Id]; c != nil {
			states[i], errs[i] = n.withContainer(ctx, states[i], c)
		}
		return nil
	})
	known := map[string]engine.State{}
	for i, s := range states {
		s.Name = pods[i].GetMetadata().GetName()
		if _, again := known[s.Name]; !again || pods[i].State == api.PodSandboxState_SANDBOX_READY { // a kubelet makes a new one where the first failed
			known[s.Name] = s
		}
	}
	return known, errors.Join(errs...)
}

// Complete adds to sandboxes what the engine's states of them lack: the processes that
// hold the pods, and the cgroups that the kubelet has made for them.
func (n *Node) Complete(ctx context.Context, boxes []subject.Sandbox) error {
	uids, err := n.holders(ctx, boxes)
	if err != nil {
		return err
	}
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	for i := range boxes {
		if boxes[i].Group, err = podGroup(hs, uids[i]); err != nil {
			return err
		}
	}
	return nil
}

// podGroup is the cgroup that a kubelet has made for the pod of a uid, as a path from the
// root of the hierarchies. It is looked for by what kubelets call it, with either driver:
// the processes of a pod need not be below it, Kata's may be elsewhere.
func podGroup(hs []cgroup.Hierarchy, uid string) (string, error) {
	if uid == "" {
		return "", errors.New("the engine does not tell the uid of a pod")
	}
	for _, h := range cgroup.Using(hs, "memory") {
		found, err := groupBelow(h.Mount, uid)
		if err != nil || found != "" {
			return found, err
		}
	}
	return "", fmt.Errorf("there is no cgroup of the pod %s here: is /sys/fs/cgroup this machine's own?", uid)
}

// maxGroups bounds how many groups are looked at.
const maxGroups = 1 << 16

// groupBelow looks below a mount for the group whose name ends in "podUID", or
// "podUID.slice" with underscores for dashes (GetPodContainerName of the kubelet).
func groupBelow(mount, uid string) (found string, err error) {
	seen := 0
	err = filepath.WalkDir(mount, func(where string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() { // it went away meanwhile
			return nil
		}
		if seen++; seen > maxGroups {
			return fmt.Errorf("there are more than %d cgroups, and that of the pod %s is not among the first", maxGroups, uid)
		}
		name := d.Name()
		if strings.HasSuffix(name, "pod"+uid) || strings.HasSuffix(name, "pod"+strings.ReplaceAll(uid, "-", "_")+".slice") {
			found = path.Clean("/" + strings.TrimPrefix(where, mount))
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}

// Exec runs a command in a pod's container, as tare's own sessions do; guest: its
// processes are not this kernel's.
func (n *Node) Exec(ctx context.Context, in engine.State, guest bool, args []string) (subject.Executed, error) {
	return n.conn.exec(ctx, in, guest, args)
}

// Daemons are the engine's own process, and its kubelet's.
func (n *Node) Daemons() []int { return append(engine.Listeners(n.socket), kubelets(n.socket)...) }
