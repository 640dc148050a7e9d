package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/kubernetes"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/cluster"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

// smallestRole returns the Role in the docs plus the rules for tests.
func smallestRole(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../../docs/kubernetes.md"))(t)
	_, section, _ := strings.Cut(string(text), "\n### Of a target\n")
	_, role, _ := strings.Cut(section, "```yaml\n")
	role, _, ok := strings.Cut(role, "```")
	must.That(t, ok, "docs/kubernetes.md has no Role")
	return role
}

func opened(t *testing.T, c *cluster.Cluster, name string, lanes int) (subject.Target, subject.Session) {
	t.Helper()
	target := must.Get(found(t, c, name, subject.Engine{}))(t)
	session, err := target.Open(t.Context(), subject.Env{RunID: "k8s" + strings.ToLower(strings.ReplaceAll(name, "/", "-")), Dir: t.TempDir(), StateDir: t.TempDir(),
		Lanes: lanes, Timeout: time.Minute, Limits: subject.DefaultLimits})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, session.Close(context.Background())) })
	return target, session
}

func found(t *testing.T, c *cluster.Cluster, name string, e subject.Engine) (subject.Target, error) {
	t.Helper()
	if e.Kubeconfig == "" {
		e.Kubeconfig = c.As(t, smallestRole(t))
	}
	e.Node, e.Address, e.Namespace = c.Nodes[0].Name, c.Nodes[0].CRI, "default"
	_, class, _ := strings.Cut(name, "/")
	return kubernetes.New(t.Context(), name, class, "", e)
}

func operate(t *testing.T, s subject.Session, op subject.Op, lanes int) []record.Sample {
	t.Helper()
	all := make([]int, lanes)
	for i := range all {
		all[i] = i
	}
	samples := must.Get(subject.Operate(t.Context(), s, op, all))(t)
	for i := range samples {
		must.OK(t, record.Validate(samples[i]))
	}
	return samples
}

// succeed performs an operation and stops the test if a lane fails.
func succeed(t *testing.T, s subject.Session, op subject.Op, lanes int) []record.Sample {
	t.Helper()
	samples := operate(t, s, op, lanes)
	for _, x := range samples {
		must.That(t, x.Failure == nil, "%s on lane %d of %d: %+v", op, x.Lane, lanes, x.Failure)
	}
	return samples
}

// closed closes a session and checks for leftovers in the cluster.
func closed(t *testing.T, c *cluster.Cluster, s subject.Session) {
	t.Helper()
	must.OK(t, s.Close(t.Context()))
	c.Empty(t)
}

func TestPodLifecycle(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	for name, lanes := range map[string][]int{"kubernetes/runc": {1, 4}, "kubernetes/crun": {1}} {
		target, session := opened(t, c, name, slices.Max(lanes))
		check.Equal(t, name, target.Info().Clock, "host")
		for _, n := range lanes {
			for _, s := range succeed(t, session, subject.Run, n) {
				inOrder(t, name, &s)
			}
			for _, s := range operate(t, session, subject.Remove, n) {
				check.That(t, s.Failure == nil && s.Gone != 0 && s.Exited != 0 && s.Exited <= s.Gone, "%s: %+v, %+v", name, s, s.Failure)
			}
		}
		closed(t, c, session)
	}
}

// The program sleeps, becomes ready by the probe of the kubelet, and exits on the stop
// signal.
func TestUsersProgramRunsInAPod(t *testing.T) {
	c, out := cluster.Start(t, cluster.Options{}), t.TempDir()
	const sleeps = 1500 * time.Millisecond
	own, err := cargo.Make(t.Context(), setting.Workload{Command: probe.ServeArgs(8080, fmt.Sprint("delay=", sleeps.Milliseconds())), Mounts: []setting.Mount{setting.Mount(out + ":/out:ro")}}, t.TempDir(), nil)
	must.OK(t, err)
	target := must.Get(found(t, c, "kubernetes/runc", subject.Engine{}))(t)
	session, err := target.Open(t.Context(), subject.Env{RunID: "k8sown", Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: 1, Timeout: time.Minute,
		Limits: subject.DefaultLimits, Workload: subject.Workload{Cargo: own}, Ready: "tcp:8080"})
	must.OK(t, err)
	s := operate(t, session, subject.Run, 1)[0]
	check.That(t, s.Failure == nil && s.First != 0 && time.Duration(s.Ready-s.First) >= sleeps,
		"ready %v after its first instruction: %+v, %+v", time.Duration(s.Ready-s.First), s, s.Failure)
	x := must.Get(session.(subject.Executor).Exec(t.Context(), 0, probe.FileSystemArgs("/out")))(t)
	on, err := probe.ParseFileSystems(x.Output)
	check.That(t, err == nil && len(on) == 1 && on[0].Errno == 0, "/out in it: %+v, %v", on, err)
	succeed(t, session, subject.Remove, 1)
	closed(t, c, session)
}

// inOrder reports stamps that are missing or out of order. The watch and the engine of the
// node may report the same moment in any order.
func inOrder(t *testing.T, name string, s *record.Sample) {
	t.Helper()
	for _, order := range [][]record.Stamp{
		{record.StampScheduled, record.StampSandbox, record.StampRunning, record.StampReady},
		{record.StampNodeSandbox, record.StampNodeStarted, record.StampReady},
		{record.StampNodeSandbox, record.StampFirst, record.StampReady},
	} {
		last := s.Start
		for _, stamp := range order {
			at, taken := s.Time(stamp)
			if !taken || at < last {
				t.Errorf("%s: %s at %d, after %d: %+v", name, stamp, at-s.Start, last-s.Start, s)
			}
			last = at
		}
	}
}

func TestRefusalsHaveReasons(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	t.Run("missing permission: verb and resource", func(t *testing.T) {
		narrow := strings.Replace(smallestRole(t), "verbs: [create, delete, get, list, watch]", "verbs: [get, list, watch]", 1)
		refusedAt(t, c, subject.Engine{Kubeconfig: c.As(t, narrow)}, `cannot create resource "pods"`)
	})
	t.Run("missing image: advice", func(t *testing.T) {
		refusedAt(t, c, subject.Engine{Image: "localhost/no/such:1"}, "ErrImageNeverPull", "crictl pull localhost/no/such:1", "tare image --probe -o probe.tar", "ctr -n k8s.io images import probe.tar", "--image localhost/tare-probe:")
	})
	t.Run("exceeded quota", func(t *testing.T) {
		c.NoPods(t)
		refusedAt(t, c, subject.Engine{}, "quota")
	})
	c.Empty(t)
}

func refusedAt(t *testing.T, c *cluster.Cluster, e subject.Engine, want ...string) {
	t.Helper()
	target, err := found(t, c, "kubernetes/runc", e)
	if err == nil {
		_, err = target.Open(t.Context(), subject.Env{RunID: "refused", Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: 1, Timeout: time.Minute})
	}
	for _, w := range want {
		check.Error(t, err, w)
	}
}

// TestRestartingAPIServerIsAwaited crashes the API server while pods start. Each pod must
// have its stamps or the cause of its failure.
func TestRestartingAPIServerIsAwaited(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	const lanes = 3
	_, session := opened(t, c, "kubernetes/crun", lanes)
	b := must.Get(session.Prepare(t.Context(), subject.Run, []int{0, 1, 2}))(t)
	samples := make(chan []record.Sample, 1)
	go func() {
		_, all, err := b.Start(context.Background())
		check.Error(t, err, "")
		samples <- all
	}()
	c.RestartAPIServer(t)
	for _, s := range <-samples {
		f := s.Failure
		check.That(t, f == nil || strings.Contains(f.Detail, "the watch was interrupted for"), "%+v", f)
		check.That(t, s.Failure != nil || s.Ready != 0, "%+v: neither an end nor a failure", s)
	}
	closed(t, c, session)
}

// statisticsRole has the rules for the summary of the kubelet and for kubectl top. They are
// not part of the minimal Role.
const statisticsRole = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tare-overhead}
rules:
- {apiGroups: [""], resources: [nodes/proxy], verbs: [get]}
- {apiGroups: [metrics.k8s.io], resources: [pods], verbs: [list]}
`

// The kubelet limits a pod to the limits of its container plus the overhead of the
// RuntimeClass.
func TestKubeletLimitsPodToLimitsPlusOverhead(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	class, err := c.Client.RuntimeClasses().Create(t.Context(), &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "with-overhead-"},
		Handler: "runc", Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("16Mi")}}}, metav1.CreateOptions{})
	must.OK(t, err)
	t.Cleanup(func() { c.Kubectl(t, "delete", "runtimeclass", class.Name) })
	target := must.Get(found(t, c, "kubernetes/"+class.Name, subject.Engine{Kubeconfig: c.As(t, smallestRole(t)+statisticsRole)}))(t)
	is := target.Info().Kubernetes
	check.That(t, *is.Overhead == (record.Amounts{CPU: 250, Memory: 16 << 20}) && is.Allocatable.Memory > 0 && is.Handler == "runc", "%+v", is)
	env := subject.Env{RunID: "k8soverhead", Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: 1, Timeout: time.Minute, Limits: subject.Limits{CPU: 1, Memory: 64 << 20}}
	s := must.Get(target.Open(t.Context(), env))(t)
	t.Cleanup(func() { must.OK(t, s.Close(context.Background())) })
	succeed(t, s, subject.Run, 1)
	boxes, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	must.That(t, err == nil && len(boxes) == 1, "%+v, %v", boxes, err)
	b := boxes[0]
	check.That(t, strings.HasPrefix(b.Group, c.Nodes[0].Pods) && len(b.IDs) == 2 && engine.Charged(b.Workload, b.Group) != "" &&
		engine.Charged(b.Pause, b.Group) != "", "%+v, of %s", b, c.Nodes[0].Pods)
	memory, quota := enginetest.Number(t, "memory", b.Group, "memory.limit_in_bytes"), enginetest.Number(t, "cpu", b.Group, "cpu.cfs_quota_us")
	check.That(t, memory == 80<<20 && quota == 125_000, "limits of the pod: %d bytes, %d µs", memory, quota)
	processes := subject.ProcessesOf(t.Context(), s)
	check.That(t, slices.ContainsFunc(processes, func(p subject.Process) bool { return p.Role == record.RoleShim }) &&
		slices.Contains(processes, subject.Process{Role: record.RoleDaemon, Pid: c.Nodes[0].KubeletPid()}), "no shim or no kubelet among %+v", processes)
	check.Equal(t, "Exit", must.Get(s.(subject.Executor).Exec(t.Context(), 0, probe.HoldArgs(1<<20, 0)))(t).Exit, 0)
	pods, err := s.(subject.PodReporter).PodStates(t.Context())
	check.That(t, err == nil && len(pods) == 1 && pods[0] == (record.Pod{}), "%+v, %v", pods, err)
	// The kubelet may not have received the pod yet. metrics-server is not available
	// here.
	says, err := s.(subject.Reporter).Statistics(t.Context())
	check.That(t, err != nil && strings.Contains(err.Error(), "metrics.k8s.io") && !strings.Contains(err.Error(), "forbidden") &&
		len(says) == 1 && says[0].Source == "kubelet summary" && says[0].Memory <= 80<<20, "%+v, %v", says, err)
	succeed(t, s, subject.Remove, 1)
}
