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
func (j *Judgement) cell(t *Table, target string) Cell {
	c := Cell{Step: t.Step, Target: target}
	for _, p := range j.phases {
		switch {
		case p.Visit.Target != target || stepOf(p) != t.Step:
		case p.Failure != nil:
			c.Failed, c.Failure = c.Failed+1, cmp.Or(c.Failure, p.Failure)
		default:
			c.closed = append(c.closed, p)
			if p.Ledger.Complete {
				c.counts = append(c.counts, p)
			}
		}
	}
	if c.counts == nil {
		c.counts = c.closed
	}
	l := listed{labels: c.labels(target), runID: j.Record.Header.RunID}
	if c.Rounds = len(c.counts); c.Rounds == 0 {
		f := l.add("memory", 0)
		f.Estimate, f.Failed, f.Total = figure.Estimate{}, c.Failed, c.Failed
		c.All = l.all
		return c
	}
	bySum := slices.SortedStableFunc(slices.Values(c.counts), func(a, b *ledger.Phase) int { return cmp.Compare(a.Ledger.Sum, b.Ledger.Sum) })
	middle := bySum[(c.Rounds-1)/2]
	c.Ledger, c.Series = middle.Ledger, overTime(middle, l.labels)
	l.sums(&c, t.Command)
	books := len(l.all)
	l.books(&c.Ledger)
	l.everyRound(l.all[books:], &c)
	j.calibrate(&c, &l)
	c.All = append(l.all, c.Series...)
	return c
}

// sums appends memory, residual and CPU over the rounds, of all roles except others.
func (l *listed) sums(c *Cell, command string) {
	memory := Quantities.Over("memory", l.labels, byRound(c, bytesOf(func(l *ledger.Ledger) int64 { return l.Sum })))
	memory.Failed, memory.Total, memory.Verdict = c.Failed, c.Failed+len(c.closed), "read whole"
	if !c.Ledger.Complete {
		memory.Verdict = "not read whole, and too small"
	}
	if c.Rounds < len(c.closed) {
		memory.Reasons = []string{"of the rounds that could be read whole"}
	}
	if command != "" {
		memory.Reasons = append(memory.Reasons, "inside: "+command)
	}
	residual := Quantities.Over("residual", l.labels, byRound(c, bytesOf(func(l *ledger.Ledger) int64 { return l.Residual })))
	least := false
	cpu := Quantities.Over("cpu", l.labels, byRound(c, func(l *ledger.Ledger) (float64, bool) {
		cpus, some := l.CPU()
		least = least || some
		return cpus, true
	}))
	if least {
		cpu.Reasons = []string{"at least: the CPU time of some role is not known"}
	}
	l.all = append(l.all, memory, residual, cpu)
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

// loadUse returns what a load inside the sandboxes affects. Its memory may be in any process
// of a sandbox, except those that start the load from outside: the runtime's exec, its monitor,
// and the shim unless it contains the VMM. Its CPU time is that of the workload's processes, or
// of the vCPU threads. gVisor on KVM has no processes for the workload and runs it in the sentry.
func loadUse(l *ledger.Ledger) (memory, cpu float64, known bool) {
	roles := []record.Role{record.RoleWorkload, record.RolePause, record.RoleVMM, record.RoleVCPU, record.RoleVirtiofs, record.RoleSentry, record.RoleGofer}
	clock, guest := record.RoleWorkload, guestRole(l)
	switch {
	case guest != "" && rowOf(l, record.RoleVCPU).CPUKnown:
		clock = record.RoleVCPU
	case guest != "":
		clock = guest
	case rowOf(l, record.RoleWorkload).Processes == 0:
		clock = record.RoleSentry
	}
	if guest == record.RoleShim {
		roles = append(roles, guest)
	}
	for _, role := range roles {
		m := rowOf(l, role).Memory
		memory += float64(m.Anon + m.Shmem + m.Huge)
	}
	r := rowOf(l, clock)
	return memory, r.CPU, r.CPUKnown || r.Processes == 0
}

// calibrate appends measured and requested load, as medians over the rounds. Both are
// unknown without an idle phase in the same visit.
func (j *Judgement) calibrate(c *Cell, l *listed) {
	var expected, measured, spun []float64
	above, asked := stat.Rounds{}, stat.Rounds{}
	for _, p := range c.counts {
		w, n := p.End.Work, float64(p.Sandboxes)
		idle := j.idleBefore(p)
		if w == nil || n == 0 || idle == nil {
			continue
		}
		memory, cpu, known := loadUse(&p.Ledger)
		memoryBefore, cpuBefore, knownBefore := loadUse(&idle.Ledger)
		memory, cpu = (memory-memoryBefore)/n, (cpu-cpuBefore)/n
		switch {
		case kindOf(p.Name) == PhaseLoad:
			above[p.Visit.Round] = memory
			if qps := answersPerSecond(w); qps > 0 {
				asked[p.Visit.Round] = qps
			}
			c.Errors += w.Errors
		case w.Hold > 0:
			expected, measured = append(expected, float64(w.Hold)), append(measured, memory)
		case w.Spin > 0 && known && knownBefore:
			expected, measured = append(expected, w.Spin), append(measured, cpu)
			if w.Spun > 0 {
				spun = append(spun, w.Spun)
			}
		}
	}
	for _, of := range []named[[]float64]{{"expected", expected}, {"measured", measured}, {"reported", spun}} {
		if of.n == nil {
			continue
		}
		if f := l.add("load", figure.MedianOf(of.n).Value, "of", of.name); kindOf(c.Phase) == PhaseSpin {
			f.Unit = figure.CPUs
		}
	}
	for _, of := range []named[stat.Rounds]{{"memory-above-idle", above}, {"requests", asked}} {
		if f := Quantities.Over(of.name, l.labels, of.n); f.Known() {
			l.all = append(l.all, f)
		}
	}
}

// load returns an amount of a calibrating load in bytes or CPUs, or 0 if there is none.
func (c *Cell) load(of string) float64 { return c.All.Of("load", "of", of).Value }

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
	expected, reported := c.load("expected"), c.load("reported")
	if reported > 0 && reported < expected*(1-spinShare) {
		return reported, true
	}
	return expected, false
}

// idleBefore returns the idle phase of the same visit with the same number of sandboxes.
func (j *Judgement) idleBefore(p *ledger.Phase) *ledger.Phase {
	for _, q := range j.phases {
		if q.Visit == p.Visit && q.Sandboxes == p.Sandboxes && q.Failure == nil && kindOf(q.Name) == PhaseIdle {
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
