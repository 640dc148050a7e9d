package cri

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

var life = []subject.Op{subject.RunPod, subject.Create, subject.Start, subject.Stop, subject.Remove, subject.StopPod, subject.RemovePod}

func TestALifeIsStampedAndLeavesNothing(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		for _, c := range []struct {
			handler string
			lanes   int
		}{{"", 20}, {"crun", 1}} {
			handler, n := c.handler, c.lanes
			t.Run(fmt.Sprintf("%s×%d", handler, n), func(t *testing.T) {
				s, id := opened(t, u, handler, n)
				for _, op := range life {
					for _, sample := range succeed(t, s, op, n) {
						stamped(t, op, sample)
					}
					staffed(t, op, s, n)
				}
				for _, sample := range succeed(t, s, subject.Run, n) {
					stamped(t, subject.Run, sample)
				}
				began := time.Now()
				if err := s.Discard(t.Context(), upTo(n)); err != nil {
					t.Fatal(err)
				}
				t.Logf("discarded in %v", time.Since(began))
				shut(t, u, s)
				if hs, _ := cgroup.Hierarchies(); len(cgroup.Procs(hs, cgroup.Prefix+id)) > 0 {
					t.Error("processes are left")
				}
			})
		}
	})
}

func TestAHundredLanesAreConfirmedWithinSeconds(t *testing.T) {
	u := onCRIO(t)
	s, _ := opened(t, u, "crun", 100)
	var last int64
	began := time.Now()
	for _, sample := range succeed(t, s, subject.Run, 100) {
		last = max(last, sample.Returned-sample.Start)
	}
	if rest := time.Since(began) - time.Duration(last); rest > 4*time.Second {
		t.Errorf("it took %v to confirm", rest)
	}
	shut(t, u, s)
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

// staffed checks that there is one daemon, and a shim or a monitor for what is
// there.
func staffed(t *testing.T, op subject.Op, s *session, n int) {
	t.Helper()
	count := map[record.Role]int{}
	for _, p := range s.Processes(t.Context()) {
		count[p.Role]++
	}
	t.Logf("after %s: %v", op, count)
	if count[record.RoleDaemon] != 1 || op == subject.Start && count[record.RoleShim]+count[record.RoleMonitor] < n || op == subject.RemovePod && len(count) != 1 {
		t.Errorf("after %s there are %v", op, count)
	}
}

func TestContainersAreAsAskedFor(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		s, _ := opened(t, u, "runc", 1)
		succeed(t, s, subject.Run, 1)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.held[0].pid))
		if err != nil || !strings.Contains(string(status), "\nSeccomp:\t0\n") {
			t.Errorf("%s %v", status, err)
		}
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", s.held[0].pid))
		if err != nil || !strings.Contains(string(groups), ":/"+s.group+"/") {
			t.Errorf("%s %v", groups, err)
		}
		own, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", u.pid))
		if net, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", s.held[0].pid)); err != nil || net != own {
			t.Errorf("network %s, the host's is %s, %v", net, own, err)
		}
		shut(t, u, s)
	})
}
