// Package cluster starts a real Kubernetes cluster for tests and removes it with
// everything in it.
//
// etcd, the API server, the controller manager, the scheduler and the kubelets are one
// program. scripts/install-tests builds it from the module in kubernetes/. Each node has
// its own containerd 2, root and cgroup for pods. All nodes share the mount and network
// namespaces of the containerds, which [engines] starts and stops. A pod reaches the API
// server at its cluster address. It has no DNS and no kube-proxy, so other services are
// reachable only by the addresses of their pods. Additional nodes are
// simulated by kwok: their pods become Ready, but no process runs.
//
// RBAC, the node authorizer and the verification of all certificates, including those of
// the kubelets, are enabled.
//
// A cluster is started once per test binary and options, when a test first requests it.
// [engines.Main] stops it:
//
//	func TestMain(m *testing.M) { engines.Main(m) }
package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/need"
)

// Options describe a cluster.
type Options struct {
	Nodes int // nodes with a kubelet, node-0 and so on; 0 means one
	Kwok  int // kwok nodes, kwok-0 and so on, with the label type=kwok and a taint with the key kwok.x-k8s.io/node
}

// Cluster is a running cluster.
type Cluster struct {
	Kubeconfig string // of an administrator
	Client     *kube.Client
	Nodes      []*Node // with a kubelet

	dir       string
	kwok      int
	place     *engines.ContainerdDaemon // the engine instance in which everything runs
	ca        *authority
	local     string // local address of the API server
	apiServer *process
	processes []*process
	accounts  atomic.Int64 // created by tests
}

// Node is a node with a kubelet.
type Node struct {
	Name string
	CRI  string // endpoint of its containerd
	Root string // root folder of its kubelet
	Pods string // the parent cgroup of its pods, in every hierarchy

	containerd *engines.ContainerdDaemon
	address    string
	kubelet    *process
}

// KubeletPid returns the process id of the kubelet.
func (n *Node) KubeletPid() int { return n.kubelet.cmd.Process.Pid }

// The runtimes of every node. Each has a RuntimeClass of the same name.
var runtimes = []string{"runc", "crun", "runsc"}

// patience is the timeout of every cluster operation on a busy machine.
const patience = 2 * time.Minute

var clusters = struct {
	sync.Mutex
	at map[*engines.ContainerdDaemon]func() (*Cluster, error)
}{at: map[*engines.ContainerdDaemon]func() (*Cluster, error){}}

// Start starts a cluster with all nodes Ready, or returns the running one with these
// options.
func Start(t engines.TB, o Options) *Cluster {
	t.Helper()
	need.Cluster(t)
	var folders []string
	for i := range max(1, o.Nodes) {
		folders = append(folders, fmt.Sprintf("node-%d", i))
	}
	nodes := engines.Containerds(t, fmt.Sprintf("a cluster with %d of kwok", o.Kwok), folders, engines.GVisor())
	clusters.Lock()
	once, ok := clusters.at[nodes[0]]
	if !ok {
		once = sync.OnceValues(func() (*Cluster, error) { return start(o, folders, nodes) })
		clusters.at[nodes[0]] = once
	}
	clusters.Unlock()
	c, err := once()
	if err != nil {
		t.Fatalf("start a cluster: %v%s", err, nodes[0].Logs())
	}
	return c
}

func start(o Options, names []string, containerds []*engines.ContainerdDaemon) (*Cluster, error) {
	place := containerds[0]
	c := &Cluster{kwok: o.Kwok, place: place, dir: filepath.Join(filepath.Dir(place.Dir), "control")}
	for i, d := range containerds {
		c.Nodes = append(c.Nodes, &Node{
			Name: names[i], CRI: "unix://" + d.Address, Root: filepath.Join(d.Dir, "kubelet"),
			Pods: filepath.Join(place.Cgroup, names[i]), containerd: d, address: nodeAddress(i),
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, step := range []func(context.Context) error{
		c.network, c.credentials, c.startControlPlane, c.pauseImages, c.runtimeClasses, c.startKubelets, c.startKwok, c.ready,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// credentials creates the folder with all certificates and kubeconfigs.
func (c *Cluster) credentials(context.Context) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	var err error
	if c.ca, err = newAuthority(c.dir); err != nil {
		return err
	}
	if c.local, err = c.forward(); err != nil {
		return err
	}
	hosts := []string{"127.0.0.1", serverAddress, serviceAddress, kwokAddress, "kubernetes.default.svc"}
	for _, n := range c.Nodes {
		hosts = append(hosts, n.address)
		if err := c.user(n.Name, "https://"+apiAddress, "system:node:"+n.Name, "system:nodes"); err != nil {
			return err
		}
	}
	if err := c.ca.issue("server", "kube-apiserver", "", hosts...); err != nil {
		return err
	}
	if err := c.user("inside", "https://"+apiAddress, "tare-admin", "system:masters"); err != nil {
		return err
	}
	if err := c.user("admin", "https://"+c.local, "tare-admin", "system:masters"); err != nil {
		return err
	}
	c.Kubeconfig = c.at("admin.kubeconfig")
	c.Client, err = kube.Connect(kube.Options{Kubeconfig: c.Kubeconfig})
	return err
}

func (c *Cluster) at(name string) string { return filepath.Join(c.dir, name) }

// pauseImages imports the image for pod sandboxes.
func (c *Cluster) pauseImages(context.Context) error {
	pause, err := image.Pause(engines.PauseImage)
	if err != nil {
		return err
	}
	file := c.at("pause.tar")
	if err := pause.Save(file); err != nil {
		return err
	}
	return c.load(file, pause.Ref)
}

func (c *Cluster) runtimeClasses(ctx context.Context) error {
	for _, name := range runtimes {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: name}
		if _, err := c.Client.RuntimeClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until all nodes are ready and pods can be created.
func (c *Cluster) ready(ctx context.Context) error {
	nodes := len(c.Nodes) + c.kwok
	return c.until(ctx, fmt.Sprintf("%d nodes are Ready", nodes), func() error {
		accounts := kube.Of[corev1.ServiceAccount, corev1.ServiceAccountList](c.Client.REST(), "serviceaccounts", "default")
		if _, err := accounts.Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		if _, err := c.Client.ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
			return err
		}
		// The API server's cache is recent enough for a repeated query.
		all, err := c.Client.Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		n := 0
		for _, node := range all.Items {
			if nodeReady(&node) {
				n++
			}
		}
		if n < nodes {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

// nodeReady reports whether a node accepts pods. The controller removes the not-ready
// taint shortly after the kubelet reports Ready.
func nodeReady(n *corev1.Node) bool {
	tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
	return !tainted && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// until polls, because a server cannot announce that it is up.
func (c *Cluster) until(ctx context.Context, what string, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		if machine.Sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("until %s: %w", what, err)
		}
		for _, p := range c.processes {
			if status, over := p.status(); over {
				return fmt.Errorf("until %s: %s ended: %s", what, p.name, status)
			}
		}
	}
}
