package bpf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// rows are the points that had a load, over the rounds.
func (j *judging) rows() {
	for _, asked := range j.asked {
		all := j.measured[asked]
		if slices.ContainsFunc(all, func(m *measured) bool { return m.load != nil || m.failure() != nil }) {
			j.b.Rows = append(j.b.Rows, j.row(asked, all))
		}
	}
}

func (j *judging) row(asked record.Asked, all []*measured) Row {
	row, f := Row{Asked: asked}, newValues()
	row.Asked.Statistics = true
	for _, m := range all {
		if failure := m.failure(); failure != nil {
			row.Failed++
			if row.Failure == nil {
				row.Failure = failure
			}
			continue
		}
		p := m.loaded()
		switch {
		case p == nil:
		case m.statistics:
			row.Rounds++
			row.Asked.URL, row.Asked.Seconds = cmp.Or(row.Asked.URL, p.Asked.URL), max(row.Asked.Seconds, p.Asked.Seconds)
			if p.Sent != nil {
				row.addSent(p.Sent)
			}
			f.add(m, j.b.CPUs)
		case p.Sent != nil && !countedFor(p) && !j.alwaysOn(): // else it had statistics, too
			f.without[m.round] = p.Sent.QPS
		}
	}
	f.sum(&row, j.b.CPUs)
	return row
}

// alwaysOn tells whether somebody else had statistics on all the time.
func (j *judging) alwaysOn() bool {
	return slices.ContainsFunc(j.rec.Findings, func(f record.Finding) bool { return f.Code == finding.StatisticsOn })
}

// values are the values of a row, round by round.
type values struct {
	qps, without                     stat.Rounds
	p50, p90, p99, p999              stat.Rounds
	client, server, node, bpf, perRq stat.Rounds
	programs                         map[string]*programValues
	order                            []string          // of the programs, by their first appearance
	called                           map[uint32]string // what a program of that id is called in programs
}

type programValues struct {
	row                      ProgramRow
	rate, each, core, perReq stat.Rounds
}

func newValues() *values {
	f := &values{programs: map[string]*programValues{}, called: map[uint32]string{}}
	for _, r := range []*stat.Rounds{&f.qps, &f.without, &f.p50, &f.p90, &f.p99, &f.p999, &f.client, &f.server, &f.node, &f.bpf, &f.perRq} {
		*r = stat.Rounds{}
	}
	return f
}

// add takes a point with figures. CPU times become shares of one core: time over
// the time of the phase.
func (f *values) add(m *measured, cpus int) {
	p := m.load
	took := float64(p.Ended - p.Begun)
	share := func(to stat.Rounds, ns int64, of float64) {
		if ns >= 0 && of > 0 {
			to[m.round] = float64(ns) / of
		}
	}
	share(f.client, p.ClientCPU, took)
	share(f.server, p.ServerCPU, took)
	if share(f.node, p.NodeCPU, took*float64(cpus)); f.node[m.round] > 1 {
		f.node[m.round] = 1 // the kernel counts it in ticks of 10 ms, of each CPU
	}
	requests := 0.0
	if s := p.Sent; s != nil {
		f.qps[m.round] = s.QPS
		requests = float64(s.Requests)
		if s.Requests > 0 {
			f.p50[m.round], f.p90[m.round], f.p99[m.round], f.p999[m.round] = float64(s.P50), float64(s.P90), float64(s.P99), float64(s.P999)
		}
	}
	if core, known := m.bpfCore(); known {
		f.bpf[m.round] = core
		if requests > 0 {
			f.perRq[m.round] = core * took / requests
		}
	}
	f.addPrograms(m, took, requests)
}

// bpfCore is what the programs took during the load less what they took per second
// while idle, as a share of one core. Less than nothing is noise of next to nothing.
func (m *measured) bpfCore() (core float64, known bool) {
	if len(m.load.Runs) == 0 {
		return 0, false
	}
	return max(bpfShare(m.load)-bpfShare(m.idle), 0), true
}

// bpfShare is what the programs took in a phase, of one core.
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

func (f *values) addPrograms(m *measured, took, requests float64) {
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
		p.rate[m.round], p.core[m.round] = count/took*1e9, time/took
		if r.Count > 0 {
			p.each[m.round] = float64(r.Time) / float64(r.Count)
		}
		if requests > 0 {
			p.perReq[m.round] = count / requests
		}
		p.row.Misses += min(r.Misses, math.MaxInt64-p.row.Misses)
	}
}

// program finds a program again in another round: by its id, or, of a data path
// that is loaded anew at each point, by its name, the first of that name for the
// first.
func (f *values) program(r *record.ProgramRun, here map[string]bool) *programValues {
	key, known := f.called[r.ID]
	for n := 0; !known || here[key]; n++ {
		key, known = fmt.Sprintf("%d %s", n, r.Name), true
	}
	here[key], f.called[r.ID] = true, key
	p := f.programs[key]
	if p == nil {
		p = &programValues{row: ProgramRow{ID: r.ID, Name: r.Name}, rate: stat.Rounds{}, each: stat.Rounds{}, core: stat.Rounds{}, perReq: stat.Rounds{}}
		f.programs[key] = p
		f.order = append(f.order, key)
	}
	return p
}

// sum makes the row's figures of those of the rounds, the heaviest program first.
func (f *values) sum(row *Row, cpus int) {
	point := labelsOf(&row.Asked)
	of := func(quantity string, unit figure.Unit, better figure.Direction, values stat.Rounds, more ...string) figure.Figure {
		return about(quantity, unit, better, append(slices.Clone(point), figure.Of(more...)...), values)
	}
	latency := func(quantile string, values stat.Rounds) figure.Figure {
		return of("latency", figure.Nanoseconds, figure.Less, values, "quantile", quantile)
	}
	row.QPS = of("requests", figure.PerSecond, figure.More, f.qps)
	row.QPS.Failed, row.QPS.Total = row.Failed, row.Rounds+row.Failed
	row.P50, row.P90, row.P99, row.P999 = latency("p50", f.p50), latency("p90", f.p90), latency("p99", f.p99), latency("p99.9", f.p999)
	row.ClientCore = of("cpu", figure.CPUs, figure.Less, f.client, "role", "client")
	row.ServerCore = of("cpu", figure.CPUs, figure.Less, f.server, "role", "server")
	row.NodeBusy = of("node-busy", figure.Ratio, figure.Less, f.node)
	row.BPFCore = of("cpu", figure.CPUs, figure.Less, f.bpf, "role", "bpf")
	row.PerRequest = of("bpf-time-per-request", figure.Nanoseconds, figure.Less, f.perRq)
	row.BPFNode = *ofNode(&row.BPFCore, cpus)
	for _, key := range f.order {
		p := f.programs[key]
		name := []string{"program", p.row.Name, "id", strconv.FormatUint(uint64(p.row.ID), 10)}
		p.row.Rate = of("program-runs", figure.PerSecond, "", p.rate, name...)
		p.row.Each = of("program-run-time", figure.Nanoseconds, figure.Less, p.each, name...)
		p.row.Core = of("program-cpu", figure.CPUs, figure.Less, p.core, name...)
		p.row.PerRequest = of("program-runs-per-request", figure.Ratio, figure.Less, p.perReq, name...)
		row.Programs = append(row.Programs, p.row)
	}
	slices.SortStableFunc(row.Programs, func(a, b ProgramRow) int { return cmp.Compare(b.Core.Value, a.Core.Value) })
	row.Price = of("requests-with-statistics-ratio", figure.Ratio, figure.More, nil)
	without, with := paired(f.without, f.qps)
	if row.PriceRounds = len(with); row.PriceRounds > 0 {
		c := stat.Compare(without, with)
		row.Price.Estimate, row.Different, row.Why = figure.PairedRatio(c), c.Different, c.Why
		row.Price.Reasons = []string{c.Why}
	}
}

// paired are the rounds that both have.
func paired(a, b stat.Rounds) (ofA, ofB stat.Rounds) {
	ofA, ofB = stat.Rounds{}, stat.Rounds{}
	for round := range a {
		if v, both := b[round]; both {
			ofA[round], ofB[round] = a[round], v
		}
	}
	return ofA, ofB
}

// countedFor tells whether statistics were on for somebody else in a phase that was
// to be without.
func countedFor(p *record.Point) bool {
	return !p.Asked.Statistics && (len(p.Runs) > 0 || slices.ContainsFunc(p.Problems, othersStatistics))
}

// othersStatistics tells whether a problem is that somebody else had statistics on.
func othersStatistics(line string) bool { return strings.HasPrefix(line, "statistics were on") }

// labelsOf are those of a point: whatever a plan can vary.
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
	return figure.Of("connections", some(int64(a.Connections)), "heavy", some(a.Heavy), "services", some(int64(a.Services)), "limit", limit)
}

func about(quantity string, unit figure.Unit, better figure.Direction, labels figure.Labels, values stat.Rounds) figure.Figure {
	return figure.Figure{Experiment: Name, Quantity: quantity, Unit: unit, Better: better, Labels: labels, Rounds: figure.ByRound(values), Estimate: figure.Median(values)}
}
