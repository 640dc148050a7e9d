package app

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

// quantiles are those of latencies, with where a client has them.
var quantiles = []struct {
	Name string
	of   func(*record.Sent) int64
}{
	{"p50", func(s *record.Sent) int64 { return s.P50 }},
	{"p90", func(s *record.Sent) int64 { return s.P90 }},
	{"p99", func(s *record.Sent) int64 { return s.P99 }},
	{"p99.9", func(s *record.Sent) int64 { return s.P999 }},
	{"max", func(s *record.Sent) int64 { return s.Max }},
}

// p99 is its place among Quantiles.
const p99 = 2

// host is the target without a runtime.
const host = "host"

// Judge judges a record of a service, finished or not.
func Judge(rec *record.Record) (*Judgement, error) {
	rec = finding.Once(rec)
	j := &Judgement{Record: rec, CPUs: rec.Header.Environment.CPUs}
	if err := instrument.ReadPlan(&rec.Header, Name, &j.Plan); err != nil {
		return nil, err
	}
	j.Baseline = instrument.Baseline(j.Plan.Baseline, rec.Targets)
	j.gather()
	for i := range j.Tables {
		for _, r := range j.Tables[i].Rows {
			r.sum(j.Plan.Limits.CPU)
		}
	}
	j.compare()
	j.Found = j.findings()
	return j, nil
}

// gather sorts the windows into tables, alone first and then as they were named.
func (j *Judgement) gather() {
	type place struct {
		round             int
		target, neighbour string
	}
	seen := map[place]bool{}
	for _, w := range record.All[Window](j.Record) {
		at := place{w.Round, w.Target, w.Neighbour}
		switch {
		case w.Failure != nil && w.Failure.Kind == record.FailInterrupted:
			continue // being told to stop is no fault of the target
		case seen[at]:
			j.Record.ProblemCount++
			j.Record.Problems = append(slices.Clip(j.Record.Problems), record.Problem{Reason: fmt.Sprintf("a window of %s in round %d is there twice", w.Target, w.Round+1)})
			continue
		}
		seen[at] = true
		j.Total++
		if !j.row(w.Target, w.Neighbour).take(w) {
			j.Failed++
		}
	}
	planned := func(t *Table) int { // what the plan does not name comes last
		if i := slices.Index(slices.Concat([]string{""}, j.Plan.Neighbours), t.Neighbour); i >= 0 {
			return i
		}
		return 1 + len(j.Plan.Neighbours)
	}
	slices.SortStableFunc(j.Tables, func(a, b Table) int { return planned(&a) - planned(&b) })
	rank := func(r *Row) int {
		return slices.IndexFunc(j.Record.Targets, func(t record.Target) bool { return t.Name == r.Target })
	}
	for i := range j.Tables {
		slices.SortStableFunc(j.Tables[i].Rows, func(a, b *Row) int { return rank(a) - rank(b) })
	}
}

// row is that of a target in a table, a new one where there is none yet.
func (j *Judgement) row(target, neighbour string) *Row {
	i := slices.IndexFunc(j.Tables, func(t Table) bool { return t.Neighbour == neighbour })
	if i < 0 {
		i = len(j.Tables)
		j.Tables = append(j.Tables, Table{Neighbour: neighbour})
	}
	t := &j.Tables[i]
	if r := t.of(target); r != nil {
		return r
	}
	t.Rows = append(t.Rows, &Row{Target: target, Neighbour: neighbour, Causes: map[string]int64{}})
	return t.Rows[len(t.Rows)-1]
}

// of is a target's row, nil where there is none.
func (t *Table) of(target string) *Row {
	if i := slices.IndexFunc(t.Rows, func(r *Row) bool { return r.Target == target }); i >= 0 {
		return t.Rows[i]
	}
	return nil
}

// take adds a window, false where it has no figures or some request failed.
func (r *Row) take(w *Window) bool {
	if r.URL == "" {
		r.URL = w.URL
	}
	if w.Failure != nil || w.Sent == nil || w.Seen == nil {
		r.Failed++
		if r.Failure == nil {
			r.Failure = w.Failure
		}
		return false
	}
	r.windows = append(r.windows, w)
	return w.Sent.Errors == 0
}

// sum makes the row's figures from its windows; limit is that of the workload, in CPUs.
func (r *Row) sum(limit float64) {
	slices.SortStableFunc(r.windows, func(a, b *Window) int { return a.Round - b.Round })
	r.Rounds = len(r.windows)
	for i, w := range r.windows {
		s, seen := w.Sent, w.Seen
		r.Requests, r.Errors, r.Unsent = r.Requests+s.Requests, r.Errors+s.Errors, r.Unsent+s.Unsent
		for why, n := range s.Failures {
			r.Causes[why] += n
		}
		if answers := w.answers(); i == 0 || answers < r.Fewest {
			r.Fewest = answers
		}
		r.Client = s.Client
		if w.Ready > 0 && w.Neighbour == "" {
			r.Asked++
			if w.Unready > 0 {
				r.Resolution = max(r.Resolution, float64(w.Ready-w.Unready))
			} else {
				r.AtMost++
			}
		}
		if w.CPUPartly {
			r.Partly++
		}
		if w.Neighbour != "" && w.BesideCPU == nil {
			r.PartlyBeside++
		}
		if took := float64(seen.Took); took > 0 {
			r.clientShare = max(r.clientShare, float64(w.ClientCPU)/took)
			r.held = max(r.held, float64(seen.Throttled)/took)
			if limit > 0 {
				r.limitShare = max(r.limitShare, float64(inside(seen.CPU))/took/limit)
			}
		}
	}
	r.figures()
}

// answers are the requests that had one.
func (w *Window) answers() int64 { return max(w.Sent.Requests-w.Sent.Errors, 0) }

// inside is the CPU time of the roles that a limit of the workload holds, ns.
func inside(all []record.RoleTime) (ns int64) {
	for _, t := range all {
		switch t.Role {
		case record.RoleWorkload, record.RoleSentry, record.RoleVCPU:
			ns += t.NS
		}
	}
	return ns
}

// compare compares targets within each table, and each with itself alone and on the
// host.
func (j *Judgement) compare() {
	var alone, onHost []figure.Quotient
	for i := range j.Tables {
		t := &j.Tables[i]
		for _, r := range t.Rows {
			if base := j.Tables[0].of(r.Target); r.Neighbour != "" && base != nil && j.Tables[0].Neighbour == "" {
				r.P99OfAlone = r.about("latency-times", figure.Ratio, figure.Less, nil, "quantile", quantiles[p99].Name, "to", "alone")
				alone = within(alone, figure.Quotient{Figure: &r.P99OfAlone, Base: base.Latency[p99].Values(), Values: r.Latency[p99].Values()})
				r.Kept = r.about("throughput-kept", figure.Ratio, figure.More, quotients(r.Throughput.Values(), base.Throughput.Values()))
			}
			if base := t.of(host); base != nil && r != base {
				r.OfHost = r.about("throughput-times", figure.Ratio, figure.More, nil, "to", host)
				onHost = within(onHost, figure.Quotient{Figure: &r.OfHost, Base: base.Throughput.Values(), Values: r.Throughput.Values()})
			}
		}
		rows := t.rows(j.Baseline)
		j.Plan.CompareRows(rows)
		var shifts []*figure.Figure
		for _, row := range rows.Rows {
			shifts = append(shifts, row.Of...)
		}
		j.together("compared with "+j.Baseline+t.beside(), shifts)
	}
	for _, of := range []struct {
		title, base string
		quotients   []figure.Quotient
	}{{"p99 × alone", "alone", alone}, {"requests/s × host", host, onHost}} {
		j.Plan.Ratios(of.base, of.quotients)
		var ratios []*figure.Figure
		for _, q := range of.quotients {
			ratios = append(ratios, q.Figure)
		}
		j.together(of.title, ratios)
	}
	var kept []figure.Pair
	var keeping []*figure.Figure
	for i := range j.Tables {
		t := &j.Tables[i]
		for _, r := range t.Rows {
			if base := t.of(j.Baseline); base != nil && r != base && figure.Paired(base.Kept.Values(), r.Kept.Values()) {
				kept, keeping = append(kept, figure.Pair{Base: &base.Kept, Figure: &r.Kept}), append(keeping, &r.Kept)
			}
		}
	}
	j.Plan.Compare(j.Baseline, kept)
	j.together("requests/s × alone, vs "+j.Baseline, keeping)
}

// within adds a quotient where some round has both of its sides: a ratio is of values of
// the same round.
func within(all []figure.Quotient, q figure.Quotient) []figure.Quotient {
	if figure.Paired(q.Base, q.Values) {
		all = append(all, q)
	}
	return all
}

// together notes how many figures were compared together, so that their p-values are
// adjusted for each other.
func (j *Judgement) together(title string, figures []*figure.Figure) {
	c := compared{title: title}
	for _, f := range figures {
		if f.Versus != nil {
			c.comparisons, c.rounds = c.comparisons+1, max(c.rounds, f.Versus.Shift.N)
		}
	}
	j.compared = append(j.compared, c)
}

// quotients are the values over the base's, of the rounds that have both.
func quotients(values, base stat.Rounds) stat.Rounds {
	out := stat.Rounds{}
	for round, v := range values {
		if b, both := base[round]; both && b > 0 {
			out[round] = v / b
		}
	}
	return out
}

// rows are the quantities that a table compares.
func (t *Table) rows(baseline string) figure.Rows {
	out := figure.Rows{At: slices.IndexFunc(t.Rows, func(r *Row) bool { return r.Target == baseline })}
	quantity := func(name string, of func(*Row) *figure.Figure) {
		row := figure.Row{Name: name}
		for _, r := range t.Rows {
			row.Of = append(row.Of, of(r))
		}
		out.Rows = append(out.Rows, row)
	}
	for _, r := range t.Rows {
		out.Names = append(out.Names, r.Target)
	}
	quantity("requests per second", func(r *Row) *figure.Figure { return &r.Throughput })
	for _, i := range []int{0, p99, p99 + 1} {
		quantity(quantiles[i].Name, func(r *Row) *figure.Figure { return &r.Latency[i] })
	}
	quantity("CPU per request", func(r *Row) *figure.Figure { return &r.CPU[0] })
	if t.Neighbour == "" {
		quantity("first answer", func(r *Row) *figure.Figure { return &r.Ready })
	}
	return out
}
