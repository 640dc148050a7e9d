package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

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
	i := slices.IndexFunc(servers, func(k known) bool { return k.says == kind })
	if i < 0 {
		return nil, fmt.Errorf("%q is no engine that tare knows: it knows %s", kind, strings.Join(names(), ", "))
	}
	if e.Address == "" && strings.Contains(version, "k3s") {
		e.Address = k3s
	}
	c, v, err := open(ctx, "kubernetes", servers[i].name, e)
	if err != nil {
		return nil, err
	}
	t := &Target{name: "kubernetes", engineName: servers[i].name, e: e, socket: c.socket, version: v}
	d := &driver{Target: t, env: env, conn: c}
	if t.facts, err = c.ask(ctx, t.engineName); err == nil {
		d.probe, err = env.Workload.Image()
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
