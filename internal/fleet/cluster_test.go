package fleet

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tare-bench/tare/internal/kube"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/cluster"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

// rig is a cluster with tare's image on its nodes. kubeconfig has the documented
// permissions.
type rig struct {
	*cluster.Cluster
	tare, image, kubeconfig string
}

const plan = "version: 1\nmeasure:\n  - lifecycle: {targets: [TARGETS], ops: [run], rounds: 2, warmup: 0}\n"

func newRig(t *testing.T, o cluster.Options) *rig {
	t.Helper()
	r := &rig{Cluster: cluster.Start(t, o), tare: filepath.Join(t.TempDir(), "tare")}
	build := exec.Command("go", "build", "-trimpath", "-tags", "no_tls_fallback,grpcnotrace", "-ldflags", "-s -w", "-o", r.tare, "../../cmd/tare")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i, err := image.Probe(probe.File{Path: Program, Source: r.tare, Mode: 0o755})
	if err == nil {
		err = i.Save(r.tare + ".tar")
	}
	must.OK(t, err)
	r.Import(t, r.tare+".tar", i.Ref)
	r.image, r.kubeconfig = i.Ref, r.As(t, documented(t))
	return r
}

// documented returns the minimal Role in docs/kubernetes.md.
func documented(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../docs/kubernetes.md"))(t)
	_, rest, _ := strings.Cut(string(text), "### Of tare fleet")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	roles, _, ok := strings.Cut(rest, "```")
	must.That(t, ok, "docs/kubernetes.md has no Role for tare fleet")
	return roles
}

// fleet returns a fleet in this process with short timeouts.
func (r *rig) fleet(t *testing.T, kubeconfig, targets string) *Fleet {
	t.Helper()
	client := must.Get(kube.Connect(kube.Options{Kubeconfig: kubeconfig, Namespace: "default"}))(t)
	f := &Fleet{
		Spec: Spec{RunID: IDOf(t.Name()), Namespace: "default", Image: r.image, PlanName: "p.yaml", Plan: []byte(strings.Replace(plan, "TARGETS", targets, 1)),
			Deadline: time.Hour},
		Client: client, Parallel: 10, Dir: t.TempDir(), Say: func(text string) { t.Log(text) }, Progress: func(string) {},
		times: times{look: 200 * time.Millisecond, patience: 3 * time.Second, away: time.Second, silent: time.Minute, removal: time.Minute},
	}
	f.Needs.Need("lifecycle", strings.Split(targets, ", "))
	return f
}

// does runs a fleet on nodes and checks the error of each. "" stands for a record without
// an error.
func (r *rig) does(t *testing.T, f *Fleet, want map[string]string) {
	t.Helper()
	var nodes []string
	for name := range want {
		nodes = append(nodes, name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	results := must.Get(f.Run(ctx, nodes))(t)
	for _, r := range results {
		says := want[r.Node]
		check.That(t, (r.Err == nil) == (says == "") && (r.Err == nil || strings.Contains(r.Err.Error(), says)), "%s: %v", r.Node, r.Err)
		if says == "" && r.Path != "" {
			isRecord(t, r.Path, r.Node)
		}
	}
	r.Empty(t)
}

// isRecord checks that a record is complete and has the label of its node.
func isRecord(t *testing.T, path, node string) {
	t.Helper()
	rec, err := record.Load(path)
	if err != nil {
		t.Error(err)
		return
	}
	labels := rec.Labelled()
	check.That(t, rec.End != nil && len(labels) == 1 && labels[0].Key == "node" && labels[0].Value == node,
		"%s: %+v, %+v", path, rec.End, labels)
}

// tool returns a tare command. When ctx is done it gets SIGTERM and a minute to clean up.
func (r *rig) tool(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, r.tare, args...)
	c.Cancel = func() error { return c.Process.Signal(unix.SIGTERM) }
	c.WaitDelay = time.Minute
	return c
}

// command returns a tare fleet command with a plan of the given number of rounds.
func (r *rig) command(t *testing.T, rounds string, more ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.yaml")
	text := strings.Replace(strings.Replace(plan, "TARGETS", "host, floor", 1), "rounds: 2", "rounds: "+rounds, 1)
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return r.tool(t.Context(), append([]string{"fleet", "run", path, "--nodes", "kubernetes.io/os=linux", "--parallel", "2", "--image", r.image,
		"--requests", "cpu=100m", "--kubeconfig", r.kubeconfig, "--namespace", "default"}, more...)...)
}

// underWay starts a long run and waits until its pods are running.
func (r *rig) underWay(t *testing.T) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := r.command(t, "100000", "-o", filepath.Join(t.TempDir(), "out"))
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	must.OK(t, c.Start())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		pods := must.Get(r.Client.Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: engine.RunLabel}))(t)
		running := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running == 2 {
			return c, &said
		}
		if time.Now().After(deadline) {
			_ = c.Process.Kill()
			_ = c.Wait()
			t.Fatalf("the pods were not running within a minute: %s", said.String())
		}
	}
}

// cuts is a writer whose connection breaks after most bytes.
type cuts struct {
	to   io.Writer
	most int
	cut  context.CancelFunc
}

func (c *cuts) Write(p []byte) (int, error) {
	n, err := c.to.Write(p[:min(len(p), c.most)])
	if c.most -= n; c.most == 0 && err == nil {
		c.cut()
		err = io.ErrClosedPipe
	}
	return n, err
}

func TestPlanRunsOnEveryNodeOfACluster(t *testing.T) {
	r := newRig(t, cluster.Options{Nodes: 2})
	both := map[string]string{"node-0": "", "node-1": ""}
	t.Run("the minimal Role is enough for a record of each node", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		out, err := r.command(t, "2", "-o", dir).CombinedOutput()
		must.That(t, err == nil && strings.Contains(string(out), "2 of 2 nodes completed the plan"), "%v: %s", err, out)
		for node := range both {
			isRecord(t, filepath.Join(dir, node+".jsonl"), node)
		}
		out, err = exec.Command(r.tare, "compare", dir, "--col", "node").CombinedOutput()
		check.That(t, err == nil && strings.Contains(string(out), "node-1"), "%v: %s", err, out)
		r.Empty(t)
	})
	t.Run("restricted Pod Security allows host and refuses floor", func(t *testing.T) {
		r.enforce(t, `"restricted"`)
		r.does(t, r.fleet(t, r.kubeconfig, "host"), map[string]string{"node-0": ""})
		f := r.fleet(t, r.kubeconfig, "floor")
		f.RunID = "floorish"
		r.does(t, f, map[string]string{"node-0": `violates PodSecurity "restricted:latest": privileged`})
		r.enforce(t, "null")
	})
	t.Run("an exceeded quota is reported", func(t *testing.T) {
		r.NoPods(t)
		r.does(t, r.fleet(t, r.kubeconfig, "host"), map[string]string{"node-0": "exceeded quota: none"})
	})
	t.Run("a cordoned node and a missing image are reported", func(t *testing.T) {
		r.Kubectl(t, "cordon", "node-1")
		defer r.Kubectl(t, "uncordon", "node-1")
		f := r.fleet(t, r.kubeconfig, "host")
		f.Image = "localhost/missing:this"
		r.does(t, f, map[string]string{"node-0": "its container is waiting: ImagePullBackOff: localhost/missing:this", "node-1": "the node is cordoned; its pod is not scheduled: Unschedulable"})
	})
	t.Run("a missing permission fails before any node starts", func(t *testing.T) {
		narrow := strings.Replace(documented(t), "[pods/exec]", "[pods/attach]", 1)
		_, err := r.fleet(t, r.As(t, narrow), "host").Run(t.Context(), []string{"node-0"})
		check.Error(t, err, ": get pods/exec, create pods/exec")
		r.Empty(t)
	})
	t.Run("an interrupt removes all objects", func(t *testing.T) {
		c, said := r.underWay(t)
		_ = c.Process.Signal(unix.SIGINT)
		if _ = c.Wait(); c.ProcessState.ExitCode() != 130 || !strings.Contains(said.String(), "0 of 2 nodes completed the plan") {
			t.Errorf("exit %d: %s", c.ProcessState.ExitCode(), said.String())
		}
		r.Empty(t)
	})
	t.Run("clean removes the objects of a killed run", func(t *testing.T) {
		c, said := r.underWay(t)
		clean := func(more ...string) string {
			out, err := exec.Command(r.tare, append([]string{"clean", "--kube", "--kubeconfig", r.kubeconfig, "--namespace", "default"}, more...)...).CombinedOutput()
			check.Error(t, err, "")
			return string(out)
		}
		_, id, _ := strings.Cut(said.String(), "tare: run ")
		id, _, _ = strings.Cut(id, " ")
		check.Equal(t, "clean during the run", clean(), "run "+id+" is active and left alone\nnothing was left behind\n")
		_ = c.Process.Kill()
		_ = c.Wait()
		leases := r.Client.Leases("default") // as if the run had been killed long ago
		if _, err := leases.Patch(t.Context(), "tare-"+id, types.MergePatchType, []byte(`{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		want := "job/tare-" + id + "-node-0\n  job/tare-" + id + "-node-1\n  configmap/tare-" + id + "\n  lease/tare-" + id + "\n"
		check.Equal(t, "clean", clean("--dry-run"), "run "+id+": would remove\n  "+want)
		check.Equal(t, "clean", clean(), "run "+id+": removed\n  "+want)
		r.Empty(t)
	})
	t.Run("the cluster is also a target of other commands", func(t *testing.T) {
		for verb, args := range map[string]string{"lifecycle": "--ops run,rm", "overhead": "--sandboxes 1 --hold 1s --settle 100ms"} {
			path := filepath.Join(t.TempDir(), verb+".jsonl")
			c := exec.Command(r.tare, append(strings.Fields(verb+" kubernetes/runc --rounds 1 --namespace default -o "+path+" "+args),
				"--kubeconfig", r.Kubeconfig, "--node", "node-0", "--node-cri", r.Nodes[0].CRI)...)
			c.Env = append(os.Environ(), "TARE_STATE_DIR="+t.TempDir(), "TARE_DATA_DIR="+t.TempDir())
			out, err := c.CombinedOutput()
			rec, none := record.Load(path)
			check.That(t, err == nil && none == nil && rec.End != nil && rec.End.Status == "done", "%s: %v, %v: %s", verb, err, none, out)
		}
		r.Empty(t)
	})
	t.Run("broken connections and an API server restart are survived", func(t *testing.T) {
		f := r.fleet(t, r.kubeconfig, "host")
		f.patience = time.Minute // the restarted API server also reloads permissions
		var once sync.Once
		f.Progress = func(text string) {
			if strings.Contains(text, running) {
				once.Do(func() { r.RestartAPIServer(t) })
			}
		}
		f.exec = func(ctx context.Context, pod, container string, command []string, stdout, stderr io.Writer) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return f.Client.Exec(ctx, pod, container, command, &cuts{stdout, 4000, cancel}, stderr)
		}
		r.does(t, f, both)
	})
}

// enforce sets the Pod Security level of the namespace.
func (r *rig) enforce(t *testing.T, level string) {
	t.Helper()
	_, err := kube.Of[corev1.Namespace, corev1.NamespaceList](r.Client.REST(), "namespaces", "").Patch(t.Context(), "default", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":`+level+`}}}`), metav1.PatchOptions{})
	must.OK(t, err)
}
