//go:build prove

package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/cluster"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// TestEachOfManyNodesIsToldOf does a plan on nodes of kwok, whose pods end at once and run
// nothing: what is shown is that as many as said are at work, none is forgotten, and
// nothing is left.
func TestEachOfManyNodesIsToldOf(t *testing.T) {
	for _, size := range []struct{ nodes, parallel int }{{50, 10}, {1000, 100}} {
		t.Run(fmt.Sprint(size.nodes), func(t *testing.T) {
			r := &rig{Cluster: cluster.Start(t, cluster.Options{Kwok: size.nodes}), image: "localhost/nobody-has:this"}
			f := r.fleet(t, r.Kubeconfig, "host")
			f.Parallel, f.Tolerations = size.parallel, []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}}
			f.Say = func(string) {}
			f.patience, f.look, f.removal = time.Minute, time.Second, 2*time.Minute
			var nodes []string
			for i := range size.nodes {
				nodes = append(nodes, fmt.Sprintf("kwok-%d", i))
			}
			ctx, stop := context.WithCancel(t.Context())
			most := r.mostJobs(ctx, t)
			began := time.Now()
			results, err := f.Run(t.Context(), nodes)
			took := time.Since(began)
			stop()
			if err != nil || len(results) != size.nodes {
				t.Fatalf("%d results, %v", len(results), err)
			}
			lost := 0
			for _, r := range results {
				switch says := fmt.Sprint(r.Err); {
				case strings.Contains(says, "its pod ended (Succeeded), and what would have kept the record with it: no record"):
				case size.nodes > 100 && (strings.Contains(says, "the node is not ready") || strings.Contains(says, "its pod has no place")):
					lost++ // on two CPUs kwok cannot keep as many alive
				default:
					t.Errorf("%s: %s", r.Node, says)
				}
			}
			at := most()
			t.Logf("%d nodes, %d at once: %v; kwok lost %d; at most %d had a Job at once", size.nodes, size.parallel, took.Round(time.Second), lost, at)
			// A Job that is removed goes in its own time, and the next node's is made meanwhile.
			if at > 2*size.parallel {
				t.Errorf("%d Jobs at once, not %d", at, size.parallel)
			}
			r.Empty(t)
		})
	}
}

// mostJobs counts the Jobs of runs until ctx is done, and tells the most there were.
func (r *rig) mostJobs(ctx context.Context, t *testing.T) func() int {
	most := 0
	var over sync.WaitGroup
	over.Go(func() {
		for machine.Sleep(ctx, 500*time.Millisecond) == nil {
			jobs, err := r.Client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{LabelSelector: engine.RunLabel})
			switch {
			case err == nil:
				most = max(most, len(jobs.Items))
			case ctx.Err() == nil:
				t.Error(err)
			}
		}
	})
	return func() int {
		over.Wait()
		return most
	}
}

func TestANodeThatDiesIsToldOfAndTheOthersFinish(t *testing.T) {
	r := newRig(t, cluster.Options{Nodes: 2})
	f := r.fleet(t, r.kubeconfig, "host")
	f.Plan = []byte(strings.Replace(string(f.Plan), "rounds: 2", "rounds: 300", 1))
	f.removal = 5 * time.Second
	var once sync.Once
	f.Progress = func(text string) {
		if strings.Contains(text, "node-1: "+running) {
			once.Do(func() { r.KillKubelet(t, 1) })
		}
	}
	results, err := f.Run(t.Context(), []string{"node-0", "node-1"})
	if err == nil || !strings.Contains(err.Error(), "is still there, on node node-1; tare clean --kube removes it later") {
		t.Errorf("%v", err)
	}
	if results[0].Err != nil {
		t.Errorf("%+v", results[0])
	}
	isRecord(t, results[0].Path, "node-0")
	if says := fmt.Sprint(results[1].Err); !strings.Contains(says, "the node is not ready: NodeStatusUnknown: Kubelet stopped posting node status.") {
		t.Errorf("node-1: %s", says)
	}
	r.StartKubelet(t, 1)
	r.Kubectl(t, "delete", "lease", "tare-"+f.RunID) // as tare clean --kube does behind all else
	r.Empty(t)
}
