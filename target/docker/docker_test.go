package docker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/lane"
	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
)

func TestMain(m *testing.M) { engines.Main(m) }

// open returns a target and a session on it, which is closed with the test.
func open(t *testing.T, e target.Engine, name, via string, lanes int) (*Target, *session) {
	t.Helper()
	tg := tool(t, e, name, via)
	s, err := tg.Open(t.Context(), target.Env{RunID: runID(t), Lanes: lanes, Timeout: 30 * time.Second, Limits: target.DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return tg, s.(*session)
}

func tool(t *testing.T, e target.Engine, runtime, via string) *Target {
	t.Helper()
	tg, err := New(t.Context(), "docker/"+runtime, runtime, via, e)
	if err != nil {
		t.Fatal(err)
	}
	return tg.(*Target)
}

func runID(t *testing.T) string {
	name := strings.ToLower(t.Name())
	return "t" + strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, name)[max(0, len(name)-20):]
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// do performs one operation on lanes, all of which have to succeed.
func do(t *testing.T, s *session, op target.Op, lanes int) []record.Sample {
	t.Helper()
	b, err := s.Arm(t.Context(), op, upTo(lanes))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	released, samples, err := b.Release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var last, skew time.Duration
	for _, x := range samples {
		if x.Failure != nil {
			t.Fatalf("%s on lane %d: %+v", op, x.Lane, *x.Failure)
		}
		if x.Start < released || x.Returned <= x.Start {
			t.Errorf("%s: released %d, started %d, returned %d", op, released, x.Start, x.Returned)
		}
		last = max(last, time.Duration(x.Returned-released))
		skew = max(skew, time.Duration(x.Start-released))
	}
	t.Logf("%-6s %3d lanes: makespan %v, skew %v, proved in %v", op, lanes, last, skew, time.Since(began)-last)
	return samples
}

func TestALifeIsWeighedOnARealDaemon(t *testing.T) {
	d := engines.Docker(t)
	e := target.Engine{Address: d.Host}
	for _, via := range []string{ViaAPI, ViaCLI} {
		for _, runtime := range d.Runtimes {
			t.Run(via+" "+runtime, func(t *testing.T) {
				tg, s := open(t, e, runtime, via, 20)
				for _, n := range []int{1, 20} {
					for _, op := range []target.Op{target.Create, target.Start, target.Stop, target.Remove} {
						samples := do(t, s, op, n)
						check(t, tg, op, samples)
					}
					check(t, tg, target.Run, do(t, s, target.Run, n))
					if err := s.Discard(t.Context(), upTo(n)); err != nil {
						t.Fatal(err)
					}
					if left := d.Containers(t); len(left) > 0 {
						t.Errorf("left: %v", left)
					}
				}
			})
		}
	}
	if left := append(d.Containers(t), d.Images(t)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// check looks at the stamps that an operation has to have.
func check(t *testing.T, tg *Target, op target.Op, samples []record.Sample) {
	t.Helper()
	for _, x := range samples {
		starts := op == target.Start || op == target.Run
		if host := tg.Info().Clock == "host"; (x.First != 0) != (starts && host) || (x.Guest != 0) != (starts && !host) {
			t.Errorf("%s: first %d, guest %d", op, x.First, x.Guest)
		}
		if (x.Exited != 0) != (op == target.Stop && tg.via == ViaAPI) {
			t.Errorf("%s: exited %d", op, x.Exited)
		}
		if x.Exited != 0 && (x.Exited < x.Start || x.Exited > lane.Now()) {
			t.Errorf("%s: exited %d before it was told to", op, x.Exited)
		}
	}
}

