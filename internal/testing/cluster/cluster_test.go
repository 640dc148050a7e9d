package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestMain(m *testing.M) {
	code := m.Run()
	var started []*engines.ContainerdDaemon
	for place := range clusters.at {
		started = append(started, place)
	}
	err := engines.Stop()
	for _, place := range started {
		for _, left := range leftOf(filepath.Dir(place.Dir), place.Cgroup) {
			err = errors.Join(err, errors.New(left+" is left of a cluster that has ended"))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// leftOf lists what is left of the cluster in a folder.
func leftOf(dir, group string) (left []string) {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		left = append(left, dir)
	}
	if below, err := mounts.Below(dir); err != nil || len(below) > 0 {
		left = append(left, fmt.Sprintf("mounts %q, %v", below, err))
	}
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return append(left, err.Error())
	}
	for _, h := range hs {
		if _, err := os.Lstat(filepath.Join(h.Mount, group)); err == nil {
			left = append(left, filepath.Join(h.Mount, group))
		}
	}
	for _, pid := range procs.All() {
		for _, file := range []string{"environ", "cmdline", "cgroup"} {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if pid != os.Getpid() && (strings.Contains(string(text), dir) || strings.Contains(string(text), group)) {
				left = append(left, fmt.Sprintf("process %d (%s has the cluster's folder or cgroup)", pid, file))
			}
		}
	}
	return left
}

func TestNodeIsReadyWhenItAcceptsPods(t *testing.T) {
	ready := []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		conditions []corev1.NodeCondition
		taint      string
		want       bool
	}{
		"ready condition":    {ready, "kwok.x-k8s.io/node", true},
		"not-ready taint":    {ready, corev1.TaintNodeNotReady, false},
		"unreachable taint":  {ready, corev1.TaintNodeUnreachable, false},
		"no condition":       {nil, "", false},
		"condition is false": {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}, "", false},
	} {
		node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: c.taint}}}, Status: corev1.NodeStatus{Conditions: c.conditions}}
		check.Equal(t, name, nodeReady(node), c.want)
	}
}

func testCluster(t *testing.T) *Cluster { return Start(t, Options{Nodes: 2, Kwok: 50}) }

// pod returns a pod with the probe, which prints its token and waits.
func (c *Cluster) pod(t *testing.T, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	img, err := image.Probe()
	must.OK(t, err)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: img.Ref, Args: []string{"token"}}}},
	}
	change(p)
	if p, err = c.Client.Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		err := c.Client.Pods("default").Delete(context.Background(), p.Name, now)
		check.That(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	})
	return p
}

func on(node *Node) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Name} }
}

// isReady waits until a pod is ready.
func (c *Cluster) isReady(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := c.until(ctx, "the pod is Ready", func() (err error) {
		if p, err = c.Client.Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("status %+v", p.Status)
	})
	must.That(t, err == nil, "%v\n%s%s", err, c.Kubectl(t, "get", "events", "-A"), c.place.Logs())
	return p
}

// imported imports the probe's image.
func (c *Cluster) imported(t *testing.T) {
	t.Helper()
	img := must.Get(image.Probe())(t)
	file := filepath.Join(t.TempDir(), "probe.tar")
	must.OK(t, img.Save(file))
	c.Import(t, file, img.Ref)
}

func TestPodOfEachRuntimeClassBecomesReady(t *testing.T) {
	c := testCluster(t)
	c.imported(t)
	for _, class := range runtimes {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			p := c.isReady(t, c.pod(t, func(p *corev1.Pod) {
				on(c.Nodes[0])(p)
				p.Spec.RuntimeClassName = &class
			}))
			said, err := c.Client.Pods("default").GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
			check.That(t, err == nil && strings.HasPrefix(string(said), "tare-probe/1 token "), "log %q, %v", said, err)
		})
	}
}

func TestEachNodeRunsItsOwnPodsInItsOwnCgroup(t *testing.T) {
	c := testCluster(t)
	c.imported(t)
	hs := must.Get(cgroup.Hierarchies())(t)
	memory := cgroup.Using(hs, "memory")[0].Mount
	for i, n := range c.Nodes {
		p := c.isReady(t, c.pod(t, on(n)))
		group := filepath.Join(memory, n.Pods, "kubepods/besteffort/pod"+string(p.UID))
		if _, err := os.Stat(group); err != nil {
			t.Errorf("the pod of %s is not in its cgroup: %v", n.Name, err)
		}
		check.That(t, p.Status.HostIP == n.address && p.Status.PodIP != "",
			"node %d has the address %s, the pod %q", i, p.Status.HostIP, p.Status.PodIP)
		if all := n.containerd.Sandboxes(t); len(all) == 0 {
			t.Errorf("no sandbox on %s", n.Name)
		}
		// kubectl top gets its figures the same way.
		summary, err := c.Client.REST().Get().Resource("nodes").Name(n.Name).SubResource("proxy").Suffix("stats/summary").DoRaw(t.Context())
		if err != nil || !strings.Contains(string(summary), string(p.UID)) {
			t.Errorf("summary of %s: %v, no pod in: %.300s", n.Name, err, summary)
		}
	}
}

func TestInsufficientRoleIsReported(t *testing.T) {
	c := testCluster(t)
	client, err := kube.Connect(kube.Options{Kubeconfig: c.As(t, must.Read(t, "testdata/narrow.yaml"))})
	must.OK(t, err)
	_, err = client.Pods("default").List(t.Context(), metav1.ListOptions{})
	check.Error(t, err, "")
	_, err = client.Nodes().List(t.Context(), metav1.ListOptions{})
	check.Error(t, err, "")
	err = client.Pods("default").Delete(t.Context(), "any", metav1.DeleteOptions{})
	check.That(t, apierrors.IsForbidden(err) && strings.Contains(err.Error(), `cannot delete resource "pods"`),
		"error %v, want one with the verb and the resource", err)
	_, err = client.Pods("kube-system").List(t.Context(), metav1.ListOptions{})
	check.That(t, apierrors.IsForbidden(err), "error %v in a namespace without the Role", err)
}

func TestFiftyKwokNodesRunPods(t *testing.T) {
	c := testCluster(t)
	for i := range 50 {
		node := fmt.Sprintf("kwok-%d", i)
		p := c.pod(t, func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
			p.Spec.Tolerations = []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}}
		})
		if i%10 == 0 {
			c.isReady(t, p)
		}
	}
}

func TestClusterSurvivesAPIServerAndKubeletRestart(t *testing.T) {
	c := testCluster(t)
	c.imported(t)
	before := c.isReady(t, c.pod(t, on(c.Nodes[0])))
	watch := must.Get(c.Client.Pods("default").Watch(t.Context(), metav1.ListOptions{}))(t)
	pid := c.Nodes[0].KubeletPid()
	c.KillKubelet(t, 0)
	c.RestartAPIServer(t)
	for range watch.ResultChan() { // a broken watch ends
	}
	c.StartKubelet(t, 0)
	check.That(t, c.Nodes[0].KubeletPid() != pid, "the kubelet still has pid %d", pid)
	after := c.isReady(t, c.pod(t, on(c.Nodes[0])))
	if again := c.isReady(t, before); again.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("the earlier pod was restarted: %+v", again.Status)
	}
	check.Equal(t, "node of the pod", after.Spec.NodeName, c.Nodes[0].Name)
}

func TestLabelledObjectsAreFoundUntilDeleted(t *testing.T) {
	c := testCluster(t)
	c.Empty(t)
	maps := c.Client.ConfigMaps("default")
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{engine.RunLabel: "x"}},
	}, metav1.CreateOptions{})
	must.OK(t, err)
	check.Equal(t, "found", must.Get(c.labelled(engine.RunLabel))(t), []string{"configmap/" + made.Name})
	must.OK(t, maps.Delete(t.Context(), made.Name, metav1.DeleteOptions{}))
	c.Empty(t)
}
