//go:build prove

package kubernetes_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/cluster"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestTwentyPodsOfEachRuntimeClassStartTogether(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	for _, name := range []string{"kubernetes/runc", "kubernetes/crun", "kubernetes/runsc"} {
		_, session := opened(t, c, name, 20)
		count, sum := started(t, c)
		runs := succeed(t, session, subject.Run, 20)
		agrees(t, c, runs, count, sum)
		closed(t, c, session)
	}
}

func TestDeadKubeletIsTheReportedCause(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	_, session := opened(t, c, "kubernetes/runc", 1)
	c.KillKubelet(t, 0)
	f := operate(t, session, subject.Run, 1)[0].Failure
	check.That(t, f != nil && f.Kind == record.FailTimeout && strings.Contains(f.Detail, "the node "+c.Nodes[0].Name+" is not ready"),
		"%+v", f)
	must.OK(t, session.Discard(t.Context(), []int{0}))
	c.Empty(t)
	c.StartKubelet(t, 0)
}

// TestManyForeignEventsCostNoStamp sends ten thousand events of another pod during a
// measurement. tare's watch receives all of them, because the pod has the same namespace.
func TestManyForeignEventsCostNoStamp(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	_, session := opened(t, c, "kubernetes/runc", 1)
	const events = 10_000
	api, label := c.Client.Events("default"), map[string]string{"test": "events"}
	t.Cleanup(func() { c.Kubectl(t, "delete", "events", "--selector=test=events") })
	sent := make(chan error, 1)
	go func() {
		sent <- engine.Each(events, func(i int) error {
			_, err := api.Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other.%d", i), Labels: label}, Type: corev1.EventTypeWarning, Reason: "Failed",
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "other", Namespace: "default"}, Message: strings.Repeat("x", 500)}, metav1.CreateOptions{})
			return err
		})
	}()
	began, n := time.Now(), 0
	for over := false; !over; n++ {
		select {
		case err := <-sent:
			if over = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		for _, op := range []subject.Op{subject.Run, subject.Remove} {
			s := succeed(t, session, op, 1)[0]
			if op == subject.Run {
				inOrder(t, "kubernetes/runc", &s)
			}
		}
	}
	t.Logf("%d pods were run and removed in the %v in which there were %d events", n, time.Since(began).Round(time.Second), events)
	closed(t, c, session)
}

// TestPodAmongAThousandNodes puts a foreign pod on each node. tare must list and cache
// only its own pods.
func TestPodAmongAThousandNodes(t *testing.T) {
	const crowd = 1000
	c := cluster.Start(t, cluster.Options{Kwok: crowd})
	pods := c.Client.Pods("default")
	t.Cleanup(func() { c.Kubectl(t, "delete", "pods", "--selector=test=crowd", "--wait=false") })
	must.OK(t, engine.Each(crowd, func(i int) error {
		_, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("crowd-%d", i), Labels: map[string]string{"test": "crowd"}},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("kwok-%d", i), Containers: []corev1.Container{{Name: "one", Image: "localhost/missing:this"}}}}, metav1.CreateOptions{})
		return err
	}))
	began := time.Now()
	_, session := opened(t, c, "kubernetes/runc", 1)
	t.Logf("open among %d nodes and as many pods: %v", crowd, time.Since(began).Round(time.Millisecond))
	for range 5 {
		run := succeed(t, session, subject.Run, 1)[0]
		inOrder(t, "kubernetes/runc", &run)
		rm := succeed(t, session, subject.Remove, 1)[0]
		t.Logf("ready after %v, gone after %v", time.Duration(run.Ready-run.Start).Round(time.Millisecond), time.Duration(rm.Gone-rm.Start).Round(time.Millisecond))
	}
	closed(t, c, session)
}

// started returns the number of pods that the kubelet has started, and the total time
// (kubelet_pod_start_sli_duration_seconds).
func started(t *testing.T, c *cluster.Cluster) (count, seconds float64) {
	t.Helper()
	text, err := c.Client.REST().Get().AbsPath("/api/v1/nodes/" + c.Nodes[0].Name + "/proxy/metrics").DoRaw(t.Context())
	must.OK(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		value := func(suffix string) (v float64) {
			if strings.HasPrefix(line, "kubelet_pod_start_sli_duration_seconds_"+suffix) && len(fields) == 2 {
				if v, err = strconv.ParseFloat(fields[1], 64); err != nil {
					t.Fatal(err)
				}
			}
			return v
		}
		count, seconds = count+value("count"), seconds+value("sum")
	}
	return count, seconds
}

// agrees compares tare's mean time until Ready with the mean that the kubelet reports.
// The kubelet counts from the pod's creationTimestamp, which is truncated to the second,
// until its watch reports running containers. That is not before NodeStarted, and hardly
// after Ready.
func agrees(t *testing.T, c *cluster.Cluster, runs []record.Sample, count, sum float64) {
	t.Helper()
	after, seconds := started(t, c)
	// The kubelet counts a pod once its watch reports it as running. It sometimes omits one
	// of many pods.
	for patience := time.Now().Add(30 * time.Second); after-count < float64(len(runs)-1); {
		if after, seconds = started(t, c); time.Now().After(patience) {
			t.Errorf("the kubelet counted %v of %d pods", after-count, len(runs))
			return
		}
	}
	var ready, running float64
	for i := range runs {
		ready += float64(runs[i].Ready-runs[i].Start) / 1e9
		running += float64(runs[i].NodeStarted-runs[i].Start) / 1e9
	}
	n := float64(len(runs))
	ready, running = ready/n, running/n
	kubelets := (seconds - sum) / (after - count) // may include the trial pod
	t.Logf("%d pods: started by the engine after %.3f s, Ready after %.3f s, kubelet: %.3f s", len(runs), running, ready, kubelets)
	check.That(t, kubelets >= running && kubelets <= ready+1.25,
		"kubelet: %.3f s for %d pods, want at least %.3f s and at most %.3f s plus 1.25 s", kubelets, len(runs), running, ready)
}
