package app

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

// Judgement holds the results of a service on several targets.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	Baseline string     // "" if there is only one target
	CPUs     int        // of the node
	All      figure.Set // grouped by neighbour, starting without one, then by target
	Found    []record.Finding
	Failed   int // windows without figures, or with failed requests
	Total    int

	rows     []*row
	compared []compared // by table
}

// row is one target, alone or with one neighbour.
type row struct {
	target, neighbour string
	windows, failed   []*Window // with and without figures, by round
}

// compared counts the figures compared together, and their maximum number of rounds.
type compared struct {
	title               string
	comparisons, rounds int
}

const (
	p99  = "p99"
	host = "host" // the target without a runtime
)

// Judge judges a record of a service, finished or not.
func Judge(rec *record.Record) (*Judgement, error) {
	rec = finding.Once(rec)
	j := &Judgement{Record: rec, CPUs: rec.Header.Environment.CPUs}
	if err := instrument.ReadPlan(&rec.Header, Name, &j.Plan); err != nil {
		return nil, err
	}
	j.Baseline = instrument.Baseline(j.Plan.Baseline, rec.Targets)
	j.gather()
	for _, r := range j.rows {
		j.All = append(j.All, r.figures()...)
	}
	j.compare()
	j.All = slices.DeleteFunc(j.All, func(f figure.Figure) bool { return !f.Known() && slices.Contains(onlyKnown, f.Quantity) })
	j.Found = j.findings()
	return j, nil
}

// gather sorts the windows into rows: without a neighbour first, then in the plan's
// order of neighbours.
func (j *Judgement) gather() {
	seen := map[string]bool{}
	for _, w := range record.All[Window](j.Record) {
		at := fmt.Sprintf("%d %q %q", w.Round, w.Target, w.Neighbour)
		switch {
		case w.Failure != nil && w.Failure.Kind == record.FailInterrupted:
			continue // interrupted; the target is not at fault
		case seen[at]:
			j.Record.ProblemCount++
			j.Record.Problems = append(slices.Clip(j.Record.Problems), record.Problem{Reason: fmt.Sprintf("a window of %s in round %d is there twice", w.Target, w.Round+1)})
			continue
		}
		seen[at] = true
		j.Total++
		r := j.row(w.Target, w.Neighbour)
		if r == nil {
			r = &row{target: w.Target, neighbour: w.Neighbour}
			j.rows = append(j.rows, r)
		}
		if w.Failure != nil || w.Sent == nil || w.Seen == nil {
			r.failed = append(r.failed, w)
			j.Failed++
			continue
		}
		if r.windows = append(r.windows, w); w.Sent.Errors != 0 {
			j.Failed++
		}
	}
	planned := func(r *row) uint { // neighbours outside the plan come last: −1 is the largest uint
		return uint(slices.Index(append([]string{""}, j.Plan.Neighbours...), r.neighbour))
	}
	rank := func(r *row) int {
		return slices.IndexFunc(j.Record.Targets, func(t record.Target) bool { return t.Name == r.target })
	}
	slices.SortStableFunc(j.rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(planned(a), planned(b)), cmp.Compare(rank(a), rank(b)))
	})
	for _, r := range j.rows {
		slices.SortStableFunc(r.windows, func(a, b *Window) int { return a.Round - b.Round })
	}
}

// row returns the row of a target and neighbour, or nil.
func (j *Judgement) row(target, neighbour string) *row {
	if i := slices.IndexFunc(j.rows, func(r *row) bool { return r.target == target && r.neighbour == neighbour }); i >= 0 {
		return j.rows[i]
	}
	return nil
}

// answers returns the number of answered requests.
func (w *Window) answers() int64 { return max(w.Sent.Requests-w.Sent.Errors, 0) }

// inside returns the CPU time (ns) of the roles that the workload's limit applies to.
func inside(all []record.RoleTime) (ns int64) {
	for _, t := range all {
		switch t.Role {
		case record.RoleWorkload, record.RoleSentry, record.RoleVCPU:
			ns += t.NS
		}
	}
	return ns
}

// compare compares the targets of each table with the baseline. It also compares each
// target under a neighbour with the same target alone, and every target with host.
func (j *Judgement) compare() {
	var alone, onHost []figure.Quotient
	var kept []figure.Pair
	tables := j.All.Parts("neighbour")
	for _, t := range tables {
		for _, cell := range t.Parts("target") {
			if base := tables[0].Part("target", cell.Get("target")); cell.Get("neighbour") != "" && tables[0].Get("neighbour") == "" {
				rounds := quotients(cell.Of("throughput").Values(), base.Of("throughput").Values())
				f := cell.Of("throughput-kept")
				f.Rounds, f.Estimate = figure.ByRound(rounds), figure.Median(rounds)
				alone = within(alone, cell.Of("latency-times"), cell.Of("latency", "quantile", p99), base.Of("latency", "quantile", p99))
			}
			if cell.Get("target") != host {
				onHost = within(onHost, cell.Of("throughput-times"), cell.Of("throughput"), t.Part("target", host).Of("throughput"))
			}
		}
		j.Plan.CompareRows(j.rowsOf(t))
		j.together("compared with "+j.Baseline+beside(t), t, "") // ratios are not compared yet
	}
	j.Plan.Ratios("alone", alone)
	j.together("p99 × alone", j.All, "latency-times")
	j.Plan.Ratios(host, onHost)
	j.together("requests/s × host", j.All, "throughput-times")
	for _, t := range tables {
		base := t.Part("target", j.Baseline).Of("throughput-kept")
		for _, cell := range t.Parts("target") {
			if f := cell.Of("throughput-kept"); f != base && figure.Paired(base.Values(), f.Values()) {
				kept = append(kept, figure.Pair{Base: base, Figure: f})
			}
		}
	}
	j.Plan.Compare(j.Baseline, kept)
	j.together("requests/s × alone, vs "+j.Baseline, j.All, "throughput-kept")
}

// within appends the ratio of values to base, unless no round has both. Only values of
// the same round are divided.
func within(all []figure.Quotient, of, values, base *figure.Figure) []figure.Quotient {
	if q := (figure.Quotient{Figure: of, Base: base.Values(), Values: values.Values()}); figure.Paired(q.Base, q.Values) {
		all = append(all, q)
	}
	return all
}

// together counts the comparisons of one family: those of a quantity, or of all. Their
// p-values are adjusted for that number.
func (j *Judgement) together(title string, among figure.Set, quantity string) {
	c := compared{title: title}
	for _, f := range among {
		if f.Versus != nil && (quantity == "" || f.Quantity == quantity) {
			c.comparisons, c.rounds = c.comparisons+1, max(c.rounds, f.Versus.Shift.N)
		}
	}
	j.compared = append(j.compared, c)
}

// quotients returns values divided by base, for rounds that have both.
func quotients(values, base stat.Rounds) stat.Rounds {
	out := stat.Rounds{}
	for round, v := range values {
		if b, both := base[round]; both && b > 0 {
			out[round] = v / b
		}
	}
	return out
}

// rowsOf returns the quantities that a table compares.
func (j *Judgement) rowsOf(t figure.Set) figure.Rows {
	out := figure.Rows{}
	cells := t.Parts("target")
	for _, cell := range cells {
		out.Names = append(out.Names, cell.Get("target"))
	}
	out.At = slices.Index(out.Names, j.Baseline)
	for _, q := range [][]string{{"requests per second", "throughput"}, {"p50", "latency", "quantile", "p50"}, {p99, "latency", "quantile", p99},
		{"p99.9", "latency", "quantile", "p99.9"}, {"CPU per request", "cpu-per-request", "role", string(allRoles)}, {"first answer", "first-answer"}} {
		row := figure.Row{Name: q[0]}
		for _, cell := range cells {
			row.Of = append(row.Of, cell.Of(q[1], q[2:]...))
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
