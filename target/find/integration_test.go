package find

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
	"github.com/tare-bench/tare/workspace"
)

func lifecycle(t *testing.T, tg target.Target, lanes int) {
	roots := workspace.Roots{Data: t.TempDir(), State: t.TempDir()}
	run, err := workspace.New(roots)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	info := tg.Info()
	data, state, err := run.Dirs(info.Name)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	s, err := tg.Open(ctx, target.Env{RunID: run.ID, Dir: data, StateDir: state, Lanes: lanes, Timeout: 30 * time.Second, Limits: target.DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	all := make([]int, lanes)
	for i := range all {
		all[i] = i
	}
	for _, op := range []target.Op{target.Create, target.Start, target.Stop, target.Remove, target.Run, target.Stop, target.Remove} {
		if info.Operations[string(op)].Absent != "" {
			if op == target.Remove {
				s.Discard(ctx, all)
			}
			continue
		}
		b, err := s.Arm(ctx, op, all)
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		released, samples, err := b.Release(ctx)
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		var last int64
		for _, sm := range samples {
			if sm.Failure != nil {
				t.Fatalf("%s lane %d: %+v", op, sm.Lane, *sm.Failure)
			}
			done, ok := sm.Time(info.Operations[string(op)].Done)
			if !ok {
				t.Fatalf("%s: no stamp", op)
			}
			last = max(last, done)
		}
		sm := samples[0]
		rel := func(st record.Stamp) time.Duration { d, _ := sm.Latency(st); return d.Round(time.Microsecond) }
		t.Logf("%-6s makespan %v returned %v running %v first %v seen %v exited %v", op, time.Duration(last-released).Round(time.Microsecond), rel("returned"), rel("running"), rel("first"), rel("seen"), rel("exited"))
	}
}

func TestEveryTargetOfTheMachineGoesThroughItsLifecycle(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("runtimes need root")
	}
	for _, f := range All(context.Background()) {
		t.Run(f.Name, func(t *testing.T) {
			if f.Target == nil {
				t.Skip(f.Why)
			}
			t.Run("1", func(t *testing.T) { lifecycle(t, f.Target, 1) })
			t.Run("50", func(t *testing.T) { lifecycle(t, f.Target, 50) })
		})
	}
}
