package overhead

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/record"
)

// cell combines the rounds of one target in one phase. A round with an incomplete ledger
// understates the usage, so it counts only if no round is complete.
func (j *judging) cell(target string, s Step) Cell {
	c := Cell{Step: s, Target: target}
	for _, p := range j.phases {
		switch {
		case p.visit.Target != target || p.step() != s:
		case p.failure != nil:
			c.Failed++
			if c.Failure == nil {
				c.Failure = p.failure
			}
		default:
			c.closed = append(c.closed, p)
			if p.ledger.Complete {
				c.counts = append(c.counts, p)
			}
		}
	}
	if c.counts == nil {
		c.counts = c.closed
	}
	if c.Rounds = len(c.counts); c.Rounds == 0 {
		return c
	}
	labels := s.labels(target)
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
	if c.Rounds < len(c.closed) {
		c.Sum.Reasons = []string{"of the rounds that could be read whole"}
	}
	j.calibrate(&c, labels)
	bySum := slices.SortedStableFunc(slices.Values(c.counts), func(a, b *closedPhase) int { return cmp.Compare(a.ledger.Sum, b.ledger.Sum) })
	middle := bySum[(c.Rounds-1)/2]
	c.Ledger, c.Series = middle.ledger, overTime(middle.phase, labels)
	return c
}

// rowOf returns the row of a role, or an empty row.
func rowOf(l *ledger.Ledger, role record.Role) ledger.Row {
	if r := ledger.Find(l.Rows, func(r *ledger.Row) bool { return r.Role == role }); r != nil {
		return *r
	}
	return ledger.Row{Role: role}
}

// guestRole returns the host role that holds the guest's memory: the VMM, or the shim
// if it contains the VMM. It returns "" if the workload runs on the host's kernel.
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

// loadRoles returns the roles that a load inside the sandboxes affects. It excludes
// processes that start the load from outside: the runtime's exec, its monitor, and the
// shim unless it contains the VMM.
func loadRoles(l *ledger.Ledger) []record.Role {
	roles := []record.Role{record.RoleWorkload, record.RolePause, record.RoleVMM, record.RoleVCPU, record.RoleVirtiofs, record.RoleSentry, record.RoleGofer}
	if guestRole(l) == record.RoleShim {
		roles = append(roles, record.RoleShim)
	}
	return roles
}

// loadCPU returns the roles that a load's CPU time belongs to: the workload's processes
// or the vCPU threads. gVisor on KVM has no processes for the workload and runs it in
// the sentry.
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

// calibrate compares measured with requested load, as medians over the rounds. Both are
// unknown without an idle phase in the same visit.
func (j *judging) calibrate(c *Cell, labels figure.Labels) {
	var expected, measured, spun []float64
	above, asked := stat.Rounds{}, stat.Rounds{}
	for _, p := range c.counts {
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

// answersPerSecond returns the rate that the clients report. Older records lack it. For
// them the rate is computed from a time that includes setup and teardown of the clients,
// so it is too low.
func answersPerSecond(w *record.Work) float64 {
	if took := w.Ended - w.Begun; w.QPS == 0 && took > 0 {
		return float64(w.Answers) / (float64(took) / 1e9)
	}
	return w.QPS
}

// used returns the requested usage of a load. If the load itself reports clearly less,
// used returns that value and sets short: other processes took the load's CPUs.
func (c *Cell) used() (amount float64, short bool) {
	if c.Spun > 0 && c.Spun < c.Expected*(1-spinShare) {
		return c.Spun, true
	}
	return c.Expected, false
}

// idleBefore returns the idle phase of the same visit with the same number of sandboxes.
func (j *judging) idleBefore(p *closedPhase) *closedPhase {
	for _, q := range j.phases {
		if q.visit == p.visit && q.phase.Sandboxes == p.phase.Sandboxes && q.failure == nil && kindOf(q.phase.Name) == PhaseIdle {
			return q
		}
	}
	return nil
}

// sampled lists the series in display order. Values are divided by "by"; rates are per
// "by" ns.
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

// overTime returns the series of a phase over the time since its begin. A rate is the
// mean since the previous sample. Missing samples and counters that decreased leave gaps.
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
			v, from := float64(values[i])/k.by, last
			if last = i; k.rate {
				if from < 0 || values[i] < values[from] || s.Times[i] <= s.Times[from] {
					continue
				}
				v = float64(values[i]-values[from]) / (float64(s.Times[i]-s.Times[from]) / k.by)
			}
			of.Times, of.Values = append(of.Times, float64(s.Times[i]-zero)/1e9), append(of.Values, v)
		}
		if len(of.Values) > 0 {
			f := Quantities.New("over-time", figure.Estimate{}, labels.With("series", k.name))
			f.Unit, f.Series = k.unit, of
			out = append(out, f)
		}
	}
	return out
}
