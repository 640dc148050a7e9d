package overhead

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// cell sums up the rounds of one target in one phase. Rounds whose books are
// incomplete are too small: they count only where there is no other.
func (j *judging) cell(target string, s step) Cell {
	c := Cell{Target: target}
	var whole []*closedPhase
	for _, p := range j.phases {
		switch {
		case p.visit.Target != target || p.phase.Name != s.name || p.phase.Sandboxes != s.n:
		case p.failure != nil:
			c.Failed++
			if c.Failure == nil {
				c.Failure = p.failure
			}
		default:
			c.closed = append(c.closed, p)
			if p.ledger.Complete {
				whole = append(whole, p)
			}
		}
	}
	if len(whole) == 0 {
		whole = slices.Clone(c.closed)
	}
	c.Rounds, c.counts = len(whole), slices.Clone(whole)
	if c.Rounds == 0 {
		return c
	}
	labels := figure.Of("target", target, "phase", s.name, "sandboxes", strconv.Itoa(s.n))
	least := false
	c.Sum = Quantities.Over("memory", labels, byRound(&c, bytesOf(func(l *ledger.Ledger) int64 { return l.Sum })))
	c.Residual = Quantities.Over("residual", labels, byRound(&c, bytesOf(func(l *ledger.Ledger) int64 { return l.Residual })))
	c.CPU = Quantities.Over("cpu", labels, byRound(&c, func(l *ledger.Ledger) (float64, bool) {
		cpus, some := l.CPU()
		least = least || some
		return cpus, true
	}))
	c.Sum.Failed, c.Sum.Total = c.Failed, c.Failed+len(c.closed)
	if least {
		c.CPU.Reasons = []string{"at least: the CPU time of some role is not known"}
	}
	if len(whole) < len(c.closed) {
		c.Sum.Reasons = []string{"of the rounds that could be read whole"}
	}
	j.calibrate(&c, whole, labels)
	slices.SortStableFunc(whole, func(a, b *closedPhase) int { return cmp.Compare(a.ledger.Sum, b.ledger.Sum) })
	middle := whole[(len(whole)-1)/2]
	c.Ledger, c.Series = middle.ledger, overTime(middle.phase, labels)
	return c
}

// rowOf is a role's row, an empty one where there is none.
func rowOf(l *ledger.Ledger, role record.Role) ledger.Row {
	for _, r := range l.Rows {
		if r.Role == role {
			return r
		}
	}
	return ledger.Row{Role: role}
}

// guestRole is the role whose memory holds that of the workload, as the host
// sees it: the VMM, the shim where the VMM is inside it; "" where
// the workload's processes are the host's.
func guestRole(l *ledger.Ledger) record.Role {
	has := func(role record.Role) bool {
		return slices.ContainsFunc(l.Rows, func(r ledger.Row) bool { return r.Role == role })
	}
	switch {
	case has(record.RoleVMM):
		return record.RoleVMM
	case has(record.RoleVCPU):
		return record.RoleShim
	}
	return ""
}

// loadRoles are those in which a load inside the sandboxes shows. What runs it
// from outside is not among them: the runtime's exec and its monitor, and the
// shim unless it is the VMM.
func loadRoles(l *ledger.Ledger) []record.Role {
	roles := []record.Role{record.RoleWorkload, record.RolePause, record.RoleVMM, record.RoleVCPU, record.RoleVirtiofs, record.RoleSentry, record.RoleGofer}
	if guestRole(l) == record.RoleShim {
		roles = append(roles, record.RoleShim)
	}
	return roles
}

// loadCPU are the roles in which a load's CPU time shows: the workload's own
// processes and the threads that run guests. gVisor without address spaces of
// its own, on KVM, runs the workload in the sentry.
func loadCPU(l *ledger.Ledger) []record.Role {
	switch {
	case guestRole(l) != "" && rowOf(l, record.RoleVCPU).CPUKnown:
		return []record.Role{record.RoleVCPU}
	case guestRole(l) != "":
		return []record.Role{guestRole(l)}
	case rowOf(l, record.RoleWorkload).Processes == 0:
		return []record.Role{record.RoleSentry}
	}
	return []record.Role{record.RoleWorkload}
}

// calibrate sets what was measured beside what the load was told to use, medians
// over the rounds. Without an idle phase in the same visit there is neither.
func (j *judging) calibrate(c *Cell, rounds []*closedPhase, labels figure.Labels) {
	var expected, measured, spun []float64
	above, asked := stat.Rounds{}, stat.Rounds{}
	for _, p := range rounds {
		w, n := p.phase.End.Work, float64(p.phase.Sandboxes)
		idle := j.idleBefore(p)
		if w == nil || n == 0 || idle == nil {
			continue
		}
		var memory, cpu float64
		known := true
		for _, l := range []struct {
			sign float64
			*ledger.Ledger
		}{{1, &p.ledger}, {-1, &idle.ledger}} {
			for _, role := range loadRoles(l.Ledger) {
				r := rowOf(l.Ledger, role)
				memory += l.sign * float64(r.Memory.Anon+r.Memory.Shmem+r.Memory.Huge)
			}
			for _, role := range loadCPU(l.Ledger) {
				r := rowOf(l.Ledger, role)
				cpu += l.sign * r.CPU
				known = known && (r.CPUKnown || r.Processes == 0)
			}
		}
		switch {
		case kindOf(p.phase.Name) == PhaseLoad:
			above[p.visit.Round] = memory / n
			if qps := answersPerSecond(w); qps > 0 {
				asked[p.visit.Round] = qps
			}
			c.Errors += w.Errors
		case w.Hold > 0:
			expected, measured = append(expected, float64(w.Hold)), append(measured, memory/n)
		case w.Spin > 0 && known:
			expected, measured = append(expected, w.Spin), append(measured, cpu/n)
			if w.Spun > 0 {
				spun = append(spun, w.Spun)
			}
		}
	}
	c.Expected, c.Measured = figure.MedianOf(expected).Value, figure.MedianOf(measured).Value
	c.Spun = figure.MedianOf(spun).Value
	c.Above = Quantities.Over("memory-above-idle", labels, above)
	c.Requests = Quantities.Over("requests", labels, asked)
}

// answersPerSecond is what the clients say. Records that lack it have only the time from
// before the clients began until all had ended, of which it comes to less.
func answersPerSecond(w *record.Work) float64 {
	if took := w.Ended - w.Begun; w.QPS == 0 && took > 0 {
		return float64(w.Answers) / (float64(took) / 1e9)
	}
	return w.QPS
}

// used is what a load used by all that is known: what it was told to, or what it
// says itself where it came to less. It came short where others had its CPUs.
func (c *Cell) used() (amount float64, short bool) {
	if c.Spun > 0 && c.Spun < c.Expected*(1-spinShare) {
		return c.Spun, true
	}
	return c.Expected, false
}

// idleBefore is the idle phase of the same visit at the same count.
func (j *judging) idleBefore(p *closedPhase) *closedPhase {
	for _, q := range j.phases {
		if q.visit == p.visit && q.phase.Sandboxes == p.phase.Sandboxes && q.failure == nil && kindOf(q.phase.Name) == PhaseIdle {
			return q
		}
	}
	return nil
}

// sampled are the series in the order in which they are shown. A value is divided
// by "by"; a counter's rate is per so many ns.
var sampled = []struct {
	name string
	unit figure.Unit
	by   float64
	rate bool
}{
	{record.SeriesPodMemory, figure.Bytes, 1, false}, {record.SeriesOverheadMemory, figure.Bytes, 1, false},
	{record.SeriesPodCPU, figure.CPUs, 1, true}, {record.SeriesOverheadCPU, figure.CPUs, 1, true}, {record.SeriesDaemonCPU, figure.CPUs, 1, true},
	{record.SeriesNodeUsed, figure.Bytes, 1, false}, {record.SeriesNodeAvailable, figure.Bytes, 1, false}, {record.SeriesNodeCache, figure.Bytes, 1, false},
	{record.SeriesNodeBusy, figure.CPUs, 1, true}, {record.SeriesNodeRead, figure.BytesPerSec, 1e9, true}, {record.SeriesNodeWrite, figure.BytesPerSec, 1e9, true},
	{record.SeriesNodeLoad, figure.Load, 1000, false},
}

// overTime turns a phase's series into values over the time since its begin. A
// rate is that since the tick before it. Ticks at which nothing was read, and
// counters that went back, leave a hole.
func overTime(p *ledger.Phase, labels figure.Labels) (out []figure.Figure) {
	s := p.Series
	if s == nil || len(s.Times) == 0 {
		return nil
	}
	zero := s.Times[0]
	if p.Begin != nil && p.Begin.Time < zero {
		zero = p.Begin.Time
	}
	for _, k := range sampled {
		values := s.Values[k.name]
		of := &figure.Series{Missed: s.Missed}
		last := -1
		for i := range min(len(values), len(s.Times)) {
			if values[i] < 0 {
				continue
			}
			v, ok := float64(values[i])/k.by, true
			if k.rate {
				ok = last >= 0 && values[i] >= values[last] && s.Times[i] > s.Times[last]
				if ok {
					v = float64(values[i]-values[last]) / (float64(s.Times[i]-s.Times[last]) / k.by)
				}
				last = i
			}
			if ok {
				of.Times, of.Values = append(of.Times, float64(s.Times[i]-zero)/1e9), append(of.Values, v)
			}
		}
		if len(of.Values) > 0 {
			f := Quantities.New("over-time", figure.Estimate{}, labels.With("series", k.name))
			f.Unit, f.Series = k.unit, of
			out = append(out, f)
		}
	}
	return out
}
