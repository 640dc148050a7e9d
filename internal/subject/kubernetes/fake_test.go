package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/kubetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// scripted is an in-memory cluster with a scripted kubelet.
type scripted struct {
	*kubetest.Cluster
	t       *testing.T
	kubelet atomic.Value // func(s *scripted, p *corev1.Pod)
}

const space = "weighing"

var podsOf = corev1.SchemeGroupVersion.WithResource("pods")

// works is a kubelet that starts pods step by step.
func works(s *scripted, p *corev1.Pod) {
	for _, step := range []func(*corev1.Pod){
		is(corev1.PodScheduled), is(corev1.PodReadyToStartContainers), runs, is(corev1.PodReady),
	} {
		step(p)
		s.update(p)
	}
}

func is(kind corev1.PodConditionType) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
}

func runs(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
}

// update stores a pod, unless it was deleted.
func (s *scripted) update(p *corev1.Pod) {
	_ = s.Tracker.Update(podsOf, p.DeepCopy(), p.Namespace)
}

func (s *scripted) does(kubelet func(*scripted, *corev1.Pod)) { s.kubelet.Store(kubelet) }

// script creates a cluster with two schedulable nodes and an unschedulable one.
func script(t *testing.T, objects ...runtime.Object) *scripted {
	t.Helper()
	all := append(objects, node("n1"), node("n2"), &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "crun"}, Handler: "crun"})
	s := &scripted{Cluster: must.Get(kubetest.New(all...))(t), t: t}
	s.does(works)
	s.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		p := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		p.CreationTimestamp, p.UID = metav1.Now(), "uid"
		err := s.Tracker.Create(action.GetResource(), p, p.Namespace)
		if err == nil {
			go s.kubelet.Load().(func(*scripted, *corev1.Pod))(s, p.DeepCopy())
		}
		return true, p, err
	})
	s.PrependReactor("get", "pods/log", func(clienttesting.Action) (bool, runtime.Object, error) {
		list, err := s.Tracker.List(podsOf, corev1.SchemeGroupVersion.WithKind("Pod"), space) // the reactor holds the lock of the cluster
		if err != nil {
			return true, nil, err
		}
		var text strings.Builder
		for _, p := range list.(*corev1.PodList).Items {
			fmt.Fprintf(&text, "tare-probe/1 %s 4711\n", p.Name)
		}
		return true, &runtime.Unknown{Raw: []byte(text.String())}, nil
	})
	return s
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")},
		NodeInfo:    corev1.NodeSystemInfo{BootID: "another", KubeletVersion: "v1.34.4", ContainerRuntimeVersion: "containerd://2.1.0"},
	}}
}

// silence makes the kubelet of node n1 stop reporting.
func (s *scripted) silence() {
	n := node("n1")
	n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}
	if err := s.Tracker.Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""); err != nil {
		s.t.Error(err)
	}
}

func (s *scripted) client() *kube.Client {
	return &kube.Client{API: s.API(), Config: &rest.Config{Host: "https://fake"}, Namespace: space, Throttled: new(atomic.Int64)}
}

func (s *scripted) target(e subject.Engine) (*Target, error) {
	t, err := newTarget(s.t.Context(), "kubernetes/crun", "crun", e, s.client(), &version.Info{GitVersion: "v1.34.4"})
	if err != nil {
		return nil, err
	}
	return t.(*Target), nil
}

// open opens a session. At the end of the test it closes the session and checks for
// leftovers.
func (s *scripted) open(lanes int, timeout time.Duration) (subject.Session, error) {
	s.t.Helper()
	t, err := s.target(subject.Engine{Image: "probe:1"})
	must.OK(s.t, err)
	session, err := t.Open(s.t.Context(), subject.Env{RunID: "r1", Dir: s.t.TempDir(), StateDir: s.t.TempDir(), Lanes: lanes, Timeout: timeout, Limits: subject.DefaultLimits})
	if err == nil {
		s.t.Cleanup(func() {
			if err := session.Close(context.Background()); err != nil {
				s.t.Error(err)
			}
			if left := s.pods(); len(left) > 0 {
				s.t.Errorf("left behind: %q", left)
			}
		})
	}
	return session, err
}

// opened returns a session with one lane on a cluster that accepts everything.
func (s *scripted) opened(timeout time.Duration) subject.Session {
	s.t.Helper()
	session, err := s.open(1, timeout)
	must.OK(s.t, err)
	return session
}

func (s *scripted) pods() (names []string) {
	s.t.Helper()
	list, err := s.API().Pods(space).List(context.Background(), metav1.ListOptions{})
	must.OK(s.t, err)
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

// one returns the sample of an operation on the only lane.
func one(t *testing.T, session subject.Session, op subject.Op) record.Sample {
	t.Helper()
	samples, err := subject.Operate(t.Context(), session, op, []int{0})
	must.That(t, err == nil && len(samples) == 1, "%s: %v, %+v", op, err, samples)
	must.OK(t, record.Validate(samples[0]))
	return samples[0]
}

// refusal returns the error of an API server that refuses a pod.
func refusal(why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(why))
}

// denied returns the error of an authorizer.
func denied(verb, what string) error {
	return refusal(fmt.Sprintf(`User "tare" cannot %s resource %q in API group "" in the namespace %q`, verb, what, space))
}

// refuse fails the next n matching requests with an error.
func (s *scripted) refuse(verb, what string, n int64, err error) {
	var left atomic.Int64
	left.Store(n)
	s.PrependReactor(verb, what, func(clienttesting.Action) (bool, runtime.Object, error) { return left.Add(-1) >= 0, nil, err })
}

// always is more than the number of requests.
const always = 1 << 40

// other returns a pod of another run.
func other() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tare-r2-0-1", Namespace: space, Labels: map[string]string{engine.RunLabel: "r2", kube.ManagedBy: "tare"}}}
}
