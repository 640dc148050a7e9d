package ledger_test

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

func TestCPUOfRolesIsWholeOnlyWhereThatOfEachIsKnown(t *testing.T) {
	t.Parallel()
	_, begin, end := runc()
	has := func(all []record.RoleTime) bool {
		return slices.ContainsFunc(all, func(r record.RoleTime) bool { return r.Role == record.RoleDaemon })
	}
	if all, whole := ledger.CPU(begin, end); !whole || !has(all) {
		t.Errorf("whole %v: %+v", whole, all)
	}
	end.Processes[0].Start++ // the daemon was replaced
	if all, whole := ledger.CPU(begin, end); whole || has(all) || len(all) == 0 {
		t.Errorf("with a daemon that was replaced, whole %v: %+v", whole, all)
	}
	if all, whole := ledger.CPU(end, begin); whole || all != nil {
		t.Errorf("backwards, whole %v: %+v", whole, all)
	}
}

func TestWhatChildrenUsedIsTheWorkloadsWhereNoCgroupTells(t *testing.T) {
	t.Parallel()
	const server, worker = 500, 501 // the server forks a child for each request; the worker was there before
	at := func(at int64, m record.Moment, ps ...record.Process) *record.Reading {
		r := &record.Reading{Time: at, Moment: m, Phase: "idle", Sandboxes: 1, Processes: ps}
		r.Host.Total, r.Host.Free, r.Host.Available = 8<<30, 4<<30, 4<<30
		return r
	}
	one := func(pid, parent int, cpu, waited int64) record.Process {
		p := process(pid, 0, record.RoleWorkload, "/session", 0, 0, 0)
		p.Start, p.PPid, p.CPU, p.Waited = 1, parent, cpu, waited
		return p
	}
	for name, c := range map[string]struct {
		begin, end *record.Reading
		want       int64
	}{
		"children that were born and ended in the phase": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 5*sec)), at(20*sec, record.MomentEnd, one(server, 1, 2*sec, 8*sec)), 4 * sec},
		"one that ended counts without what it used before": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 0), one(worker, server, 3*sec, 0)), at(20*sec, record.MomentEnd, one(server, 1, sec, 5*sec)), 2 * sec},
		"and with what it had waited for before": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 0), one(worker, server, sec, 2*sec)), at(20*sec, record.MomentEnd, one(server, 1, sec, 5*sec)), 2 * sec},
		"one that another waited for is in no clock of the workload's": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 0), one(worker, 1, 3*sec, 0)), at(20*sec, record.MomentEnd, one(server, 1, sec, 2*sec)), 2 * sec},
		"children that nobody waited for": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 5*sec)), at(20*sec, record.MomentEnd, one(server, 1, 2*sec, 5*sec)), sec},
	} {
		all, whole := ledger.CPU(c.begin, c.end)
		if len(all) != 1 || all[0].Role != record.RoleWorkload || all[0].NS != c.want || !whole {
			t.Errorf("%s: whole %v: %+v, want %d", name, whole, all, c.want)
		}
	}
}

func TestTheLimitOfAPodIsTheOneThatBoundsItsWorkload(t *testing.T) {
	t.Parallel()
	const pause, workload = "/system.slice/cri-containerd-p.scope", "/system.slice/cri-containerd-c.scope"
	for name, c := range map[string]struct{ pause, workload, want int64 }{
		"the pause container has none":        {0, 64 * mib, 64 * mib},
		"the pause container has a lower one": {mib, 64 * mib, 64 * mib},
		"the pause container alone has one":   {mib, 0, 0},
		"neither container has one":           {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(ns int64, moment record.Moment) *record.Reading {
				r := at(ns, moment, node(1<<30))
				r.Processes = []record.Process{process(1, 0, record.RolePause, pause, mib, 0, 0), process(2, 0, record.RoleWorkload, workload, mib, 0, 0)}
				r.Groups = []record.Group{group(pause, record.ChargePod, record.GroupMemory{Usage: mib, Limit: c.pause}, 0),
					group(workload, record.ChargePod, record.GroupMemory{Usage: mib, Limit: c.workload}, 0)}
				return r
			}
			l := closed(t, at(1*sec, record.MomentBefore, node(1<<30)), read(2*sec, record.MomentBegin), read(3*sec, record.MomentEnd))
			if len(l.Groups) != 1 || l.Groups[0].Limit != c.want {
				t.Errorf("got %+v, want a limit of %d", l.Groups, c.want)
			}
		})
	}
}
