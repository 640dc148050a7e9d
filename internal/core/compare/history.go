package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// commit is the label for the commit of a record.
const commit = "commit"

// History is the figures of many runs in order, with the points where their levels change.
type History struct {
	Points []string // names of the points, in order
	Series []*Series

	by       string // sort key, in words
	runs     int
	undated  []string     // runs without a date, which cannot be ordered
	since    int          // first point whose changes count
	versions bool         // allow different target versions in a series, because versions are compared
	unlike   []Difference // differences that split a figure into several series
	of       *Comparison
}

// Series has the values of a figure at all points with the same circumstances.
type Series struct {
	figure.Figure        // the figure of the first run
	Apart         string // difference from the first series of the figure; "" for the first
	At            []int  // points with a value
	Values        []float64
	stat.Course

	first int // index of the first run
	of    map[int][]float64
	runs  map[int][]int // by point
	most  map[int]bool  // points with an upper bound
}

// NewHistory orders the runs and detects changes. The argument since is the first point whose
// changes count, or "" for all.
func NewHistory(runs []Run, filter, since string) (*History, error) {
	h := &History{}
	runs, point, err := h.order(runs)
	if err != nil {
		return nil, err
	}
	h.runs = len(runs)
	c := &Comparison{unlike: map[[2]int][]Difference{}}
	h.of = c
	for i := range runs {
		c.Sides = append(c.Sides, Side{Name: h.Points[point[i]], Runs: runs[i : i+1]})
	}
	if err := c.take(); err != nil {
		return nil, err
	}
	g, err := c.project(Options{Col: "run", Filter: filter})
	if err != nil {
		return nil, err
	}
	for _, table := range g.tables {
		for _, row := range g.rows[table] {
			var cells []*cell
			for _, col := range g.cols {
				if one := g.cells[place{table, row, col}]; one != nil && one.of[0].Known() && stat.Finite(one.of[0].Value) {
					cells = append(cells, one)
				}
			}
			h.part(c, point, cells)
		}
	}
	if h.Series == nil {
		return nil, errors.New("no figure has a value: choose others with --filter; its keys are " + strings.Join(g.known, ", "))
	}
	all := make([][]float64, len(h.Series))
	for i, s := range h.Series {
		all[i] = s.Values
	}
	for i, course := range stat.Changes(all) {
		h.Series[i].Course = course
	}
	if since != "" {
		if h.since = slices.Index(h.Points, since); h.since < 0 {
			return nil, fmt.Errorf("--since: no record of point %q; the points are %s", since, page.Listed(h.Points))
		}
	}
	return h, nil
}

// order sorts the runs and assigns each its point. Runs of the same commit share a point.
// Commit numbers, such as from git rev-list --count, have an order. Hashes have none, so their
// runs are sorted by time. Then runs without a date are left out, unless there is only one run.
func (h *History) order(all []Run) (runs []Run, point []int, err error) {
	runs = all
	number := func(r *Run) float64 {
		n, err := strconv.ParseFloat(r.Labels.Get(commit), 64)
		if err != nil {
			return math.NaN()
		}
		return n
	}
	h.by, h.versions = "label commit", true
	for i := range runs {
		if !stat.Finite(number(&runs[i])) {
			h.by = "time, since label commit is not always a number"
		}
		h.versions = h.versions && runs[i].Labels.Get(commit) != ""
	}
	if !h.versions {
		h.by = "time, since some records have no label commit"
	}
	if len(runs) > 1 && h.by != "label commit" {
		runs = nil
		for _, r := range all {
			if r.Header.Started.IsZero() {
				h.undated = append(h.undated, cmp.Or(r.Header.RunID, "a run without an ID"))
			} else {
				runs = append(runs, r)
			}
		}
		if runs == nil {
			return nil, nil, errors.New("no run has a date to sort by: " + numberThem)
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int {
		if h.by == "label commit" {
			if c := cmp.Compare(number(&a), number(&b)); c != 0 {
				return c
			}
		}
		return a.Header.Started.Compare(b.Header.Started)
	})
	for i := range runs {
		name, at := runs[i].Labels.Get(commit), -1
		if h.versions {
			at = slices.Index(h.Points, name)
		} else {
			name = runs[i].Header.Started.UTC().Format(time.RFC3339)
		}
		if at < 0 {
			at, h.Points = len(h.Points), append(h.Points, name)
		}
		point = append(point, at)
	}
	return runs, point, nil
}

const numberThem = "give every record a number as label commit (tare label RECORD commit=4)"

// part splits a figure into one series for each set of circumstances. Each cell belongs to one
// run.
func (h *History) part(c *Comparison, point []int, cells []*cell) {
	var parts []*Series
	for _, one := range cells {
		f, run := one.of[0], one.runs[0]
		i := slices.IndexFunc(parts, func(s *Series) bool { return h.apart(c, s.first, run, f) == nil })
		if i < 0 {
			s := &Series{Figure: *f, first: run, of: map[int][]float64{}, runs: map[int][]int{}, most: map[int]bool{}}
			if i = len(parts); i > 0 {
				s.Apart = h.name(h.apart(c, parts[0].first, run, f))
			}
			parts = append(parts, s)
		}
		parts[i].of[point[run]] = append(parts[i].of[point[run]], f.Value)
		parts[i].runs[point[run]] = append(parts[i].runs[point[run]], run)
		if f.AtMost {
			parts[i].most[point[run]] = true
		}
	}
	for _, s := range parts {
		s.At = slices.Sorted(maps.Keys(s.of))
		for _, at := range s.At {
			s.Values = append(s.Values, figure.MedianOf(s.of[at]).Value)
		}
	}
	h.Series = append(h.Series, parts...)
}

// apart returns the differences that prevent two runs from sharing a series of the figure.
func (h *History) apart(c *Comparison, a, b int, f *figure.Figure) (out []Difference) {
	for _, d := range c.between(a, b) {
		if (d.Target == "" || d.Target == f.Labels.Get("target")) && !(h.versions && d.Kind == Version) {
			out = append(out, d)
		}
	}
	return out
}

// name describes the differences that set a series apart, and adds them to h.unlike.
func (h *History) name(by []Difference) string {
	parts := make([]string, len(by))
	for i, d := range by {
		parts[i] = d.Field + " " + shortly(d.B)
		if !slices.ContainsFunc(h.unlike, func(other Difference) bool { return other.Field == d.Field && other.A == d.A && other.B == d.B }) {
			h.unlike = append(h.unlike, d)
		}
	}
	return page.Listed(parts)
}

// levels returns one figure per level of a series, each compared with the level before.
func (h *History) levels(s *Series) (out []figure.Figure) {
	from, changes := 0, s.Changes
	var before []int // runs of the previous level
	for k := range len(changes) + 1 {
		to := len(s.Values)
		if k < len(changes) {
			to = changes[k].At
		}
		f := s.Figure
		f.Failed, f.Total, f.Reasons, f.Rounds, f.AtMost = 0, 0, nil, nil, false
		f.Labels = f.Labels.With("from", h.Points[s.At[from]]).With("to", h.Points[s.At[to-1]])
		if s.Apart != "" {
			f.Labels = f.Labels.With("apart", s.Apart)
		}
		var own []int
		for i := from; i < to; i++ {
			own = append(own, s.runs[s.At[i]]...)
			f.Rounds = append(f.Rounds, figure.Round{Round: s.At[i], Value: s.Values[i]})
			f.AtMost = f.AtMost || s.most[s.At[i]]
		}
		f.Estimate = figure.MedianOf(s.Values[from:to])
		if k > 0 {
			both := figure.Pair{Base: &out[k-1], Figure: &f}
			f.Verdict, f.Reasons = string(stat.Undecided), []string{both.Unproven(true)}
			if f.Versus = both.Known(figure.Compared("to "+h.Points[s.At[from-1]], &changes[k-1].Comparison)); f.Versus != nil {
				f.Verdict, f.Reasons = direction(&f, out[k-1].Value), []string{f.Versus.Why}
				if why := h.of.disturbed(&s.Figure, before, own); why != "" { // a level has enough runs
					f.Verdict, f.Reasons, f.Versus.Verdict, f.Versus.Why = string(stat.Undecided), []string{why}, stat.Undecided, why
				}
			}
		}
		out, from, before = append(out, f), to, own
	}
	return out
}

// direction returns the verdict of a level. It also works if the previous level is 0 and the
// relative shift is undefined.
func direction(f *figure.Figure, before float64) string {
	switch {
	case f.Versus.Shift.Known() || !f.Versus.Different() || f.Better == "":
		return word(f).Head
	case f.Value > before == (f.Better == figure.Less):
		return string(stat.Regressed)
	}
	return "better"
}

// Figures returns the levels of all series.
func (h *History) Figures() (out []figure.Figure) {
	for _, s := range h.Series {
		out = append(out, h.levels(s)...)
	}
	return out
}

// Worse reports whether a level regressed at a point that counts.
func (h *History) Worse() bool {
	for _, s := range h.Series {
		for k, f := range h.levels(s) {
			if f.Verdict == string(stat.Regressed) && s.At[s.Changes[k-1].At] >= h.since {
				return true
			}
		}
	}
	return false
}

// Findings lists the runs left out and the differences that split figures into several series.
func (h *History) Findings() (out []record.Finding) {
	if h.undated != nil {
		out = append(out, record.Finding{Code: "no-date", Level: "warning", Advice: numberThem,
			Message: page.Amount(len(h.undated), "run") + " left out for lack of a date: " + page.Listed(h.undated)})
	}
	return append(out, (&Comparison{Differences: h.unlike}).Findings()...)
}
