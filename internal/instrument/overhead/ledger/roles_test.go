package ledger_test

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestRoleCPUIsCompleteOnlyIfEveryRoleIsKnown(t *testing.T) {
	t.Parallel()
	_, begin, end := runc()
	has := func(all []record.RoleTime) bool {
		return slices.ContainsFunc(all, func(r record.RoleTime) bool { return r.Role == record.RoleDaemon })
	}
	all, whole := ledger.CPU(begin, end)
	check.That(t, whole && has(all), "whole %v: %+v", whole, all)
	end.Processes[0].Start++ // the daemon was replaced
	all, whole = ledger.CPU(begin, end)
	check.That(t, !whole && !has(all) && len(all) != 0, "with a daemon that was replaced, whole %v: %+v", whole, all)
	all, whole = ledger.CPU(end, begin)
	check.That(t, !whole && all == nil, "backwards, whole %v: %+v", whole, all)
}

func TestChildCPUBelongsToWorkloadWithoutCgroup(t *testing.T) {
	t.Parallel()
	const server, worker = 500, 501 // the server forks a child per request; the worker existed before
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
		"children born and exited in the phase": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 5*sec)), at(20*sec, record.MomentEnd, one(server, 1, 2*sec, 8*sec)), 4 * sec},
		"exited child without its earlier CPU time": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 0), one(worker, server, 3*sec, 0)), at(20*sec, record.MomentEnd, one(server, 1, sec, 5*sec)), 2 * sec},
		"exited child with its own waited children": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 0), one(worker, server, sec, 2*sec)), at(20*sec, record.MomentEnd, one(server, 1, sec, 5*sec)), 2 * sec},
		"child waited for by another process is not in the workload's clock": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 0), one(worker, 1, 3*sec, 0)), at(20*sec, record.MomentEnd, one(server, 1, sec, 2*sec)), 2 * sec},
		"children not waited for": {
			at(10*sec, record.MomentBegin, one(server, 1, sec, 5*sec)), at(20*sec, record.MomentEnd, one(server, 1, 2*sec, 5*sec)), sec},
	} {
		all, whole := ledger.CPU(c.begin, c.end)
		check.That(t, len(all) == 1 && all[0].Role == record.RoleWorkload && all[0].NS == c.want && whole,
			"%s: whole %v: %+v, want %d", name, whole, all, c.want)
	}
}

func TestPodLimitBoundsItsWorkload(t *testing.T) {
	t.Parallel()
	const pause, workload = "/system.slice/cri-containerd-p.scope", "/system.slice/cri-containerd-c.scope"
	for name, c := range map[string]struct{ pause, workload, want int64 }{
		"no limit on the pause container":    {0, 64 * mib, 64 * mib},
		"lower limit on the pause container": {mib, 64 * mib, 64 * mib},
		"limit on the pause container only":  {mib, 0, 0},
		"no limits":                          {0, 0, 0},
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
			check.That(t, len(l.Groups) == 1 && l.Groups[0].Limit == c.want, "got %+v, want a limit of %d", l.Groups, c.want)
		})
	}
}

func TestCrunLimitBelowScopeIsThePodLimit(t *testing.T) {
	t.Parallel()
	const scope, container = "/machine.slice/libpod-x.scope", "/machine.slice/libpod-x.scope/container"
	read := func(ns int64, moment record.Moment) *record.Reading {
		r := at(ns, moment, node(1<<30))
		r.Processes = []record.Process{process(1, 0, record.RoleWorkload, container, mib, 0, 0)}
		below := group(container, record.ChargePod, record.GroupMemory{Usage: mib, Limit: 64 * mib}, 0)
		below.Nested = true
		r.Groups = []record.Group{group(scope, record.ChargePod, record.GroupMemory{Usage: mib}, 0), below}
		return r
	}
	l := closed(t, at(1*sec, record.MomentBefore, node(1<<30)), read(2*sec, record.MomentBegin), read(3*sec, record.MomentEnd))
	check.That(t, len(l.Groups) == 1 && l.Groups[0].Limit == 64*mib, "got %+v, want a limit of 64 MiB", l.Groups)
}

func lines() ([]record.Reading, []record.Series) {
	var out []record.Reading
	var series []record.Series
	now := int64(0)
	for round := range 2 {
		for _, target := range []string{"a", "b"} {
			add := func(m record.Moment, phase string, n int) {
				now += sec
				r := at(now, m, node(1<<30))
				r.Round, r.Target, r.Phase, r.Sandboxes = round, target, phase, n
				out = append(out, *r)
			}
			add(record.MomentBefore, "", 0)
			for _, n := range []int{1, 5} {
				add(record.MomentBegin, "idle", n)
				series = append(series, record.Series{Round: round, Target: target, Phase: "idle", Sandboxes: n, Times: []int64{now, now + sec},
					Values: map[string][]int64{record.SeriesNodeUsed: {1, 2}}})
				add(record.MomentEnd, "idle", n)
			}
			add(record.MomentAfter, "", 0)
		}
	}
	return out, series
}

func TestVisits(t *testing.T) {
	readings, series := lines()
	whole := func(t *testing.T, all []*ledger.Visit, n int) {
		t.Helper()
		must.That(t, len(all) == n, "%d visits", len(all))
		for _, v := range all {
			must.That(t, v.Before != nil && v.After != nil && len(v.Phases) == 2, "%+v", v)
			for i := range v.Phases {
				p := &v.Phases[i]
				check.That(t, p.Begin != nil && p.End != nil && p.Series != nil && p.Series.Round == v.Round && p.Series.Target == v.Target &&
					p.Series.Sandboxes == p.Sandboxes, "%+v", p)
			}
		}
	}
	t.Run("one visit per round and target", func(t *testing.T) { whole(t, ledger.Visits(readings, series), 4) })
	t.Run("duplicate lines count once", func(t *testing.T) {
		whole(t, ledger.Visits(append(readings[:len(readings):len(readings)], readings...), append(series[:len(series):len(series)], series...)), 4)
	})
	t.Run("truncated record keeps complete visits", func(t *testing.T) {
		for n := range readings {
			all := ledger.Visits(readings[:n], series)
			want := (n + 5) / 6
			must.That(t, len(all) == want, "%d readings: %d visits", n, len(all))
			for _, v := range all {
				for i := range v.Phases {
					_, err := v.Close(i, 2)
					check.That(t, (err == nil) == (v.Phases[i].End != nil), "%d: %v", n, err)
				}
			}
		}
	})
	t.Run("lost begin keeps complete visits", func(t *testing.T) {
		for n := range readings {
			for _, v := range ledger.Visits(readings[n:], series) {
				for i := range v.Phases {
					_, err := v.Close(i, 2)
					check.That(t, v.Before != nil || err != nil, "%d: ledger without a first reading", n)
				}
			}
		}
	})
}

func TestUncertainty(t *testing.T) {
	visit := func(drift int64, used ...int64) *ledger.Visit {
		end := at(20*sec, record.MomentEnd, node(1<<30))
		v := &ledger.Visit{Before: at(sec, record.MomentBefore, node(1<<30)), Phases: []ledger.Phase{{Name: "idle", End: end}}}
		v.After = at(30*sec, record.MomentAfter, node(1<<30+drift))
		if used != nil {
			v.Phases[0].Series = &record.Series{Values: map[string][]int64{record.SeriesNodeUsed: used}}
		}
		return v
	}
	unread := visit(0)
	unread.Before.Host.Refreshed, unread.Phases[0].End.Host.Refreshed = false, false
	for _, r := range []*record.Reading{unread.Before, unread.Phases[0].End, unread.After} {
		r.Host.Total, r.Host.Free = 16<<30, 15<<30
	}
	others := visit(8 * mib)
	others.After.Host.Others = 8 * mib
	late, early := visit(8*mib), visit(8*mib)
	late.Phases[0].End.Time, early.Phases[0].End.Time = 29*sec, 2*sec
	cut := visit(8 * mib)
	cut.After = nil
	for _, tt := range []struct {
		name string
		v    *ledger.Visit
		want int64
	}{
		{"constant node memory is exact", visit(0), 0},
		{"drift counts in proportion to the time", visit(8 * mib), 8 * mib * 19 / 29},
		{"negative drift counts as well", visit(-8 * mib), 8 * mib * 19 / 29},
		{"late phase has most of the drift", late, 8 * mib * 28 / 29},
		{"early phase has little of the drift", early, 8 * mib * 1 / 29},
		{"memory of others is not drift", others, 0},
		{"missing last reading has no drift", cut, 0},
		{"variation is that of the second half of the phase", visit(0, 1<<30, 1<<20, 1<<30, 1<<20, 1<<30, 900, 1000, 1100, 1000, 1200), 411},
		{"missed ticks are ignored", visit(0, 0, 0, 0, 0, 0, 0, 0, 900, -1, 1000, 1100, -1, 1000, 1200), 411},
		// 2 CPUs × 2·fls(2)·(1 + fls(128)) = 36 pages, see mm/vmstat.c.
		{"unsummed per-CPU counters add pages", unread, 2 * 36 * 4096},
	} {
		got := tt.v.Uncertainty(0, 2)
		check.That(t, max(got-tt.want, tt.want-got) <= 1, "%s: %d, want %d", tt.name, got, tt.want)
	}
}

func TestDoubleCountedProcessesAreUncertain(t *testing.T) {
	for _, tt := range []struct {
		name         string
		before, end  int64 // anonymous memory of the node
		others, anon int64 // RssAnon of other processes, and anonymous memory of the target
		node, more   int64
	}{
		{"both figures agree", 100 * mib, 108 * mib, 3 * mib, 5 * mib, 3 * mib, 0},
		{"a difference of 1 MiB is ignored", 100 * mib, 108 * mib, 4 * mib, 5 * mib, 3 * mib, 0},
		{"shared pages of forks are counted per process", 100 * mib, 108 * mib, 33 * mib, 5 * mib, 3 * mib, 30 * mib},
		{"memory without a process", 100 * mib, 128 * mib, 3 * mib, 5 * mib, 23 * mib, 20 * mib},
		{"unknown anonymous memory of the node", 0, 0, 33 * mib, 5 * mib, 33 * mib, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &ledger.Visit{Before: at(sec, record.MomentBefore, node(1<<30)), Phases: []ledger.Phase{{Name: "idle", Sandboxes: 1, End: at(20*sec, record.MomentEnd, node(1<<30))}}}
			e := v.Phases[0].End
			v.Before.Host.Anon, e.Host.Anon, e.Host.Others = tt.before, tt.end, tt.others
			e.Processes = []record.Process{process(7, 0, record.RoleWorkload, "/c", tt.anon, 0, 0)}
			l, err := v.Close(0, 2)
			check.That(t, err == nil && l.Others == tt.others && l.OthersNode == tt.node && l.Uncertainty == tt.more,
				"%v: others %d, by the node %d, ± %d", err, l.Others, l.OthersNode, l.Uncertainty)
		})
	}
}
