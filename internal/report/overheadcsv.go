package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/judge"
)

// overheadColumns never change their order; new ones come last. One row is one
// figure, so that the table can be loaded and turned anywhere. The statistic
// is "median round" for a figure of the round whose sum is the median, whose
// rows add up; "median", "lo" and "hi" for one over the rounds; "slope", "lo"
// and "hi" for one of a fitted line; "rule" for a recommendation; "told" and
// "worst". A figure that does not exist has no row.
var overheadColumns = []string{"target", "phase", "sandboxes", "statistic", "kind", "name", "quantity", "unit", "value", "t_s"}

func writeOverheadCSV(w io.Writer, v *judge.Overhead) error {
	t := csvTable{out: csv.NewWriter(w)}
	t.add(overheadColumns...)
	for i := range v.Tables {
		for j := range v.Tables[i].Cells {
			t.cell(&v.Tables[i], &v.Tables[i].Cells[j])
		}
	}
	for i := range v.Scaling {
		t.scaling(&v.Scaling[i])
	}
	for i := range v.Classes {
		c := &v.Classes[i]
		t.at = csvPlace{target: c.Target}
		t.bytes("rule", "runtime_class", c.Handler, "memory", c.Memory)
		t.row("rule", "runtime_class", c.Handler, "cpu", "cpus", fixed(float64(c.CPU)/1000, 3))
	}
	for i := range v.Check {
		t.check(&v.Check[i])
	}
	t.out.Flush()
	if t.err != nil {
		return t.err
	}
	return t.out.Error()
}

// csvTable writes rows about one place at a time, and keeps the first error.
type csvTable struct {
	out *csv.Writer
	at  csvPlace
	err error
}

type csvPlace struct {
	target, phase string
	sandboxes     int
}

func (t *csvTable) add(fields ...string) {
	if err := t.out.Write(fields); err != nil && t.err == nil {
		t.err = err
	}
}

func (t *csvTable) row(statistic, kind, name, quantity, unit, value string) {
	t.point(statistic, kind, name, quantity, unit, value, "")
}

func (t *csvTable) point(statistic, kind, name, quantity, unit, value, seconds string) {
	if value == "" {
		return
	}
	sandboxes := ""
	if t.at.sandboxes > 0 {
		sandboxes = strconv.Itoa(t.at.sandboxes)
	}
	t.add(harmless(t.at.target), harmless(t.at.phase), sandboxes, statistic, kind, harmless(name), quantity, unit, value, seconds)
}

func (t *csvTable) bytes(statistic, kind, name, quantity string, value int64) {
	t.row(statistic, kind, name, quantity, "bytes", strconv.FormatInt(value, 10))
}

func (t *csvTable) cpus(kind, name, quantity string, value float64) {
	t.row(medianRound, kind, name, quantity, "cpus", fixed(value, 6))
}

func (t *csvTable) count(kind, name, quantity string, value int) {
	t.row(medianRound, kind, name, quantity, "1", strconv.Itoa(value))
}

const medianRound = "median round"

func (t *csvTable) cell(table *judge.OverheadTable, c *judge.OverheadCell) {
	t.at = csvPlace{c.Target, table.Phase, table.Sandboxes}
	t.row("all rounds", "rounds", "", "rounds", "1", strconv.Itoa(c.Rounds))
	t.row("all rounds", "rounds", "", "failed", "1", strconv.Itoa(c.Failed))
	if c.Rounds == 0 {
		return
	}
	t.interval("sum", "bytes", 0, &c.Sum)
	t.interval("residual", "bytes", 0, &c.Residual)
	t.interval("cpu", "cpus", 6, &c.CPU)
	l := &c.Ledger
	for i := range l.Rows {
		r := &l.Rows[i]
		name := string(r.Role)
		t.count("role", name, "processes", r.Processes)
		t.bytes(medianRound, "role", name, "memory", r.Memory.Sum())
		t.kinds("role", name, &r.Memory)
		if r.CPUKnown {
			t.cpus("role", name, "cpu", r.CPU)
		}
	}
	for i := range l.Groups {
		g := &l.Groups[i]
		name := string(g.Charge)
		t.count("group", name, "groups", g.Count)
		t.bytes(medianRound, "group", name, "usage", g.Usage)
		t.kinds("group", name, &g.Memory)
		t.bytes(medianRound, "group", name, "peak", g.Peak)
		if g.Limit > 0 {
			t.bytes(medianRound, "group", name, "limit", g.Limit)
		}
		t.cpus("group", name, "cpu", g.CPU)
	}
	for i := range l.Engine {
		e := &l.Engine[i]
		if e.Reported >= 0 {
			t.bytes(medianRound, "engine", e.Source, "memory", e.Reported)
		}
		t.bytes(medianRound, "engine", e.Source, "memory_truth", e.Truth)
		if e.CPU >= 0 {
			t.cpus("engine", e.Source, "cpu", e.CPU)
		}
		t.cpus("engine", e.Source, "cpu_truth", e.CPUTruth)
	}
	t.node(l)
	if c.Told > 0 {
		unit, decimals := "bytes", 0
		if isSpin(table.Phase) {
			unit, decimals = "cpus", 6
		}
		t.row("told", "calibration", "", "per_sandbox", unit, fixed(c.Told, decimals))
		t.row("found", "calibration", "", "per_sandbox", unit, fixed(c.Found, decimals))
	}
	for i := range c.Trace {
		trace := &c.Trace[i]
		t.count("series", trace.Name, "missed", trace.Missed)
		for j, v := range trace.Values {
			if j < len(trace.Times) {
				t.point(medianRound, "series", trace.Name, "value", harmless(trace.Unit), fixed(v, 6), fixed(trace.Times[j], 3))
			}
		}
	}
}

func (t *csvTable) interval(name, unit string, decimals int, i *judge.Interval) {
	if i.N == 0 {
		return
	}
	t.row("median", "rounds", name, name, unit, fixed(i.Median, decimals))
	if i.Known {
		t.row("lo", "rounds", name, name, unit, fixed(i.Lo, decimals))
		t.row("hi", "rounds", name, name, unit, fixed(i.Hi, decimals))
	}
}

func (t *csvTable) kinds(kind, name string, m *ledger.Memory) {
	t.bytes(medianRound, kind, name, "anon", m.Anon)
	t.bytes(medianRound, kind, name, "shmem", m.Shmem)
	t.bytes(medianRound, kind, name, "kernel", m.Kernel)
	t.bytes(medianRound, kind, name, "huge", m.Huge)
	t.bytes(medianRound, kind, name, "swap", m.Swap)
	t.bytes(medianRound, kind, name, "cache", m.Cache)
}

func (t *csvTable) node(l *ledger.Ledger) {
	for _, f := range []struct {
		quantity string
		bytes    int64
	}{
		{"sum", l.Sum}, {"node", l.Node}, {"others", l.Others}, {"residual", l.Residual}, {"uncertainty", l.Uncertainty},
		{"cache", l.Cache.Node}, {"cache_charged", l.Cache.Charged}, {"cache_mapped", l.Cache.Mapped},
		{"available", l.Available}, {"available_change", l.AvailableChange},
	} {
		t.bytes(medianRound, "node", "", f.quantity, f.bytes)
	}
	t.cpus("node", "", "cpu", l.NodeCPU)
	t.row(medianRound, "node", "", "read", "bytes/s", fixed(l.NodeIO.Read, 0))
	t.row(medianRound, "node", "", "write", "bytes/s", fixed(l.NodeIO.Write, 0))
	t.row(medianRound, "node", "", "load1", "1", fixed(l.Load1, 3))
	if l.PSI.Known {
		t.row(medianRound, "node", "", "psi_cpu", "share", fixed(l.PSI.CPU, 6))
		t.row(medianRound, "node", "", "psi_memory", "share", fixed(l.PSI.Memory, 6))
		t.row(medianRound, "node", "", "psi_io", "share", fixed(l.PSI.IO, 6))
	}
	complete := 0
	if l.Complete {
		complete = 1
	}
	t.count("node", "", "complete", complete)
}

func (t *csvTable) scaling(s *judge.Scaling) {
	t.at = csvPlace{target: s.Target, phase: "idle"}
	for _, f := range []struct {
		name, unit string
		decimals   int
		slope      *judge.Slope
	}{
		{"memory", "bytes", 0, &s.Memory}, {"cache", "bytes", 0, &s.Cache},
		{"daemon_memory", "bytes", 0, &s.DaemonMemory}, {"daemon_cpu", "cpus", 6, &s.DaemonCPU},
		{"uncharged", "bytes", 0, &s.Uncharged}, {"total", "bytes", 0, &s.Total},
	} {
		t.row("slope", "scaling", f.name, "per_sandbox", f.unit, fixed(f.slope.Value, f.decimals))
		if f.slope.Known {
			t.row("lo", "scaling", f.name, "per_sandbox", f.unit, fixed(f.slope.Lo, f.decimals))
			t.row("hi", "scaling", f.name, "per_sandbox", f.unit, fixed(f.slope.Hi, f.decimals))
		}
		t.row("slope", "scaling", f.name, "fixed", f.unit, fixed(f.slope.Fixed, f.decimals))
	}
	if s.FitKnown {
		t.row("slope", "scaling", "fit", "sandboxes", "1", strconv.Itoa(s.Fit))
		if s.Memory.Known {
			t.row("lo", "scaling", "fit", "sandboxes", "1", strconv.Itoa(s.FitLo))
			t.row("hi", "scaling", "fit", "sandboxes", "1", strconv.Itoa(s.FitHi))
		}
	}
}

func (t *csvTable) check(c *judge.Check) {
	t.at = csvPlace{target: c.Target}
	t.bytes("told", "check", "", "memory", c.Memory)
	t.row("told", "check", "", "cpu", "cpus", fixed(float64(c.CPU)/1000, 3))
	for i := range c.Phases {
		p := &c.Phases[i]
		if !p.Measured {
			continue
		}
		t.at.phase, t.at.sandboxes = p.Phase, p.Sandboxes
		t.bytes("worst", "check", "", "memory", p.Memory)
		t.row("worst", "check", "", "cpu", "cpus", fixed(p.CPU/1000, 6))
	}
}
