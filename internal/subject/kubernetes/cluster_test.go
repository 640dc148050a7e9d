package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/kubernetes"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/cluster"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

// smallestRole is the one that the page names, and the one that tests run under.
func smallestRole(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/kubernetes.md")
	must.OK(t, err)
	_, section, _ := strings.Cut(string(text), "\n### Of a target\n")
	_, role, _ := strings.Cut(section, "```yaml\n")
	role, _, ok := strings.Cut(role, "```")
	if !ok {
		t.Fatal("the page has no Role")
	}
	return role
}

func opened(t *testing.T, c *cluster.Cluster, name string, lanes int) (subject.Target, subject.Session) {
	t.Helper()
	target, err := found(t, c, name, subject.Engine{})
	must.OK(t, err)
	session, err := target.Open(t.Context(), subject.Env{RunID: "k8s" + strings.ToLower(strings.ReplaceAll(name, "/", "-")), Dir: t.TempDir(), StateDir: t.TempDir(),
		Lanes: lanes, Timeout: time.Minute, Limits: subject.DefaultLimits})
	must.OK(t, err)
	t.Cleanup(func() {
		if err := session.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
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
	samples, err := subject.Operate(t.Context(), s, op, all)
	must.OK(t, err)
	for i := range samples {
		if err := record.Validate(samples[i]); err != nil {
			t.Errorf("%s on lane %d: %v", op, i, err)
		}
	}
	return samples
}

func TestPodsOfAClusterGoThroughTheirLifecycle(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	for name, lanes := range map[string][]int{"kubernetes/runc": {1, 4}, "kubernetes/crun": {1}} {
		target, session := opened(t, c, name, slices.Max(lanes))
		if clock := target.Info().Clock; clock != "host" {
			t.Errorf("%s: its clock is %s", name, clock)
		}
		for _, n := range lanes {
			runs := operate(t, session, subject.Run, n)
			for _, s := range runs {
				if s.Failure != nil {
					t.Fatalf("%s, %d at once: %+v", name, n, s.Failure)
				}
				inOrder(t, name, &s)
			}
			for _, s := range operate(t, session, subject.Remove, n) {
				if s.Failure != nil || s.Gone == 0 || s.Exited == 0 || s.Exited > s.Gone {
					t.Errorf("%s: %+v, %+v", name, s, s.Failure)
				}
			}
		}
		if err := session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.Empty(t)
	}
}

// A user's own program is ready when its kubelet finds it so, after it has slept, with what
// it is given, and ends when it is told to.
func TestAUsersOwnProgramRunsInAPod(t *testing.T) {
	c, out := cluster.Start(t, cluster.Options{}), t.TempDir()
	const sleeps = 1500 * time.Millisecond
	own, err := cargo.Make(t.Context(), setting.Workload{Command: probe.ServeArgs(8080, fmt.Sprint("delay=", sleeps.Milliseconds())), Mounts: []setting.Mount{setting.Mount(out + ":/out:ro")}}, t.TempDir(), nil)
	must.OK(t, err)
	target, err := found(t, c, "kubernetes/runc", subject.Engine{})
	must.OK(t, err)
	session, err := target.Open(t.Context(), subject.Env{RunID: "k8sown", Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: 1, Timeout: time.Minute,
		Limits: subject.DefaultLimits, Workload: subject.Workload{Cargo: own}, Ready: "tcp:8080"})
	must.OK(t, err)
	s := operate(t, session, subject.Run, 1)[0]
	if s.Failure != nil || s.First == 0 || time.Duration(s.Ready-s.First) < sleeps {
		t.Errorf("ready %v after its first instruction: %+v, %+v", time.Duration(s.Ready-s.First), s, s.Failure)
	}
	x, err := session.(subject.Executor).Exec(t.Context(), 0, probe.FileSystemArgs("/out"))
	must.OK(t, err)
	if on, err := probe.ParseFileSystems(x.Output); err != nil || len(on) != 1 || on[0].Errno != 0 {
		t.Errorf("/out in it: %+v, %v", on, err)
	}
	if s := operate(t, session, subject.Remove, 1)[0]; s.Failure != nil {
		t.Errorf("%+v", s.Failure)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	c.Empty(t)
}

// inOrder says which stamps are missing, or not where they must be. Who tells first of
// what the node does, the watch or its engine, differs by nothing but the way there.
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

func TestAClusterSaysWhyItRefuses(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	t.Run("a Role that is too narrow, by verb and resource", func(t *testing.T) {
		narrow := strings.Replace(smallestRole(t), "verbs: [create, delete, get, list, watch]", "verbs: [get, list, watch]", 1)
		refusedAt(t, c, subject.Engine{Kubeconfig: c.As(t, narrow)}, `cannot create resource "pods"`)
	})
	t.Run("an image that is not there, with what to do", func(t *testing.T) {
		refusedAt(t, c, subject.Engine{Image: "localhost/nobody/has:1"}, "ErrImageNeverPull", "crictl pull localhost/nobody/has:1", "tare image --probe -o probe.tar", "ctr -n k8s.io images import probe.tar", "--image localhost/tare-probe:")
	})
	t.Run("a quota", func(t *testing.T) {
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
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v, want %q", err, w)
		}
	}
}

// TestAnAPIServerThatRestartsIsWaitedFor has it crash while pods are started: those of
// which it is known when they were ready have a time, the others a cause.
func TestAnAPIServerThatRestartsIsWaitedFor(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	const lanes = 3
	_, session := opened(t, c, "kubernetes/crun", lanes)
	b, err := session.Prepare(t.Context(), subject.Run, []int{0, 1, 2})
	must.OK(t, err)
	samples := make(chan []record.Sample, 1)
	go func() {
		_, all, err := b.Start(context.Background())
		if err != nil {
			t.Error(err)
		}
		samples <- all
	}()
	c.RestartAPIServer(t)
	for _, s := range <-samples {
		if f := s.Failure; f != nil && !strings.Contains(f.Detail, "the watch was interrupted for") {
			t.Errorf("%+v", f)
		}
		if s.Failure == nil && s.Ready == 0 {
			t.Errorf("%+v has no end", s)
		}
	}
	if err := session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	c.Empty(t)
}
