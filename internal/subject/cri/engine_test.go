package cri

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

// engineUnderTest is a running engine.
type engineUnderTest struct {
	name    string // as in cri+NAME
	e       subject.Engine
	version string
	pid     int
	pause   string
	left    func(t *testing.T) []string // what the engine itself lists: pods, containers, images
}

func onContainerd(t *testing.T, v engines.ContainerdVersion, opts ...engines.Option) engineUnderTest {
	d := engines.Containerd(t, v, opts...)
	return engineUnderTest{
		name: "containerd", e: subject.Engine{Address: d.Address}, version: d.Version, pid: d.Pid, pause: d.PauseImage,
		left: func(t *testing.T) []string {
			out := append(d.Sandboxes(t), d.Containers(t, "k8s.io")...)
			out = append(out, d.Images(t, "k8s.io")...)
			return append(out, d.Snapshots(t, "k8s.io")...)
		},
	}
}

func onCRIO(t *testing.T) engineUnderTest {
	d := engines.CRIO(t)
	return engineUnderTest{
		name: "cri-o", e: subject.Engine{Address: "unix://" + d.Socket, Command: d.Skopeo}, version: d.Version, pid: d.Pid, pause: d.PauseImage,
		left: func(t *testing.T) []string {
			return append(append(d.Sandboxes(t), d.Containers(t)...), d.Images(t)...)
		},
	}
}

// onAll runs a test with every engine.
func onAll(t *testing.T, test func(t *testing.T, u engineUnderTest)) {
	t.Run("containerd 1.6", func(t *testing.T) { test(t, onContainerd(t, engines.V1)) })
	t.Run("containerd 2.4", func(t *testing.T) { test(t, onContainerd(t, engines.V2)) })
	t.Run("CRI-O 1.34", func(t *testing.T) { test(t, onCRIO(t)) })
}

var runs atomic.Int64

// newID is a run's id, which no other test has.
func newID() string { return fmt.Sprintf("t%s%d", time.Now().Format("150405"), runs.Add(1)) }

// opened opens a handler of an engine for a run of its own.
func opened(t *testing.T, u engineUnderTest, handler string, lanes int) (*session, string) {
	t.Helper()
	id := newID()
	return openedFor(t, u, handler, lanes, id), id
}

func openedFor(t *testing.T, u engineUnderTest, handler string, lanes int, runID string) *session {
	t.Helper()
	got, err := New(t.Context(), "cri+"+u.name+"/"+handler, u.name, handler, u.e)
	if err != nil {
		t.Fatal(err)
	}
	env := subject.Env{RunID: runID, Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: lanes, Timeout: 60 * time.Second, Limits: subject.DefaultLimits}
	s, err := got.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		// The run's own group is for whoever opened the session to remove.
		if hs, err := cgroup.Hierarchies(); err == nil {
			_ = cgroup.Remove(hs, cgroup.Prefix+runID)
		}
	})
	return s.(*session)
}

// upTo are the numbers 0 … n-1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// do performs an operation on n lanes.
func do(t *testing.T, s subject.Session, op subject.Op, n int) []record.Sample {
	t.Helper()
	b, err := s.Prepare(t.Context(), op, upTo(n))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	released, samples, err := b.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := time.Since(began)
	var last int64
	for _, sample := range samples {
		last = max(last, sample.Returned-released)
	}
	t.Logf("%s × %d: %v, confirmed %v later", op, n, time.Duration(last).Round(time.Microsecond), (all - time.Duration(last)).Round(time.Microsecond))
	return samples
}

// succeed is do, and an end of the test if that failed.
func succeed(t *testing.T, s subject.Session, op subject.Op, n int) []record.Sample {
	t.Helper()
	samples := do(t, s, op, n)
	for _, sample := range samples {
		if sample.Failure != nil {
			t.Fatalf("%s on lane %d failed: %+v", op, sample.Lane, *sample.Failure)
		}
		if sample.Start == 0 || sample.Returned < sample.Start {
			t.Fatalf("%s on lane %d has no latency: %+v", op, sample.Lane, sample)
		}
	}
	return samples
}

// shut closes a session and checks by the engine's own lists that nothing is
// left.
func shut(t *testing.T, u engineUnderTest, s subject.Session) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := u.left(t); len(left) > 0 {
		t.Fatalf("%s still has %q", u.name, left)
	}
}
