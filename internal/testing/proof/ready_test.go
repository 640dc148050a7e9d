package proof

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/ports"
	"github.com/tare-bench/tare/record"
)

// late is the tolerance for a busy machine.
const late = 20 * time.Millisecond

// sleeps is how long a server sleeps before it listens.
const sleeps = 300 * time.Millisecond

// server returns a server as a workload for every target.
func server(t *testing.T, port int) setting.Workload {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, probe.Rootfs(dir))
	args := probe.ServeArgs(port, "delay="+strconv.FormatInt(sleeps.Milliseconds(), 10))
	return setting.Workload{Command: args, HostCommand: append([]string{filepath.Join(dir, probe.Name)}, args[1:]...)}
}

// bridged returns gVisor with docker. Its sandboxes have their own network and are
// reached at the address assigned by docker.
func bridged(t *testing.T) find.Found {
	t.Helper()
	docker := engines.Docker(t)
	return named(t, find.Settings{Engine: func(string) subject.Engine {
		return subject.Engine{Address: docker.Host, Network: subject.NetworkBridge}
	}}, "docker/runsc")[0]
}

// networked is a target with containers that are reached over the network.
type networked struct{ subject.Target }

func (n networked) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	env.Network = true
	return n.Target.Open(ctx, env)
}

// A server sleeps for a known time between its first instruction and its listen call. On
// every target it must become ready that long after its first instruction, and never
// earlier. It may be later by the stated resolution and the delay of a busy machine.
func TestServerIsReadyAfterItsDelay(t *testing.T) {
	p, at := folders(t), ports.Held(t)
	w, port := server(t, at), strconv.Itoa(at)
	for _, f := range append(fleet(t), bridged(t)) {
		for _, asked := range []setting.Ready{setting.Ready("tcp:" + port), setting.Ready("http:" + port + "/=200")} {
			if strings.HasPrefix(string(asked), "http") && f.Name != "host" && f.Name != "docker/runc" && f.Name != "docker/runsc" {
				continue // other targets differ only in the connection
			}
			t.Run(f.Name+" "+string(asked)[:4], func(t *testing.T) {
				s := must.Get(ready.Wrap(stand(t, p, networked{f.Target}, w), asked, time.Minute))(t)
				best := time.Hour
				for range 20 { // a busy machine may delay some of them
					x := operate(t, s, subject.Run)
					if x.Failure != nil {
						t.Fatalf("%+v", *x.Failure)
					}
					b := record.Batch{Lanes: 1, Released: x.Start, Samples: []record.Sample{*x}}
					resolution, ok := x.Resolution()
					if err := b.Check(); err != nil {
						t.Fatalf("%v: %+v", err, *x)
					}
					// The first instruction of a guest is only known to lie after the
					// begin of the call and roughly before its end.
					took, beyond := time.Duration(x.Ready-cmp.Or(x.First, x.Start)), time.Duration(x.Ready-cmp.Or(x.First, x.Seen, x.Returned))-sleeps
					check.That(t, took >= sleeps, "ready %v after its first instruction, less than its delay of %v", took, sleeps)
					if ok { // otherwise it was ready before the first poll
						best = min(best, beyond-resolution)
					}
					t.Logf("ready %v after its delay, known to %v from %d polls, request %v", beyond, resolution, x.Polls, time.Duration(x.Request))
					must.OK(t, s.Discard(t.Context(), []int{0}))
					if best <= late {
						break
					}
				}
				check.That(t, best <= late, "at best ready %v after its delay and the stated resolution", best)
			})
		}
	}
}

// Observed starts and their reports must also show that a server becomes ready its known
// delay after its first instruction.
func TestObservedStartIsReadyAfterItsServersDelay(t *testing.T) {
	const sleeps = time.Second // long enough for a first poll in at least one of three starts
	targets := []string{"floor", "runc", "docker/runc"}
	rec, j := watch(t, append([]string{"--docker-host", engines.Docker(t).Host, "--rounds", "3", "--warmup", "0",
		"--command", "/probe serve 8080 delay=" + strconv.FormatInt(sleeps.Milliseconds(), 10), "--ready", "tcp:8080"}, targets...)...)
	best := map[string]time.Duration{}
	for i := range rec.Starts {
		s := &rec.Starts[i]
		must.That(t, s.Failure == nil && s.First != 0, "%+v", *s)
		if s.Unready == 0 {
			continue // on a busy machine it was ready before the first poll
		}
		took, resolution := time.Duration(s.Ready-s.First), time.Duration(s.Ready-s.Unready)
		check.That(t, took >= sleeps, "%s: ready %v after its first instruction, less than its delay of %v", s.Target, took, sleeps)
		beyond := took - sleeps - resolution
		if one, met := best[s.Target]; !met || beyond < one {
			best[s.Target] = beyond
		}
		t.Logf("%s: ready %v after its delay, known to %v from %d polls", s.Target, took-sleeps, resolution, s.Polls)
	}
	for _, target := range targets {
		// With so few starts, all may be delayed. The test above has enough starts.
		beyond, met := best[target]
		check.That(t, met && beyond <= sleeps, "%s: at best ready %v after its delay and the stated resolution", target, beyond)
		first, ready := figure.Find(j.Figures(), "time-to-first-instruction", "target", target), figure.Find(j.Figures(), "time-to-ready", "target", target)
		if took := ready.Value - first.Value; ready.N == 0 || first.N != 3 || took < float64(sleeps) {
			t.Errorf("%s: reported ready %v after its first instruction, in %d starts", target, time.Duration(took), ready.N)
		}
	}
}
