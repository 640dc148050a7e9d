//go:build prove

package kubernetes_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/cluster"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func TestTwentyPodsOfEachRuntimeClassStartAtOnce(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	for _, name := range []string{"kubernetes/runc", "kubernetes/crun", "kubernetes/runsc"} {
		_, session := opened(t, c, name, 20)
		count, sum := started(t, c)
		runs := operate(t, session, subject.Run, 20)
		for _, s := range runs {
			if s.Failure != nil {
				t.Fatalf("%s: %+v", name, s.Failure)
			}
		}
		agrees(t, c, runs, count, sum)
		if err := session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.Empty(t)
	}
}

func TestAKubeletThatDiesIsTheCause(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	_, session := opened(t, c, "kubernetes/runc", 1)
	c.KillKubelet(t, 0)
	f := operate(t, session, subject.Run, 1)[0].Failure
	if f == nil || f.Kind != record.FailTimeout || !strings.Contains(f.Detail, "the node "+c.Nodes[0].Name+" is not ready") {
		t.Errorf("%+v", f)
	}
	if err := session.Discard(t.Context(), []int{0}); err != nil {
		t.Error(err)
	}
	c.Empty(t)
	c.StartKubelet(t, 0)
}

// started is how many pods the kubelet has started, and how long that took it in all
// (kubelet_pod_start_sli_duration_seconds).
func started(t *testing.T, c *cluster.Cluster) (count, seconds float64) {
	t.Helper()
	text, err := c.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + c.Nodes[0].Name + "/proxy/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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

// agrees holds the mean until Ready against the kubelet's own. That begins with the
// pod's creationTimestamp, which is cut to the second, and so up to a second before; it
// ends when the kubelet's watch tells that the containers run, not before tare's First
// and hardly after tare's Ready.
func agrees(t *testing.T, c *cluster.Cluster, runs []record.Sample, count, sum float64) {
	t.Helper()
	after, seconds := started(t, c)
	// It counts a pod once its own watch has told it that it runs, and of many at once it was
	// seen to leave one out.
	for patience := time.Now().Add(30 * time.Second); after-count < float64(len(runs)-1); {
		if after, seconds = started(t, c); time.Now().After(patience) {
			t.Errorf("the kubelet counts %v of %d pods", after-count, len(runs))
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
	kubelets := (seconds - sum) / (after - count) // the pod that was tried may be among them
	t.Logf("%d pods: the engine had started them after %.3f s, Ready after %.3f s; the kubelet says %.3f s", len(runs), running, ready, kubelets)
	if kubelets < running || kubelets > ready+1.25 {
		t.Errorf("the kubelet says %.3f s of %d pods, which lies not between %.3f s and %.3f s and the second to which it cuts", kubelets, len(runs), running, ready)
	}
}
