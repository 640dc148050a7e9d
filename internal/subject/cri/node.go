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

// Node is this machine's engine in its role as the engine of a cluster node. A kubelet makes the
// pods; Node reads their states and loads the image.
type Node struct{ *driver }

// uidLabel is the label with a pod's uid that a kubelet sets on pods and containers.
const uidLabel = "io.kubernetes.pod.uid"

// OpenNode connects to an engine of the kind that a node reports, such as "containerd://2.1.0",
// at e's address or the default one. It may be another engine of that kind: it is the node's
// only if [Node.Has] finds one of the node's pods.
func OpenNode(ctx context.Context, says string, e subject.Engine, env subject.Env) (*Node, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	kind, version, _ := strings.Cut(says, "://")
	k, err := serviceCalled(kind)
	if err != nil {
		return nil, err
	}
	if e.Address == "" && strings.Contains(version, "k3s") {
		e.Address = "/run/k3s/containerd/containerd.sock"
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

// Socket returns the engine's socket.
func (n *Node) Socket() string { return n.socket }

// Has reports whether the engine has the pod with that uid.
func (n *Node) Has(ctx context.Context, uid string) (bool, error) {
	pods, err := n.conn.pods(ctx, map[string]string{uidLabel: uid})
	return len(pods) > 0, err
}

// Look returns the states of the run's pods and their containers by name.
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
		if _, again := known[s.Name]; !again || pods[i].State == api.PodSandboxState_SANDBOX_READY { // a kubelet replaces a failed pod
			known[s.Name] = s
		}
	}
	return known, errors.Join(errs...)
}

// Complete adds the pause processes and the kubelet's cgroups to sandboxes.
func (n *Node) Complete(ctx context.Context, boxes []subject.Sandbox) error {
	uids, err := n.addPauses(ctx, boxes)
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

// podGroup returns the cgroup that a kubelet made for the pod with a uid, as a path from the
// root of the hierarchies. It searches for the name that either cgroup driver gives it. It does
// not start from the pod's processes, which may be in other cgroups, as with Kata.
func podGroup(hs []cgroup.Hierarchy, uid string) (string, error) {
	if uid == "" {
		return "", errors.New("the engine does not report the uid of a pod")
	}
	for _, h := range cgroup.Using(hs, "memory") {
		found, err := groupBelow(h.Mount, uid)
		if err != nil || found != "" {
			return found, err
		}
	}
	return "", fmt.Errorf("no cgroup for the pod %s: check that /sys/fs/cgroup is the host's", uid)
}

// maxGroups bounds the number of cgroups that are searched.
const maxGroups = 1 << 16

// groupBelow searches a mount for the group whose name ends in "podUID", or in "podUID.slice"
// with underscores for dashes (GetPodContainerName of the kubelet).
func groupBelow(mount, uid string) (found string, err error) {
	seen := 0
	err = filepath.WalkDir(mount, func(where string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() { // removed during the walk
			return nil
		}
		if seen++; seen > maxGroups {
			return fmt.Errorf("the pod %[2]s has no cgroup among the first %[1]d", maxGroups, uid)
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

// Exec runs a command in a pod's container. guest means that its processes are in a guest
// kernel.
func (n *Node) Exec(ctx context.Context, in engine.State, guest bool, args []string) (subject.Executed, error) {
	return n.conn.exec(ctx, in, guest, args)
}

// Daemons returns the processes of the engine and its kubelet.
func (n *Node) Daemons() []int { return append(engine.Listeners(n.socket), kubelets(n.socket)...) }
