package containerd

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

// versions are the containerds that everything is tested with.
var versions = map[string]engines.ContainerdVersion{"containerd 1.6": engines.V1, "containerd 2.4": engines.V2}

// onBoth runs a test with each of them.
func onBoth(t *testing.T, test func(t *testing.T, d *engines.ContainerdDaemon)) {
	for name, v := range versions {
		t.Run(name, func(t *testing.T) { test(t, engines.Containerd(t, v)) })
	}
}

func at(d *engines.ContainerdDaemon) subject.Engine { return subject.Engine{Address: d.Address} }

var runs atomic.Int64

// newID is a run's id, which no other test has.
func newID() string { return fmt.Sprintf("t%s%d", time.Now().Format("150405"), runs.Add(1)) }

func environment(t *testing.T, runID string, lanes int) subject.Env {
	return subject.Env{RunID: runID, Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: lanes, Timeout: 30 * time.Second, Limits: subject.DefaultLimits}
}

// open opens a runtime of an engine for a run of its own.
func open(t *testing.T, d *engines.ContainerdDaemon, runtime string, lanes int) (*session, string) {
	t.Helper()
	id := newID()
	return openFor(t, d, runtime, lanes, id), id
}

func openFor(t *testing.T, d *engines.ContainerdDaemon, runtime string, lanes int, runID string) *session {
	t.Helper()
	got, err := New(t.Context(), "containerd/"+runtime, runtime, "", at(d))
	if err != nil {
		t.Fatal(err)
	}
	s, err := got.Open(t.Context(), environment(t, runID, lanes))
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

// shut closes a session and checks by containerd's own lists that nothing is
// left.
func shut(t *testing.T, d *engines.ContainerdDaemon, s subject.Session) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// containerd lists no namespace that has anything in it and is not there.
	if names := d.Namespaces(t); slices.Contains(names, ownNamespace) {
		t.Fatalf("the namespace is left, with containers %q, images %q, snapshots %q",
			d.Containers(t, ownNamespace), d.Images(t, ownNamespace), d.Snapshots(t, ownNamespace))
	}
}
