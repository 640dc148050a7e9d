package run

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"

	"context"
)

func TestRoleUsageIsTheDifferenceOfTwoReadings(t *testing.T) {
	daemon, shim1, shim2, gone := procs.ID{Pid: 10, Start: 1}, procs.ID{Pid: 11, Start: 2}, procs.ID{Pid: 12, Start: 3}, procs.ID{Pid: 13, Start: 4}
	reused := procs.ID{Pid: 13, Start: 99} // the reused PID of the exited process
	of := func(role record.Role, cpu, pss int64) reading {
		return reading{role: role, Usage: procs.Usage{CPU: cpu, PSS: pss}}
	}
	got := sums(
		map[procs.ID]reading{daemon: of(record.RoleDaemon, 500, 86), shim1: of(record.RoleShim, 5, 4), gone: of(record.RoleShim, 7, 4)},
		map[procs.ID]reading{daemon: of(record.RoleDaemon, 800, 90), shim1: of(record.RoleShim, 6, 5), shim2: of(record.RoleShim, 9, 3),
			reused: of(record.RoleShim, 2, 1), {Pid: 14}: {role: record.RoleShim, err: errors.New("no permission")}},
		map[procs.ID]int64{daemon: 120})
	want := []record.Usage{
		{Role: record.RoleDaemon, Before: 1, After: 1, CPU: 300, PSSBefore: 86, PSSPeak: 120, PSSAfter: 90},
		{Role: record.RoleShim, Before: 2, After: 4, Ended: 1, CPU: 1 + 9 + 2, PSSBefore: 8, PSSPeak: 9, PSSAfter: 9, Unread: 1},
	}
	check.Equal(t, "result", got, want)
}

type staffed struct{ subject.Session }

func (staffed) Processes(context.Context) []subject.Process {
	return []subject.Process{{Role: record.RoleDaemon, Pid: os.Getpid()}}
}

func TestLiveProcessIsMetered(t *testing.T) {
	s := newStaff(t.Context(), staffed{})
	s.begin()
	for i, sum := 0, 0; i < 200_000_000; i++ {
		sum += i
	}
	s.end()
	got := s.finish(t.Context())
	if len(got) != 1 || got[0].Unread != 0 || got[0].CPU < 10e6 || got[0].PSSPeak < 1<<20 {
		t.Errorf("%+v", got)
	}
	if newStaff(t.Context(), nil) != nil {
		t.Error("a target without its own processes was metered")
	}
}

// hiring is a meter that returns the given processes.
type hiring struct {
	subject.Session
	pids []int
}

func (h *hiring) Processes(context.Context) (all []subject.Process) {
	for _, pid := range h.pids {
		all = append(all, subject.Process{Role: record.RoleShim, Pid: pid})
	}
	return all
}

// busy starts a process that uses CPU time. until waits until it has used more than the
// given time and returns the total.
func busy(t *testing.T) (pid int, until func(int64) int64) {
	t.Helper()
	c := exec.Command("sh", "-c", "while :; do :; done")
	must.OK(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c.Process.Pid, func(more int64) int64 {
		for t.Context().Err() == nil {
			if cpu, ok := procs.Clock(c.Process.Pid); !ok {
				t.Fatal("it ended")
			} else if cpu > more {
				return cpu
			}
		}
		return 0
	}
}

func TestCheckTimeIsNotCountedAsOperationTime(t *testing.T) {
	h := new(hiring)
	s := newStaff(t.Context(), h)
	s.begin()
	early, used := busy(t)
	least := used(10e6)
	s.end()
	most := used(0)
	late, usedLate := busy(t)
	used(most + 50e6) // the checks
	usedLate(10e6)
	h.pids = []int{early, late}
	got := s.finish(t.Context())
	if len(got) != 1 || got[0].Unread != 0 || got[0].After != 2 || got[0].CPU < least || got[0].CPU > most {
		t.Errorf("%+v, want CPU time from %d to %d", got, least, most)
	}
}
