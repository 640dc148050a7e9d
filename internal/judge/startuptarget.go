package judge

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/record"
)

// Judge ends the judgement. What it finds wrong with the record itself it takes
// from rec, whose Starts need not be there.
func (j *Startups) Judge(rec *record.Record) *Startup {
	s := j.Startup
	s.Logs, s.Targets = rec.Logs, nil
	for _, t := range j.targets {
		t.sum()
		if t.listed || t.Starts+t.Failed+t.NoEnd > 0 {
			s.Targets = append(s.Targets, t.StartupTarget)
		}
	}
	s.Findings = j.findings(rec, &s)
	return &s
}

// sum makes the figures of a target from those of its starts.
func (t *startupJudge) sum() {
	with := slices.DeleteFunc(slices.Clone(t.kept), func(f *startFigures) bool { return f.wall < 0 })
	t.Wall = over(with, func(f *startFigures) float64 { return f.wall })
	t.First = over(with, func(f *startFigures) float64 { return f.first })
	t.CPU = over(with, func(f *startFigures) float64 { return f.cpu })
	t.WatchingCPU = over(with, func(f *startFigures) float64 { return f.cost })
	if slices.ContainsFunc(with, func(f *startFigures) bool { return f.calls > 0 }) {
		t.Calls = over(with, func(f *startFigures) float64 { return f.calls })
		t.Credits = over(with, func(f *startFigures) float64 { return f.credits })
	}
	t.Table, t.Same = t.table(with)
	t.Phases = t.phases(with)
	t.Gaps = t.gaps()
	t.draw()
	t.watching()
}

// over is the median of a figure over the starts that have it.
func over(all []*startFigures, figure func(*startFigures) float64) Estimate {
	rounds := stat.Rounds{}
	for i, f := range all {
		if v := figure(f); v >= 0 {
			rounds[i] = v
		}
	}
	return estimate(rounds)
}

// table is the way that most starts went, step by step. Of ways that as many went
// it is the one that was seen first.
func (t *startupJudge) table(with []*startFigures) (steps []StartupStep, same int) {
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
	went := slices.DeleteFunc(slices.Clone(with), func(f *startFigures) bool { return f.way != way })
	if len(went) == 0 {
		return nil, 0
	}
	for i, step := range went[0].steps {
		at := func(f *startFigures) *stepFigure { return &f.steps[i] }
		steps = append(steps, t.step(step, went, at))
	}
	return steps, same
}

// phases are the parts of the starts by name. One that a start does not have took
// no time in it.
func (t *startupJudge) phases(with []*startFigures) (steps []StartupStep) {
	var names []stepFigure
	for _, f := range with {
		for _, p := range f.phases {
			if len(names) < mostSteps && !slices.ContainsFunc(names, func(n stepFigure) bool { return n.name == p.name && n.kind == p.kind }) {
				names = append(names, p)
			}
		}
	}
	for _, name := range names {
		at := func(f *startFigures) *stepFigure {
			i := slices.IndexFunc(f.phases, func(p stepFigure) bool { return p.name == name.name && p.kind == name.kind })
			if i < 0 {
				return &stepFigure{}
			}
			return &f.phases[i]
		}
		steps = append(steps, t.step(name, with, at))
	}
	return steps
}

func (t *startupJudge) step(name stepFigure, all []*startFigures, at func(*startFigures) *stepFigure) StartupStep {
	s := StartupStep{Name: name.name, Kind: name.kind,
		Took: over(all, func(f *startFigures) float64 { return at(f).took }),
		CPU:  over(all, func(f *startFigures) float64 { return at(f).cpu })}
	if t.Wall.Value > 0 {
		s.Share = s.Took.Value / t.Wall.Value
	}
	for _, f := range all {
		s.Times += float64(at(f).times) / float64(len(all))
	}
	return s
}

// masked is a line without what differs from start to start: ids and what is
// quoted.
func masked(line string) string {
	return quoted.ReplaceAllString(ids.ReplaceAllString(line, "ID"), `"…"`)
}

var (
	ids    = regexp.MustCompile(`[0-9a-f]{12,}`)
	quoted = regexp.MustCompile(`"[^"]*"`)
)

// gaps puts the waits of all starts together that lie between the same two
// events.
func (t *startupJudge) gaps() []StartupGap {
	type key struct{ in, after, before string }
	type sum struct {
		StartupGap
		first int // its place in the order of appearance
		took  stat.Rounds
	}
	sums := map[key]*sum{}
	for i, f := range t.kept {
		for _, g := range f.gaps {
			k := key{g.In, masked(g.After), masked(g.Before)}
			s := sums[k]
			if s == nil {
				s = &sum{StartupGap: StartupGap{Gap: g, Round: f.round}, first: len(sums), took: stat.Rounds{}}
				sums[k] = s
			}
			length := g.Ended - g.Began
			s.took[i] = max(s.took[i], float64(length))
			if length > s.Ended-s.Began {
				s.Gap, s.Round = g, f.round
			}
		}
	}
	all := make([]*sum, 0, len(sums))
	for _, s := range sums {
		s.Seen, s.Took = len(s.took), estimate(s.took)
		all = append(all, s)
	}
	// What happens in most starts costs most of them something.
	weight := func(s *sum) float64 { return s.Took.Value * float64(s.Seen) }
	slices.SortFunc(all, func(a, b *sum) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.first, b.first)) })
	var out []StartupGap
	for _, s := range all[:min(len(all), mostGaps)] {
		out = append(out, s.StartupGap)
	}
	return out
}

// draw takes the start whose wall time is closest to the median, or, where none
// has an end, the first.
func (t *startupJudge) draw() {
	var best *record.Start
	closest := math.Inf(1)
	for _, s := range t.whole {
		off := math.Inf(1)
		if s.Ended != 0 {
			off = math.Abs(float64(s.Ended-s.Began) - t.Wall.Value)
		}
		if best == nil || off < closest {
			best, closest = s, off
		}
	}
	if best == nil {
		return
	}
	t.Drawn = &StartupDrawn{Start: best, Rows: trace.Rows(best), Parts: trace.Parts(best, t.Engine), Gaps: trace.Gaps(best, t.Engine, mostGaps)}
	t.Drawn.Calls, t.Drawn.Workload = taken(trace.Calls(best, t.Engine))
}

// watching compares the rounds that were watched with those that were not.
func (t *startupJudge) watching() {
	if len(t.without) == 0 || len(t.with) == 0 {
		return
	}
	c := stat.Compare(t.without, t.with)
	t.Watching, t.Different, t.Why = ratio(c), c.Different, c.Why
}
