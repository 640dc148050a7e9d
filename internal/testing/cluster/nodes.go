package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

// kernelTunables are the machine-wide settings that a kubelet writes unless they are set
// already. The tests show it set values.
var kernelTunables = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

func (c *Cluster) showTunables() error {
	var script strings.Builder
	for name, value := range kernelTunables {
		file := c.at(filepath.Base(name))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&script, "mount --bind %s /proc/sys/%s || exit\n", file, name)
	}
	cmd, err := c.place.Start("tunables", "sh", "-c", script.String())
	if err != nil {
		return err
	}
	return cmd.Wait()
}

func (c *Cluster) startKubelets(context.Context) error {
	if err := c.showTunables(); err != nil {
		return fmt.Errorf("show the kubelets what they want to see of the kernel: %w", err)
	}
	for _, n := range c.Nodes {
		if err := c.startKubelet(n); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startKubelet(n *Node) (err error) {
	if err := makeGroup(n.Pods); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(n.containerd.Dir, name) }
	config := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: %q
address: %q
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
tlsCertFile: %q
tlsPrivateKeyFile: %q
podLogsDir: %q
volumePluginDir: %q
cgroupDriver: cgroupfs
cgroupRoot: %q
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
nodeLeaseDurationSeconds: 4
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 0%%, nodefs.inodesFree: 0%%, imagefs.available: 0%%, imagefs.inodesFree: 0%%}
`, n.CRI, n.address, c.at("ca.crt"), c.at("server.crt"), c.at("server.key"), at("pods"), at("plugins"), n.Pods)
	if err := os.WriteFile(at("kubelet.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	n.kubelet, err = c.start("kubelet", "kubelet-"+n.Name, "--config="+at("kubelet.yaml"), "--root-dir="+n.Root, "--cert-dir="+n.Root,
		"--kubeconfig="+c.at(n.Name+".kubeconfig"), "--hostname-override="+n.Name, "--node-ip="+n.address,
		"--containerd="+n.containerd.Address, "--containerd-namespace=k8s.io")
	return err
}

// makeGroup creates a node's cgroup with all available controllers. The kubelet requires
// it to exist.
func makeGroup(name string) error {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		if h.Version == 2 && cgroup.ModeOf(hs) == cgroup.Hybrid {
			continue // unmounted in the kubelet's namespace
		}
		if err := os.MkdirAll(filepath.Join(h.Mount, name), 0o755); err != nil {
			return err
		}
		for dir := filepath.Dir(name); h.Version == 2; dir = filepath.Dir(dir) {
			for _, controller := range h.Controllers {
				_ = os.WriteFile(filepath.Join(h.Mount, dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
			}
			if dir == "/" {
				break
			}
		}
	}
	return nil
}

// unheard is the time without a heartbeat until a node is not Ready. A kubelet here
// renews its lease every second; kwok, with many nodes, every ten seconds.
func (c *Cluster) unheard() time.Duration {
	switch {
	case c.kwok > 100:
		return 5 * time.Minute // with two CPUs it may be late
	case c.kwok > 0:
		return 40 * time.Second
	}
	return 15 * time.Second // the API server may be unavailable for half of that
}

// startKwok creates nodes and starts kwok, which simulates their kubelets.
func (c *Cluster) startKwok(ctx context.Context) error {
	if c.kwok == 0 {
		return nil
	}
	path, err := program(kwokFolder, "kwok")
	if err != nil {
		return err
	}
	p := &process{name: "kwok", argv: []string{
		path, "--config=" + filepath.Join(filepath.Dir(path), "stages.yaml"), "--kubeconfig=" + c.at("inside.kubeconfig"),
		"--manage-all-nodes=false", "--manage-nodes-with-label-selector=type=kwok", "--node-ip=" + kwokAddress,
	}}
	c.processes = append(c.processes, p)
	if err := c.run(p); err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, c.kwok)
	for i := range c.kwok {
		wait.Go(func() {
			name := fmt.Sprintf("kwok-%d", i)
			_, errs[i] = c.Client.Nodes().Create(ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
					"type": "kwok", corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				}},
				Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "kwok.x-k8s.io/node", Value: "fake", Effect: corev1.TaintEffectNoSchedule}}},
			}, metav1.CreateOptions{})
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
