//go:build prove

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/cluster"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// TestEveryNodeOfManyIsReported runs a plan with tare fleet. Nodes with a kubelet return
// records. On kwok's nodes pods end immediately and run nothing. The command must respect
// --parallel, report every node, and leave no objects.
func TestEveryNodeOfManyIsReported(t *testing.T) {
	for _, size := range []struct{ real, kwok, parallel int }{{2, 50, 10}, {1, 1000, 100}} {
		t.Run(fmt.Sprintf("%d with %d of kwok", size.real, size.kwok), func(t *testing.T) {
			r := newRig(t, cluster.Options{Nodes: size.real, Kwok: size.kwok})
			dir := filepath.Join(t.TempDir(), "out")
			c := r.command(t, "2", "-o", dir, "--parallel", strconv.Itoa(size.parallel), "--toleration", "kwok.x-k8s.io/node")
			var out, said bytes.Buffer
			c.Stdout, c.Stderr = &out, &said
			asked, began := r.dispatched(t), time.Now()
			must.OK(t, c.Start())
			ctx, stop := context.WithCancel(t.Context())
			most := r.most(ctx, t, c.Process.Pid)
			err := c.Wait()
			took := time.Since(began)
			stop()
			jobs, memory := most()
			must.That(t, c.ProcessState.ExitCode() == 2, "%v: %s%s", err, out.String(), said.String())
			reasons := map[string]string{}
			for line := range strings.Lines(out.String()) {
				node, why, _ := strings.Cut(line, ": ")
				reasons[node] = strings.TrimSpace(why)
			}
			for i := range size.real {
				node := fmt.Sprintf("node-%d", i)
				if isRecord(t, filepath.Join(dir, node+".jsonl"), node); reasons[node] != "" {
					t.Errorf("%s: %s", node, reasons[node])
				}
			}
			late := map[string]int{}
			for i := range size.kwok {
				switch says := reasons[fmt.Sprintf("kwok-%d", i)]; {
				case strings.Contains(says, "its pod ended (Succeeded), so its record is lost"):
				case size.kwok > 100 && tooSlow.MatchString(says):
					late[tooSlow.FindString(says)]++ // the control plane and kwok of 1000 nodes share two CPUs
				default:
					t.Errorf("kwok-%d: %q", i, says)
				}
			}
			asked = r.dispatched(t) - asked
			t.Logf("%d nodes, %d in parallel: %v, %.0f requests to the API server, tare: at most %s of memory, %v of CPU time; late: %v; at most %d concurrent Jobs",
				size.real+size.kwok, size.parallel, took.Round(time.Second), asked, memory, c.ProcessState.UserTime()+c.ProcessState.SystemTime(), late, jobs)
			// The removal of a Job overlaps with the Job of the next node.
			check.That(t, jobs <= 2*size.parallel, "%d concurrent Jobs, want at most twice %d", jobs, size.parallel)
			r.Empty(t)
		})
	}
}

// tooSlow matches the message about a node without progress.
var tooSlow = regexp.MustCompile("the node is not ready|its pod is not scheduled|its Job has no pod")

// dispatched returns the number of answered requests of service accounts. Only tare uses
// service accounts here. Requests for exec are not included.
func (r *rig) dispatched(t *testing.T) (n float64) {
	t.Helper()
	text, err := r.Client.REST().Get().AbsPath("/metrics").DoRaw(t.Context())
	must.OK(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "apiserver_flowcontrol_dispatched_requests_total{") && strings.Contains(line, `flow_schema="service-accounts"`) {
			_, value, _ := strings.Cut(line, "} ")
			if n, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// most samples the number of Jobs and the memory of a process until ctx is done. The
// returned function returns the two maxima.
func (r *rig) most(ctx context.Context, t *testing.T, pid int) func() (int, string) {
	most, memory := 0, ""
	var over sync.WaitGroup
	over.Go(func() {
		for machine.Sleep(ctx, 500*time.Millisecond) == nil {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if _, high, ok := strings.Cut(string(status), "VmHWM:"); ok {
				memory, _, _ = strings.Cut(strings.TrimSpace(high), "\n")
			}
			jobs, err := r.Client.Jobs("default").List(ctx, metav1.ListOptions{LabelSelector: engine.RunLabel})
			switch {
			case err == nil:
				most = max(most, len(jobs.Items))
			case ctx.Err() == nil:
				t.Error(err)
			}
		}
	})
	return func() (int, string) {
		over.Wait()
		return most, memory
	}
}

// TestDeadKubeletFailsOnlyItsTarget kills the kubelet between two
// rounds and restarts it after the run has ended.
func TestDeadKubeletFailsOnlyItsTarget(t *testing.T) {
	r := newRig(t, cluster.Options{Nodes: 2})
	path := filepath.Join(t.TempDir(), "run.jsonl")
	const rounds = 6
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c := r.tool(ctx, "lifecycle", "host", "kubernetes/runc", "--ops", "run,rm", "--rounds", strconv.Itoa(rounds), "--warmup", "0", "--timeout", "40s",
		"--namespace", "default", "-o", path, "--kubeconfig", r.Kubeconfig, "--node", "node-1", "--node-cri", r.Nodes[1].CRI)
	c.Env = append(os.Environ(), "TARE_STATE_DIR="+t.TempDir(), "TARE_DATA_DIR="+t.TempDir())
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	must.OK(t, c.Start())
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	t.Cleanup(func() { <-ended }) // before the cluster stops
	for done := false; !done; time.Sleep(50 * time.Millisecond) {
		all, _ := samples(path)
		done = len(all["kubernetes/runc"]) > 0
		select {
		case <-ended:
			t.Fatalf("the command ended before the kubelet was killed: %s", said.String())
		default:
		}
	}
	r.KillKubelet(t, 1)
	<-ended
	all, rec := samples(path)
	must.That(t, c.ProcessState.ExitCode() == 2 && rec != nil && rec.End != nil, "exit code %d: %s", c.ProcessState.ExitCode(), said.String())
	failed := 0
	for _, s := range all["host"] {
		check.That(t, s.Failure == nil, "host: %+v", s.Failure)
	}
	for _, s := range all["kubernetes/runc"] {
		if s.Failure != nil && strings.Contains(s.Failure.Detail, "the node node-1 is not ready: NodeStatusUnknown Kubelet stopped posting node status.") {
			failed++
		}
	}
	check.That(t, len(all["host"]) == rounds && failed != 0 && strings.Contains(said.String(), "is not ready"),
		"%d of %d samples of host, %d failures with the reason of the node: %s", len(all["host"]), rounds, failed, said.String())
	r.Empty(t) // while the node is still down
	r.StartKubelet(t, 1)
}

// samples returns the record and, by target, the samples of the operation "run". The
// record may be incomplete.
func samples(path string) (all map[string][]record.Sample, rec *record.Record) {
	all = map[string][]record.Sample{}
	rec, err := record.Load(path)
	if err != nil {
		return all, nil
	}
	for _, b := range rec.Batches {
		if b.Op == "run" {
			all[b.Target] = append(all[b.Target], b.Samples...)
		}
	}
	return all, rec
}

func TestDeadNodeIsReportedAndOthersFinish(t *testing.T) {
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
	check.Error(t, err, "still exists on node node-1; tare clean --kube removes it later")
	check.That(t, results[0].Err == nil, "%+v", results[0])
	isRecord(t, results[0].Path, "node-0")
	check.Contains(t, "node-1", fmt.Sprint(results[1].Err), "the node is not ready: NodeStatusUnknown: Kubelet stopped posting node status.")
	r.StartKubelet(t, 1)
	r.Kubectl(t, "delete", "lease", "tare-"+f.RunID) // tare clean --kube deletes it last
	r.Empty(t)
}
