package containerd

import (
	"fmt"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

var life = []subject.Op{subject.Create, subject.Start, subject.Stop, subject.Remove, subject.Run}

func TestALifeIsStampedAndLeavesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		for _, runtime := range []string{"", "crun"} {
			for _, n := range []int{1, 20} {
				t.Run(fmt.Sprintf("%s×%d", runtime, n), func(t *testing.T) {
					s, id := open(t, d, runtime, n)
					for _, op := range life {
						for _, sample := range succeed(t, s, op, n) {
							stamped(t, op, sample)
						}
						staffed(t, op, s, n)
					}
					if err := s.Discard(t.Context(), upTo(n)); err != nil {
						t.Fatal(err)
					}
					shut(t, d, s)
					if hs, _ := cgroup.Hierarchies(); len(cgroup.Procs(hs, cgroup.Prefix+id)) > 0 {
						t.Error("processes are left")
					}
				})
			}
		}
	})
}

// stamped checks what only some operations have: the workload's first
// instruction, and its exit.
func stamped(t *testing.T, op subject.Op, s record.Sample) {
	t.Helper()
	begins := op == subject.Start || op == subject.Run
	if begins != (s.First > s.Start && s.First < s.Start+int64(time.Minute)) {
		t.Errorf("%s: first instruction %d, call %d, reply %d", op, s.First, s.Start, s.Returned)
	}
	if (op == subject.Stop) != (s.Exited > s.Start) {
		t.Errorf("%s: exit %d, call %d, reply %d", op, s.Exited, s.Start, s.Returned)
	}
}

// staffed checks that there is one daemon, and one shim for each container.
func staffed(t *testing.T, op subject.Op, s *session, n int) {
	t.Helper()
	if op == subject.Remove {
		n = 0
	}
	count := map[record.Role]int{}
	for _, p := range s.Processes(t.Context()) {
		count[p.Role]++
	}
	if count[record.RoleDaemon] != 1 || count[record.RoleShim] != n || len(count) > 2 {
		t.Errorf("after %s there are %v", op, count)
	}
}

func TestContainerdCountsTheSameContainers(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		s, _ := open(t, d, "crun", 5)
		c, err := Connect(t.Context(), d.Address, ownNamespace)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		events, errs := c.Subscribe(t.Context(), `topic=="/containers/create"`, `topic=="/tasks/start"`, `topic=="/containers/delete"`)
		time.Sleep(100 * time.Millisecond) // there is no reply to a subscription
		for _, op := range life[:4] {
			succeed(t, s, op, 5)
		}
		succeed(t, s, subject.Run, 3)
		shut(t, d, s)
		count := map[string]int{}
		for sum := 0; sum < 3*8; sum++ {
			select {
			case e := <-events:
				count[e.Topic]++
			case err := <-errs:
				t.Fatal(err)
			case <-time.After(5 * time.Second):
				t.Fatalf("%v", count)
			}
		}
		for topic, n := range count {
			if n != 8 {
				t.Errorf("%s: %d", topic, n)
			}
		}
	})
}

func TestTheSandboxOfRunscHasAClockOfItsOwn(t *testing.T) {
	if engines.Runsc() == "" {
		t.Skip("there is no runsc; run: make runtimes")
	}
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		s, _ := open(t, d, engines.Runsc(), 3)
		if info := s.Info(); info.Clock != "guest" {
			t.Errorf("%+v", info)
		}
		for _, op := range life {
			for _, sample := range succeed(t, s, op, 3) {
				if begins := op == subject.Start || op == subject.Run; sample.First != 0 || begins != (sample.Guest != 0) {
					t.Errorf("%s: %+v", op, sample)
				}
			}
		}
		shut(t, d, s)
	})
}

func TestAHundredLanesAreConfirmedWithinSeconds(t *testing.T) {
	d := engines.Containerd(t, engines.V2)
	s, _ := open(t, d, "crun", 100)
	for _, op := range life[:3] {
		began := time.Now()
		var last int64
		for _, sample := range succeed(t, s, op, 100) {
			last = max(last, sample.Returned-sample.Start)
		}
		if rest := time.Since(began) - time.Duration(last); rest > 3*time.Second {
			t.Errorf("%s took %v to confirm", op, rest)
		}
	}
	shut(t, d, s)
}
