package bpf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// rows sets the points that have a load, over all rounds.
func (j *judging) rows() {
	for _, asked := range j.asked {
		all := j.measured[asked]
		if slices.ContainsFunc(all, func(m *measured) bool { return m.load != nil || m.failure() != nil }) {
			j.b.Rows = append(j.b.Rows, j.row(asked, all))
		}
	}
	var prices []figure.Quotient
	for i := range j.b.Rows {
		q := j.b.Rows[i].price
		q.Figure = j.b.Rows[i].All.Of("requests-with-statistics-ratio")
		prices = append(prices, q)
	}
	figure.Comparing{}.Ratios("without statistics", prices)
}

func (j *judging) row(asked record.Asked, all []*measured) Row {
	row := Row{Asked: asked, Failures: map[string]int64{}}
	row.Asked.Statistics = true
	var loaded []*measured                        // with figures and statistics
	with, without := stat.Rounds{}, stat.Rounds{} // QPS with and without statistics
	for _, m := range all {
		if failure := m.failure(); failure != nil {
			row.Failed++
			row.Failure = cmp.Or(row.Failure, failure)
			continue
		}
		p := m.loaded()
		switch {
		case p == nil:
		case m.statistics:
			loaded = append(loaded, m)
			row.Asked.URL, row.Asked.Seconds = cmp.Or(row.Asked.URL, p.Asked.URL), max(row.Asked.Seconds, p.Asked.Seconds)
			if p.Sent != nil {
				row.addSent(p.Sent, len(with) == 0)
				with[m.round] = p.Sent.QPS
			}
		case p.Sent != nil && !countedFor(p): // otherwise another process had statistics on
			without[m.round] = p.Sent.QPS
		}
	}
	row.Rounds = len(loaded)
	point := labelsOf(&row.Asked)
	for _, c := range rowFigures {
		values := stat.Rounds{}
		for _, m := range loaded {
			if v := c.value(m, m.took(), j.b.CPUs); stat.Finite(v) {
				values[m.round] = v
			}
		}
		f := Quantities.Over(c.quantity, slices.Concat(point, figure.Of(c.labels...)), values)
		if row.All = append(row.All, f); c.quantity == "cpu" && c.labels[1] != "server" {
			row.All = append(row.All, *ofNode(&f, j.b.CPUs))
		}
	}
	row.All[0].Failed, row.All[0].Total = row.Failed, row.Rounds+row.Failed // requests
	programs := programValues{called: map[uint32]string{}}
	for _, m := range loaded {
		programs.add(m)
	}
	row.Programs = programs.rows(point)
	row.All = append(row.All, Quantities.Over("requests-with-statistics-ratio", point, nil))
	without, with = paired(without, with)
	row.PriceRounds, row.price = len(with), figure.Quotient{Base: without, Values: with}
	return row
}

// rowFigures are the figures of a row, with their value for one point. CPU times are
// shares of one core over the duration of the phase; NaN is unknown.
var rowFigures = []struct {
	quantity string
	labels   []string // name and value
	value    func(m *measured, took float64, cpus int) float64
}{
	{"requests", nil, func(m *measured, _ float64, _ int) float64 {
		if m.load.Sent == nil {
			return math.NaN()
		}
		return m.load.Sent.QPS
	}},
	{"latency", []string{"quantile", "p50"}, latency(func(s *record.Sent) int64 { return s.P50 })},
	{"latency", []string{"quantile", "p90"}, latency(func(s *record.Sent) int64 { return s.P90 })},
	{"latency", []string{"quantile", "p99"}, latency(func(s *record.Sent) int64 { return s.P99 })},
	{"latency", []string{"quantile", "p99.9"}, latency(func(s *record.Sent) int64 { return s.P999 })},
	{"cpu", []string{"role", "client"},
		func(m *measured, took float64, _ int) float64 { return part(m.load.ClientCPU, took) }},
	{"cpu", []string{"role", "server"},
		func(m *measured, took float64, _ int) float64 { return part(m.load.ServerCPU, took) }},
	{"node-busy", nil, func(m *measured, took float64, cpus int) float64 {
		return min(part(m.load.NodeCPU, took*float64(cpus)), 1) // the kernel counts ticks of 10 ms per CPU
	}},
	{"limit-usage", nil, func(m *measured, took float64, _ int) float64 {
		if g := m.load.Group; g != nil && g.Limit > 0 {
			return part(g.Usage, took*g.Limit)
		}
		return math.NaN()
	}},
	{"limit-throttled", nil, func(m *measured, _ float64, _ int) float64 {
		if g := m.load.Group; g != nil && g.Periods > 0 {
			return float64(g.Throttled) / float64(g.Periods)
		}
		return math.NaN()
	}},
	{"cpu", []string{"role", "bpf"},
		func(m *measured, _ float64, _ int) float64 { return m.bpfCore() }},
	{"bpf-time-per-request", nil,
		func(m *measured, took float64, _ int) float64 { return m.bpfCore() * took / m.requests() }},
}

func latency(of func(*record.Sent) int64) func(*measured, float64, int) float64 {
	return func(m *measured, _ float64, _ int) float64 {
		if m.requests() > 0 {
			return float64(of(m.load.Sent))
		}
		return math.NaN()
	}
}

// part returns ns as a fraction of another time.
func part(ns int64, of float64) float64 {
	if ns < 0 || of <= 0 {
		return math.NaN()
	}
	return float64(ns) / of
}

// requests returns the number of requests of the load.
func (m *measured) requests() float64 {
	if m.load.Sent == nil {
		return 0
	}
	return float64(m.load.Sent.Requests)
}

// took returns the duration of the load phase, ns.
func (m *measured) took() float64 { return float64(m.load.Ended - m.load.Begun) }

// bpfCore returns the programs' CPU time under load minus their CPU time while idle, as
// a share of one core. It is NaN if no program ran. A negative difference is noise and
// becomes 0.
func (m *measured) bpfCore() float64 {
	if !m.ran() {
		return math.NaN()
	}
	return max(bpfShare(m.load)-bpfShare(m.idle), 0)
}

// ran reports whether a program ran during the load.
func (m *measured) ran() bool {
	return slices.ContainsFunc(m.load.Runs, func(r record.ProgramRun) bool { return r.Count > 0 })
}

// bpfShare returns the programs' CPU time in a phase, as a share of one core.
func bpfShare(p *record.Point) float64 {
	if p == nil || p.Ended <= p.Begun {
		return 0
	}
	sum := 0.0
	for i := range p.Runs {
		sum += float64(p.Runs[i].Time)
	}
	return sum / float64(p.Ended-p.Begun)
}

// programValues collects the values of a row's programs by round.
type programValues struct {
	all    []*programRounds  // by first appearance
	called map[uint32]string // key in all, by program id
}

type programRounds struct {
	key                      string
	row                      ProgramRow
	rate, each, core, perReq stat.Rounds
}

// add adds a point with figures.
func (f *programValues) add(m *measured) {
	took, requests := m.took(), m.requests()
	runs := slices.Clone(m.load.Runs)
	slices.SortStableFunc(runs, func(a, b record.ProgramRun) int { return cmp.Compare(a.ID, b.ID) })
	here := map[string]bool{}
	for i := range runs {
		r := &runs[i]
		if i > 0 && r.ID == runs[i-1].ID {
			continue
		}
		p := f.program(r, here)
		count, time := float64(r.Count), float64(r.Time)
		if idle := m.idle; idle != nil && idle.Ended > idle.Begun {
			if k := slices.IndexFunc(idle.Runs, func(of record.ProgramRun) bool { return of.ID == r.ID }); k >= 0 {
				rest := float64(idle.Ended - idle.Begun)
				count, time = max(count-float64(idle.Runs[k].Count)*took/rest, 0), max(time-float64(idle.Runs[k].Time)*took/rest, 0)
			}
		}
		p.rate[m.round] = count / took * 1e9
		if m.ran() {
			p.core[m.round] = time / took
		}
		if r.Count > 0 {
			p.each[m.round] = float64(r.Time) / float64(r.Count)
		}
		if requests > 0 && m.ran() {
			p.perReq[m.round] = count / requests
		}
		p.row.Misses += min(r.Misses, math.MaxInt64-p.row.Misses)
	}
}

// program returns the entry of a program, also across rounds. It is found by id. If the
// data path was reloaded, it is found by name; equal names are matched in order.
func (f *programValues) program(r *record.ProgramRun, here map[string]bool) *programRounds {
	key, known := f.called[r.ID]
	for n := 0; !known || here[key]; n++ {
		key, known = fmt.Sprintf("%d %s", n, r.Name), true
	}
	here[key], f.called[r.ID] = true, key
	i := slices.IndexFunc(f.all, func(p *programRounds) bool { return p.key == key })
	if i < 0 {
		i, f.all = len(f.all), append(f.all, &programRounds{key: key, row: ProgramRow{ID: r.ID, Name: r.Name}, rate: stat.Rounds{}, each: stat.Rounds{}, core: stat.Rounds{}, perReq: stat.Rounds{}})
	}
	return f.all[i]
}

// rows returns the programs of a point with their figures, heaviest first.
func (f *programValues) rows(point figure.Labels) (all []ProgramRow) {
	for _, p := range f.all {
		labels := slices.Concat(point, figure.Of("program", p.row.Name, "id", strconv.FormatUint(uint64(p.row.ID), 10)))
		p.row.Rate = Quantities.Over("program-runs", labels, p.rate)
		p.row.Each = Quantities.Over("program-run-time", labels, p.each)
		p.row.Core = Quantities.Over("program-cpu", labels, p.core)
		p.row.PerRequest = Quantities.Over("program-runs-per-request", labels, p.perReq)
		all = append(all, p.row)
	}
	slices.SortStableFunc(all, func(a, b ProgramRow) int { return cmp.Compare(b.Core.Value, a.Core.Value) })
	return all
}

// paired returns the rounds present in both.
func paired(a, b stat.Rounds) (ofA, ofB stat.Rounds) {
	ofA, ofB = stat.Rounds{}, stat.Rounds{}
	for round := range a {
		if v, both := b[round]; both {
			ofA[round], ofB[round] = a[round], v
		}
	}
	return ofA, ofB
}

// countedFor reports whether another process enabled statistics during a phase without
// them.
func countedFor(p *record.Point) bool {
	return !p.Asked.Statistics && (len(p.Runs) > 0 || slices.ContainsFunc(p.Problems, othersStatistics))
}

// othersStatistics reports whether a problem says that another process enabled
// statistics.
func othersStatistics(line string) bool { return strings.HasPrefix(line, "statistics were on") }

// labelsOf returns the labels of a point: everything a plan can vary.
func labelsOf(a *record.Asked) figure.Labels {
	limit := ""
	if a.CPUs > 0 {
		limit = strconv.FormatFloat(a.CPUs, 'g', -1, 64)
	}
	some := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	return figure.Of("connections", some(int64(a.Connections)), "clients", some(int64(a.Instances)), "heavy", some(a.Heavy), "services", some(int64(a.Services)), "limit", limit)
}
