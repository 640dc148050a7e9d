// Package kubernetes measures starting and deleting a pod in a cluster, by RuntimeClass: from the
// create call until its condition Ready is true, and from the delete call until it is gone.
//
// Timestamps are taken on tare's clock when the API server's watch reports an event, so they may be
// late but never early. A kubelet reports a pod's status about once a second, and events at once;
// the first report counts. The times in the pod's conditions, by the clocks of their writers, are
// kept separately. If the node is this machine, its engine is queried too, and the workload's first
// instruction has a stamp.
package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/version"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/cri"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Name is the engine's name. Without a class it is the cluster's default runtime.
const Name = "kubernetes"

// patience bounds each query outside of the measurement. first bounds the first query, which finds
// out whether the cluster is reachable.
const (
	patience = 10 * time.Second
	first    = 4 * time.Second
)

// Target is one RuntimeClass of a cluster.
type Target struct {
	*kube.Client
	name    string
	e       subject.Engine
	class   *nodev1.RuntimeClass // nil for the default
	version *version.Info
	nodes   []corev1.Node // those that its pods can run on
	here    bool          // all of them are this machine
}

// connect connects to the cluster and queries its version. The error is a *subject.Unavailable.
func connect(ctx context.Context, name string, e subject.Engine) (*kube.Client, *version.Info, error) {
	c, err := kube.Connect(kube.Options{Kubeconfig: e.Kubeconfig, Context: e.Context, Namespace: e.Namespace})
	if err != nil {
		return nil, nil, engine.Unavailable(name, "", "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, first)
	defer cancel()
	v, err := c.ServerVersion(ctx)
	if err != nil {
		return nil, nil, engine.Unavailable(name, "", "%v", kube.Explain(err, "ask the cluster at "+c.Config.Host+" for its version"))
	}
	return c, v, nil
}

// New returns a RuntimeClass of a cluster as a target; "" is the default runtime. If it cannot be
// measured, the error is a *subject.Unavailable.
func New(ctx context.Context, name, class, _ string, e subject.Engine) (subject.Target, error) {
	c, v, err := connect(ctx, name, e)
	if err != nil {
		return nil, err
	}
	return newTarget(ctx, name, class, e, c, v)
}

func newTarget(ctx context.Context, name, class string, e subject.Engine, c *kube.Client, v *version.Info) (subject.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t := &Target{Client: c, name: name, e: e, version: v}
	if e.Network == subject.NetworkNone {
		return nil, engine.Unavailable(name, "use bridge or host", "a pod always has the cluster's network or its node's")
	}
	if class != "" {
		found, err := c.RuntimeClasses().Get(ctx, class, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, engine.Unavailable(name, "see kubectl get runtimeclasses", "the cluster has no RuntimeClass %q", class)
		case err != nil:
			return nil, engine.Unavailable(name, "", "%v", kube.Explain(err, "get the RuntimeClass "+class))
		}
		t.class = found
	}
	nodes, err := c.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, engine.Unavailable(name, "", "%v", kube.Explain(err, "list the cluster's nodes"))
	}
	return t, t.choose(nodes.Items)
}

// choose selects the nodes for the pods: the requested one, or this machine if tare has to import the
// image, or all that accept pods.
func (t *Target) choose(nodes []corev1.Node) error {
	var why []string
	for i := range nodes {
		n := &nodes[i]
		if t.e.Node != "" && n.Name != t.e.Node {
			continue
		}
		if reason := t.refuses(n); reason != "" {
			why = append(why, n.Name+" "+reason)
		} else {
			t.nodes = append(t.nodes, *n)
		}
	}
	named := t.e.Node
	if t.nodes == nil && len(why) == 0 && named != "" {
		return engine.Unavailable(t.name, "see kubectl get nodes", "the cluster has no node %q", named)
	}
	if t.nodes == nil {
		const most = 3
		return engine.Unavailable(t.name, "", "no node of the cluster accepts the pods: %s", cmp.Or(strings.Join(why[:min(most, len(why))], "; "), "it has no nodes"))
	}
	// A node with this machine's boot id runs on its kernel, and so has the same clocks.
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	own := slices.DeleteFunc(slices.Clone(t.nodes), func(n corev1.Node) bool {
		return err != nil || n.Status.NodeInfo.BootID != strings.TrimSpace(string(boot))
	})
	switch {
	case t.e.Image != "" || named != "":
	case len(own) == 1:
		t.nodes, t.e.Node = own, own[0].Name
	case len(own) > 1:
		return engine.Unavailable(t.name, "choose one with --node", "this machine is several nodes of the cluster: %s", strings.Join(namesOf(own), ", "))
	}
	t.here = len(own) > 0 && len(own) == len(t.nodes)
	if t.e.Image == "" && !t.here {
		return engine.Unavailable(t.name, givingImage("", t.nodes[0].Status.NodeInfo.ContainerRuntimeVersion), "tare pulls no image, and imports its own only on the node where it runs, which is not among those that accept the pods")
	}
	return nil
}

// givingImage describes how to import an image on nodes with an engine, and the commands for tare's
// own.
func givingImage(ref, engine string) string {
	load := "ctr -n k8s.io images import probe.tar"
	if strings.HasPrefix(engine, "cri-o:") {
		load = "podman load -i probe.tar"
	}
	own, err := image.Probe()
	if err != nil {
		return err.Error()
	}
	given := "import tare's on the nodes: here tare image --probe -o probe.tar, on each node " + load + ", and then --image " + own.Ref
	if ref != "" && ref != own.Ref {
		given = "if it is in a registry: crictl pull " + ref + " on the node; or " + given
	}
	return given + "; or run tare on the nodes themselves: tare fleet"
}

// refuses returns why pods of the target cannot run on a node, "" if they can. The pods have no
// tolerations except the RuntimeClass's.
func (t *Target) refuses(n *corev1.Node) string {
	if c := kube.NodeReady(n); c.Status != corev1.ConditionTrue {
		return notReady(&c)
	}
	if t.class != nil && t.class.Scheduling != nil && !labels.SelectorFromSet(t.class.Scheduling.NodeSelector).Matches(labels.Set(n.Labels)) {
		return "lacks the labels of the RuntimeClass's node selector"
	}
	for _, taint := range n.Spec.Taints {
		tolerated := t.class != nil && t.class.Scheduling != nil && slices.ContainsFunc(t.class.Scheduling.Tolerations, func(o corev1.Toleration) bool {
			return (o.Key == taint.Key || o.Key == "") && (o.Effect == taint.Effect || o.Effect == "") && (o.Operator == corev1.TolerationOpExists || o.Value == taint.Value)
		})
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated {
			return "has the taint " + taint.ToString()
		}
	}
	return ""
}

func notReady(c *corev1.NodeCondition) string {
	return strings.TrimSpace("is not ready: " + c.Reason + " " + c.Message)
}

func namesOf(nodes []corev1.Node) (names []string) {
	for i := range nodes {
		names = append(names, nodes[i].Name)
	}
	return names
}

// handler returns the runtime's name in the nodes' engines; "" if unknown.
func (t *Target) handler() string {
	if t.class == nil {
		return ""
	}
	return t.class.Handler
}

// clock returns the clock of the workload's stamps.
func (t *Target) clock() string {
	if !t.here {
		return "guest"
	}
	return engine.Clock(t.name + " " + t.handler())
}

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	pods := "/api/v1/namespaces/" + t.Namespace + "/pods"
	reported := "as reported by a watch, by tare's clock"
	return record.Target{
		Name: t.name, Kind: Name, Version: t.version.GitVersion, Clock: t.clock(),
		Operations: map[string]record.Operation{
			string(subject.Run): {Command: "POST " + pods + " ID", Done: record.StampReady,
				Means: "the pod's condition Ready is true, " + reported + "; returned: the call has replied; scheduled, sandbox, running: the first report in its status and events; then: its workload has reported"},
			string(subject.Remove): {Command: "DELETE " + pods + "/ID, grace period " + fmt.Sprint(grace) + " s", Done: record.StampGone,
				Means: "the pod is gone, " + reported + "; returned: the call has replied; exited: its status says that its container has ended"},
		},
		Config:     t.config(),
		Notes:      t.notes(),
		Kubernetes: t.objects(),
	}
}

// Refuses implements subject.Refuser. tare imports the image of a user's program only on this
// machine, not on nodes with a given image.
func (t *Target) Refuses(*setting.Workload) *subject.Unavailable {
	if t.e.Image == "" {
		return nil
	}
	return &subject.Unavailable{Name: t.name, Reason: "its nodes use the image " + t.e.Image + ", which is tare's: your own workload is imported by tare, only on the node where it runs", Advice: "omit that image, and run tare on the node"}
}

// ExportImage implements subject.ImageExporter by the engine of this machine's node.
func (t *Target) ExportImage(ctx context.Context, ref, file string) error {
	n, err := t.engine(ctx, subject.Env{})
	if err != nil {
		return err
	}
	defer n.Close()
	return n.ExportImage(ctx, ref, file)
}

// engine connects to the engine of the only node, which is this machine.
func (t *Target) engine(ctx context.Context, env subject.Env) (*cri.Node, error) {
	return cri.OpenNode(ctx, t.nodes[0].Status.NodeInfo.ContainerRuntimeVersion, t.e, env)
}

func (t *Target) config() map[string]string {
	config := map[string]string{
		"server": t.Config.Host, "context": t.Context, "namespace": t.Namespace, "address": t.e.Address,
		"handler": t.handler(), "node": t.e.Node, "image": t.e.Image,
		"network": map[bool]string{true: "the node's", false: "the cluster's"}[t.e.Network == subject.NetworkHost],
	}
	facts := map[string][]string{}
	for i := range t.nodes {
		info := &t.nodes[i].Status.NodeInfo
		for name, value := range map[string]string{"kubelet": info.KubeletVersion, "engine": info.ContainerRuntimeVersion, "node kernel": info.KernelVersion} {
			facts[name] = append(facts[name], value)
		}
	}
	for name, values := range facts { // nodes differ during an upgrade
		slices.Sort(values)
		config[name] = strings.Join(slices.Compact(values), ", ")
	}
	if t.class != nil && t.class.Overhead != nil {
		for name, value := range t.class.Overhead.PodFixed {
			config["overhead "+string(name)] = value.String()
		}
	}
	maps.DeleteFunc(config, func(_, value string) bool { return value == "" })
	return config
}

func (t *Target) notes() []string {
	notes := []string{
		"client-go's limit of requests is off; requests that the API server delays (429) are counted and reported",
		"pods request almost no CPU and memory, so that as many fit as the node accepts; Kubernetes limits no tasks, and CPU shares only follow from requests",
		"a kubelet checks its containers about once a second: Ready and gone come with such a check",
	}
	if !t.here {
		notes = append(notes, "tare is not on a node of the pods, so the workload's first instruction has no stamp")
	} else if t.clock() == "guest" {
		notes = append(notes, "the workload has a guest clock, so its first instruction has no stamp")
	}
	return notes
}

// Runtimes lists the default runtime, which has no name, and the RuntimeClasses of a cluster.
// Without a cluster, the error is a *subject.Unavailable.
func Runtimes(ctx context.Context, e subject.Engine) ([]string, error) {
	c, _, err := connect(ctx, Name, e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, first)
	defer cancel()
	const most = 100
	list, err := c.RuntimeClasses().List(ctx, metav1.ListOptions{Limit: most})
	if err != nil {
		return nil, engine.Unavailable(Name, "", "%v", kube.Explain(err, "list the RuntimeClasses"))
	}
	out := []string{""}
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out, nil
}

// Elsewhere implements subject.Elsewhere.
func (t *Target) Elsewhere() string {
	if t.here {
		return ""
	}
	return "its pods run on other machines"
}
