package ledger

import "github.com/tare-bench/tare/record"

// Visits groups the readings and series of a record by visit, in order of begin.
// Duplicate lines count once. In a truncated record the last visit is incomplete.
func Visits(readings []record.Reading, series []record.Series) []*Visit {
	type key struct {
		round  int
		target string
	}
	type line struct {
		key
		phase     string
		sandboxes int
		moment    record.Moment
		time      int64
	}
	var all []*Visit
	current := map[key]*Visit{}
	seen := map[line]bool{}
	for r := range Each(readings) {
		k := key{r.Round, r.Target}
		l := line{k, r.Phase, r.Sandboxes, r.Moment, r.Time}
		if seen[l] {
			continue
		}
		seen[l] = true
		v := current[k]
		if v == nil || r.Moment == record.MomentBefore {
			v = &Visit{Round: r.Round, Target: r.Target}
			current[k] = v
			all = append(all, v)
		}
		switch r.Moment {
		case record.MomentBefore:
			v.Before = r
		case record.MomentAfter:
			v.After = r
		case record.MomentBegin:
			v.Phases = append(v.Phases, Phase{Name: r.Phase, Sandboxes: r.Sandboxes, Begin: r, Visit: v})
		case record.MomentEnd:
			v.end(r)
		}
	}
	for s := range Each(series) {
		for _, v := range all {
			if v.Round == s.Round && v.Target == s.Target {
				v.series(s)
			}
		}
	}
	return all
}

// Leavings are the kinds of leftovers of a removed sandbox, found by its id.
var Leavings = []string{"cgroups", "processes", "mounts"}

// Left returns how many objects of each kind remained after the visit, as far as they were read.
func (v *Visit) Left() map[string]float64 {
	all := map[string]float64{"cgroups": float64(len(v.After.Left))}
	if beside := v.After.LeftBeside; beside != nil {
		all["processes"] = float64(len(beside.Processes))
		if beside.Mounts != nil {
			all["mounts"] = float64(len(beside.Mounts))
		}
	}
	return all
}

// end assigns the end of a phase to its begin.
func (v *Visit) end(r *record.Reading) {
	if n := len(v.Phases) - 1; n >= 0 {
		if p := &v.Phases[n]; p.Name == r.Phase && p.Sandboxes == r.Sandboxes && p.End == nil {
			p.End = r
			return
		}
	}
	v.Phases = append(v.Phases, Phase{Name: r.Phase, Sandboxes: r.Sandboxes, End: r, Visit: v})
}

// series assigns sampled values to the phase that overlaps them.
func (v *Visit) series(s *record.Series) {
	for p := range Each(v.Phases) {
		if p.Name != s.Phase || p.Sandboxes != s.Sandboxes || p.Series != nil {
			continue
		}
		if len(s.Times) > 0 && (p.Begin != nil && s.Times[len(s.Times)-1] < p.Begin.Time || p.End != nil && s.Times[0] > p.End.Time+p.End.Took) {
			continue
		}
		p.Series = s
		return
	}
}

// Close returns the ledger of the i-th phase, see [Close], and sets its uncertainty.
// That is the uncertainty of a node with the given CPUs plus OthersUnclear.
func (v *Visit) Close(i, cpus int) (Ledger, error) {
	p := &v.Phases[i]
	l, err := Close(v.Before, p.Begin, p.End)
	if err == nil {
		l.Uncertainty = v.Uncertainty(i, cpus) + l.OthersUnclear()
	}
	return l, err
}
