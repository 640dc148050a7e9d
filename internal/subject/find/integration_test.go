package find

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// TestEveryRuntimeOfTheMachineGoesThroughItsLifecycle drives the real runtimes,
// one lane and fifty, and looks afterwards whether anything is left. youki and
// runsc belong to tiers of their own.
func TestEveryRuntimeOfTheMachineGoesThroughItsLifecycle(t *testing.T) {
	need.Root(t)
	for _, f := range All(context.Background(), Settings{}, false) {
		if IsEngine(f.Name) {
			continue // the machine's own engines are not for tests; theirs start their own
		}
		t.Run(f.Name, func(t *testing.T) {
			need.Runtime(t, f.Name)
			if f.Target == nil {
				t.Fatal(f.Why)
			}
			for _, lanes := range []struct {
				name string
				n    int
			}{{"one lane", 1}, {"fifty lanes", 50}} {
				t.Run(lanes.name, func(t *testing.T) { lifecycle(t, f.Target, lanes.n) })
			}
		})
	}
}

func lifecycle(t *testing.T, tg subject.Target, lanes int) {
	ctx, info, all := t.Context(), tg.Info(), enginetest.UpTo(lanes)
	env, _ := enginetest.Workspace(t, info.Name, lanes)
	env.Limits = subject.DefaultLimits
	t.Cleanup(func() { leftOfTarget(t, env.RunID) })
	s := enginetest.Open(t, tg, env)
	for _, op := range subject.ContainerOps {
		if info.Operations[string(op)].Absent != "" {
			must.OK(t, s.Discard(ctx, all))
			continue
		}
		batch(t, s, info, op, lanes)
	}
	// Discarding running containers is how a round with run ends.
	must.OK(t, s.Discard(ctx, all))
}

func batch(t *testing.T, s subject.Session, info record.Target, op subject.Op, lanes int) {
	t.Helper()
	samples := enginetest.Must(t, s, op, lanes)
	def := info.Operations[string(op)]
	for i := range samples {
		sm := &samples[i]
		if d, ok := sm.Latency(def.Done); !ok || d <= 0 {
			t.Errorf("%s on lane %d: %v to %q", op, sm.Lane, d, def.Done)
		}
		if op != subject.Start && op != subject.Run {
			continue
		}
		// The workload's report is the proof that it ran. Its own stamp exists
		// where its clock is the host's, and then lies before its arrival.
		if sm.Seen == 0 || (info.Clock == "host") != (sm.First != 0) || sm.First > sm.Seen {
			t.Errorf("%s on lane %d: first %d, seen %d, on a %s clock", op, sm.Lane, sm.First, sm.Seen, info.Clock)
		}
	}
	if alone := lanes == 1 && info.Kind == "oci" && op != subject.Remove; alone != (samples[0].Running != 0) {
		t.Errorf("%s: state was stamped %v with %d lanes", op, samples[0].Running != 0, lanes)
	}
}

// leftOfTarget looks for the target's own cgroups; the run's is still there.
func leftOfTarget(t *testing.T, id string) {
	t.Helper()
	hs, err := cgroup.Hierarchies()
	must.OK(t, err)
	for _, h := range hs {
		groups, _ := filepath.Glob(filepath.Join(h.Mount, cgroup.Prefix+id, "*"))
		for _, g := range groups {
			if info, err := os.Stat(g); err == nil && info.IsDir() {
				t.Errorf("left behind: %s", g)
			}
		}
	}
}
