package ledger

import (
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

func TestEngineCPUUsesItsOwnTimestamps(t *testing.T) {
	t.Parallel()
	const second = int64(1e9)
	says := func(at int64, looks ...record.Statistic) *record.Reading {
		for i := range looks {
			looks[i].Source, looks[i].Lane = "kubelet summary", i
		}
		return &record.Reading{Time: at * second, Sandboxes: 2, Engine: looks}
	}
	look := func(at, cpu int64) record.Statistic { return record.Statistic{Time: at * second, CPU: cpu * second} }
	for name, c := range map[string]struct {
		begin, end *record.Reading
		want       float64
	}{
		"times between the readings": {says(100, look(90, 0), look(99, 0)), says(130, look(110, 10), look(129, 3)), 0.6},
		"times of the readings":      {says(100, look(0, 0), look(0, 0)), says(120, look(0, 10), look(0, 4)), 0.7},
		"one time repeated":          {says(100, look(90, 1), look(99, 1)), says(130, look(110, 10), look(99, 1)), -1},
		"one statistic missing":      {says(100, look(90, 1), look(99, 1)), says(130, look(110, 10)), -1},
		"one statistic new":          {says(100, look(90, 1)), says(130, look(110, 10), look(129, 3)), -1},
	} {
		b := books{begin: c.begin, end: c.end}
		got := b.engineCPU("kubelet summary")
		check.That(t, math.Abs(got-c.want) <= 1e-9, "%s: %g CPUs, want %g", name, got, c.want)
	}
}

func TestSandboxEndsWithItsMainProcess(t *testing.T) {
	t.Parallel()
	process := func(pid int, start uint64, role record.Role, lane int) record.Process {
		return record.Process{Pid: pid, Start: start, Role: role, Lane: lane}
	}
	ended := func(p record.Process) record.Process {
		p.Ended = true
		return p
	}
	begin := []record.Process{process(1, 5, record.RoleDaemon, -1), process(10, 10, record.RoleShim, 0), process(11, 11, record.RoleWorkload, 0), process(12, 12, record.RoleWorkload, 0)}
	for _, c := range []struct {
		claim            string
		begin, end       []record.Process
		restarted, ended int
	}{
		{"nothing exited", begin, begin, 0, 0},
		{"command in the container exited", begin, begin[:3], 0, 0},
		{"daemon restarted", begin, append([]record.Process{process(2, 20, record.RoleDaemon, -1)}, begin[1:]...), 0, 0},
		{"workload exited", begin, begin[:2], 0, 1},
		{"workload restarted", begin, append(begin[:2:2], process(13, 20, record.RoleWorkload, 0)), 1, 0},
		{"pid of the workload reused", begin, append(begin[:2:2], process(11, 20, record.RoleOthers, -1)), 0, 1},
		{"pod restarted with its shim", begin, []record.Process{process(20, 20, record.RoleShim, 0), process(21, 21, record.RoleWorkload, 0)}, 1, 0},
		{"shim restarted without the workload", begin, []record.Process{process(20, 20, record.RoleShim, 0)}, 0, 1},
		{"sentry ended an address space", []record.Process{process(10, 10, record.RoleSentry, 0), process(11, 11, record.RoleWorkload, 0)},
			[]record.Process{process(10, 10, record.RoleSentry, 0)}, 0, 0},
		{"workload is a zombie", begin, []record.Process{begin[1], ended(begin[2])}, 0, 1},
		{"workload was a zombie before", []record.Process{begin[1], ended(begin[2])}, []record.Process{begin[1], ended(begin[2])}, 0, 1},
		{"older zombie in the container", append(begin[:3:3], ended(process(9, 9, record.RoleWorkload, 0))), begin[:3], 0, 0},
		{"VMM killed", []record.Process{process(10, 10, record.RoleVMM, 0), process(11, 11, record.RoleVMM, 1)}, []record.Process{process(11, 11, record.RoleVMM, 1)}, 0, 1},
	} {
		restarted, ended := 0, 0
		for _, e := range Ends(&record.Reading{Processes: c.begin}, &record.Reading{Processes: c.end}) {
			if e.Again {
				restarted++
			} else {
				ended++
			}
		}
		check.That(t, restarted == c.restarted && ended == c.ended, "%s: %d restarted, %d ended", c.claim, restarted, ended)
	}
}
