package startup

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/record"
)

// Done completes the judgement. Findings about the record itself use rec, which need
// not contain the starts.
func (j *Judging) Done(rec *record.Record) *Judgement {
	s := j.Judgement
	s.Record = rec
	s.Logs, s.Targets = rec.Logs, nil
	var watching []figure.Quotient
	for _, t := range j.targets {
		t.sum(&j.Plan.Choice)
		watching = append(watching, figure.Quotient{Figure: &t.Watching, Base: t.without, Values: t.with})
	}
	figure.Comparing{}.Ratios("not watched", watching)
	for _, t := range j.targets {
		if t.listed || t.Starts+t.Failed+t.NoEnd > 0 {
			s.Targets = append(s.Targets, t.Target)
		}
	}
	figure.Comparing{}.CompareRows(s.compared())
	s.Found = j.findings(rec, &s)
	return &s
}

// compared returns the figures to compare between targets that were watched in the
// same rounds.
func (j *Judgement) compared() (out figure.Rows) {
	with := instrument.Baseline("", j.Record.Targets)
	out.At = slices.IndexFunc(j.Targets, func(t Target) bool { return t.Target == with })
	if !j.Live || with == "" {
		return figure.Rows{At: -1}
	}
	for i := range j.Targets {
		out.Names = append(out.Names, j.Targets[i].Target)
	}
	for _, q := range []struct {
		name string
		of   func(*Target) *figure.Figure
	}{
		{"wall time", func(t *Target) *figure.Figure { return &t.Wall }},
		{"first instruction", func(t *Target) *figure.Figure { return &t.First }},
		{"ready", func(t *Target) *figure.Figure { return &t.Ready }},
		{"runtime's calls", func(t *Target) *figure.Figure { return &t.Calls }},
		{"engine", func(t *Target) *figure.Figure { return &t.EngineTime }},
		{"CPU", func(t *Target) *figure.Figure { return &t.CPU }},
	} {
		row := figure.Row{Name: q.name}
		for i := range j.Targets {
			row.Of = append(row.Of, q.of(&j.Targets[i]))
		}
		if q.name == "ready" && readyNote(j.Targets) == "" {
			continue
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// sum computes the figures of a target from its starts.
func (t *gathered) sum(c *Choice) {
	with := slices.DeleteFunc(slices.Clone(t.kept), func(f *startValues) bool { return f.wall < 0 })
	t.Wall = t.over("wall-time", with, func(f *startValues) float64 { return f.wall })
	t.Wall.Failed, t.Wall.Total = t.Failed, t.Failed+t.Starts+t.NoEnd
	t.First = t.over("time-to-first-instruction", with, func(f *startValues) float64 { return f.first })
	t.FirstBy = t.over("time-to-first-instruction-at-most", with, func(f *startValues) float64 { return f.firstBy })
	t.Ready = t.over("time-to-ready", with, func(f *startValues) float64 { return f.ready })
	t.ReadyTo = t.over("ready-resolution", with, func(f *startValues) float64 { return f.readyTo })
	if t.readyAtMost() > t.Ready.N/2 {
		t.Ready.AtMost, t.Ready.Verdict = true, figure.AtMost
	}
	t.Request = t.over("first-request", with, func(f *startValues) float64 { return f.request })
	t.CPU = t.over("cpu-time", with, func(f *startValues) float64 { return f.cpu })
	t.WatchingCPU = t.over("watching-cpu-share", with, func(f *startValues) float64 { return f.cost })
	t.Calls, t.EngineTime = t.about("runtime-calls"), t.about("engine-time")
	if slices.ContainsFunc(with, func(f *startValues) bool { return f.calls > 0 }) {
		t.Calls = t.over("runtime-calls", with, func(f *startValues) float64 { return f.calls })
		if !t.bare { // the rest is tare's own time, not an engine's
			t.EngineTime = t.over("engine-time", with, func(f *startValues) float64 { return f.engineTime })
		}
	}
	t.Table, t.Same = t.table(with)
	t.Phases = t.phases(with)
	t.Gaps = t.gaps()
	t.draw(c)
	t.list(with)
	t.Watching = t.about("watching-ratio")
}

func (t *gathered) about(quantity string, labels ...string) figure.Figure {
	return Quantities.New(quantity, figure.Estimate{}, append(figure.Of("target", t.Target.Target), figure.Of(labels...)...))
}

// over returns the median of a value over the starts that have it.
func (t *gathered) over(quantity string, all []*startValues, value func(*startValues) float64, labels ...string) figure.Figure {
	values, byRound := stat.Rounds{}, stat.Rounds{}
	for i, f := range all {
		if v := value(f); v >= 0 {
			values[i], byRound[f.round] = v, v
		}
	}
	out := t.about(quantity, labels...)
	out.Estimate, out.Rounds = figure.Median(values), figure.ByRound(byRound)
	return out
}

// table returns the most frequent sequence of steps and the number of its starts. If
// several are equally frequent, it returns the first one seen.
func (t *gathered) table(with []*startValues) (steps []Step, same int) {
	count := map[string]int{}
	way := ""
	for _, f := range with {
		count[f.way]++
	}
	for _, f := range with {
		if count[f.way] > same {
			way, same = f.way, count[f.way]
		}
	}
	went := slices.DeleteFunc(slices.Clone(with), func(f *startValues) bool { return f.way != way })
	if len(went) == 0 {
		return nil, 0
	}
	for i, step := range went[0].steps {
		at := func(f *startValues) *stepValue { return &f.steps[i] }
		steps = append(steps, t.step("step", i, step, went, at))
	}
	return steps, same
}

// phases returns the parts of the starts by name. A missing part counts as zero.
func (t *gathered) phases(with []*startValues) (steps []Step) {
	var names []stepValue
	for _, f := range with {
		for _, p := range f.phases {
			if len(names) < maxSteps && !slices.ContainsFunc(names, func(n stepValue) bool { return n.name == p.name && n.kind == p.kind }) {
				names = append(names, p)
			}
		}
	}
	for i, name := range names {
		at := func(f *startValues) *stepValue {
			at := slices.IndexFunc(f.phases, func(p stepValue) bool { return p.name == name.name && p.kind == name.kind })
			if at < 0 {
				return &stepValue{}
			}
			return &f.phases[at]
		}
		steps = append(steps, t.step("phase", i, name, with, at))
	}
	return steps
}

func (t *gathered) step(of string, nth int, name stepValue, all []*startValues, at func(*startValues) *stepValue) Step {
	labels := []string{of, name.name, "kind", name.kind, "nth", strconv.Itoa(nth + 1)}
	s := Step{Name: name.name, Kind: name.kind,
		Took: t.over(of+"-time", all, func(f *startValues) float64 { return at(f).took }, labels...),
		CPU:  t.over(of+"-cpu-time", all, func(f *startValues) float64 { return at(f).cpu }, labels...)}
	if t.Wall.Value > 0 {
		s.Share = s.Took.Value / t.Wall.Value
	}
	for _, f := range all {
		s.Times += float64(at(f).times) / float64(len(all))
	}
	return s
}

// masked removes the variable parts of a line: ids, pids and quoted text.
func masked(line string) string {
	if !strings.ContainsAny(line, `0123456789":`) { // fast path: nothing to mask
		return line
	}
	return quoted.ReplaceAllString(ids.ReplaceAllString(line, "ID"), `"…"`)
}

var (
	ids    = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,}|\b\d{4,}\b|\b(Name|Uid|Namespace):[^,}]*`)
	quoted = regexp.MustCompile(`"[^"]*("|$)`)
)

// gapKey identifies equivalent gaps in several starts.
type gapKey struct{ in, after, before string }

func keyOf(g *record.Gap) gapKey { return gapKey{g.In, masked(g.After), masked(g.Before)} }

// gaps merges the gaps of all starts that have the same two events around them.
func (t *gathered) gaps() []Gap {
	type sum struct {
		Gap
		first int // index by first appearance
		took  stat.Rounds
		all   []*record.Gap
	}
	sums := map[gapKey]*sum{}
	for i, f := range t.kept {
		if f.wall < 0 && t.Starts > 0 {
			continue // starts without an end count only if there are no others
		}
		for n := range f.gaps {
			g := &f.gaps[n]
			k := keyOf(g)
			s := sums[k]
			if s == nil {
				s = &sum{Gap: Gap{Gap: *g, Round: f.round}, first: len(sums), took: stat.Rounds{}}
				sums[k] = s
			}
			length := g.Ended - g.Began
			s.took[i], s.all = max(s.took[i], float64(length)), append(s.all, g)
			if length > s.Ended-s.Began {
				s.Gap.Gap, s.Round = *g, f.round
			}
		}
	}
	all := make([]*sum, 0, len(sums))
	for _, s := range sums {
		if t.Method != record.MethodLogs { // gaps with unknown CPU time are not evidence for a timer
			s.all = slices.DeleteFunc(s.all, func(g *record.Gap) bool { return g.CPU < 0 })
		}
		s.Wait = waited(s.all)
		if s.Wait != nil {
			t.named[keyOf(&s.Gap.Gap)] = s.Wait
		}
		s.Seen, s.Took = len(s.took), t.about("gap-time")
		s.Took.Estimate = figure.Median(s.took)
		all = append(all, s)
	}
	// Waits that occur in most starts matter most.
	weight := func(s *sum) float64 { return s.Took.Value * float64(s.Seen) }
	slices.SortFunc(all, func(a, b *sum) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.first, b.first)) })
	var out []Gap
	for i, s := range all[:min(len(all), maxGaps)] {
		s.Took.Labels = append(s.Took.Labels, figure.Of("nth", strconv.Itoa(i+1), "in", s.In, "after", s.After, "before", s.Before)...)
		if s.Wait != nil {
			s.Took.Verdict, s.Took.Reasons = s.Wait.Timer, []string{s.Wait.Why}
		}
		out = append(out, s.Gap)
	}
	return out
}

// draw selects the start closest to the median wall time. If no start has an end, it
// selects the first one. If the caller chose starts, it selects all of them.
func (t *gathered) draw(c *Choice) {
	best, closest := -1, math.Inf(1)
	for i, s := range t.whole {
		off := math.Inf(1)
		if s.Ended != 0 && c.Slowest == 0 {
			off = math.Abs(float64(s.Ended-s.Began) - t.Wall.Value)
		}
		if best < 0 || off < closest {
			best, closest = i, off
		}
	}
	for i, s := range t.whole {
		if i != best && !c.made() {
			continue
		}
		d := t.drawn(s)
		if i == best {
			t.Drawn = d
		}
		t.Chosen = append(t.Chosen, d)
	}
}

func (t *gathered) drawn(s *record.Start) *Drawn {
	d := &Drawn{Start: s, Rows: trace.Rows(s), Parts: trace.Parts(s, t.Engine), Gaps: trace.Gaps(s, t.Engine, maxGaps)}
	for i := range d.Gaps {
		g := &d.Gaps[i]
		if w := t.named[keyOf(g)]; w != nil && (&timer{length: time.Duration(w.Nominal)}).fits(g) {
			g.Wait = w
		}
	}
	d.Took = taken(trace.Calls(s, t.Engine))
	return d
}

// list sorts the starts by duration, slowest first.
func (t *gathered) list(with []*startValues) {
	for _, f := range with {
		t.Every = append(t.Every, *f)
	}
	slices.SortStableFunc(t.Every, func(a, b startValues) int { return cmp.Compare(b.wall, a.wall) })
}
