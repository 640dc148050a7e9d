package kubernetes_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/cluster"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// statisticsRole is what the kubelet's summary and kubectl top take beside the smallest Role.
const statisticsRole = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tare-overhead}
rules:
- {apiGroups: [""], resources: [nodes/proxy], verbs: [get]}
- {apiGroups: [metrics.k8s.io], resources: [pods], verbs: [list]}
`

// What a pod is limited to is the kubelet's doing: its container's limits, and what its
// RuntimeClass declares beside them.
func TestTheKubeletLimitsAPodToItsLimitsAndItsOverhead(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	class, err := c.Client.NodeV1().RuntimeClasses().Create(t.Context(), &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "with-overhead-"},
		Handler: "runc", Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("16Mi")}}}, metav1.CreateOptions{})
	must.OK(t, err)
	t.Cleanup(func() { c.Kubectl(t, "delete", "runtimeclass", class.Name) })
	target, err := found(t, c, "kubernetes/"+class.Name, subject.Engine{Kubeconfig: c.As(t, smallestRole(t)+statisticsRole)})
	must.OK(t, err)
	if is := target.Info().Kubernetes; *is.Overhead != (record.Amounts{CPU: 250, Memory: 16 << 20}) || is.Allocatable.Memory <= 0 || is.Handler != "runc" {
		t.Errorf("%+v", is)
	}
	env := subject.Env{RunID: "k8soverhead", Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: 1, Timeout: time.Minute, Limits: subject.Limits{CPU: 1, Memory: 64 << 20}}
	s, err := target.Open(t.Context(), env)
	must.OK(t, err)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if failed := operate(t, s, subject.Run, 1)[0].Failure; failed != nil {
		t.Fatalf("%+v", failed)
	}
	boxes, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	if err != nil || len(boxes) != 1 {
		t.Fatalf("%+v, %v", boxes, err)
	}
	b := boxes[0]
	if !strings.HasPrefix(b.Group, c.Nodes[0].Pods) || len(b.IDs) != 2 || engine.Charged(b.Workload, b.Group) == "" || engine.Charged(b.Pause, b.Group) == "" {
		t.Errorf("%+v, of %s", b, c.Nodes[0].Pods)
	}
	memory, quota := enginetest.Number(t, "memory", b.Group, "memory.limit_in_bytes"), enginetest.Number(t, "cpu", b.Group, "cpu.cfs_quota_us")
	if memory != 80<<20 || quota != 125_000 {
		t.Errorf("the pod may have %d bytes and %d µs", memory, quota)
	}
	processes := subject.ProcessesOf(t.Context(), s)
	if !slices.ContainsFunc(processes, func(p subject.Process) bool { return p.Role == record.RoleShim }) ||
		!slices.Contains(processes, subject.Process{Role: record.RoleDaemon, Pid: c.Nodes[0].KubeletPid()}) {
		t.Errorf("no shim or no kubelet among %+v", processes)
	}
	x, err := s.(subject.Executor).Exec(t.Context(), 0, probe.HoldArgs(1<<20, 0))
	if err != nil || x.Exit != 0 {
		t.Errorf("%+v, %v", x, err)
	}
	if pods, err := s.(subject.Tended).Became(t.Context()); err != nil || len(pods) != 1 || pods[0] != (record.Pod{}) {
		t.Errorf("%+v, %v", pods, err)
	}
	// Whether the kubelet has looked at the pod yet is a matter of its time. What kubectl
	// top needs is not served here.
	says, err := s.(subject.Reporter).Statistics(t.Context())
	if err == nil || !strings.Contains(err.Error(), "metrics.k8s.io") || strings.Contains(err.Error(), "forbidden") || len(says) != 1 || says[0].Source != "kubelet summary" || says[0].Memory > 80<<20 {
		t.Errorf("%+v, %v", says, err)
	}
	if failed := operate(t, s, subject.Remove, 1)[0].Failure; failed != nil {
		t.Errorf("%+v", failed)
	}
}
