package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Thresholds above which a finding is reported.
const (
	skewBound  = 0.20 // release skew as a fraction of the makespan
	earlyBound = 0.10 // early return as a fraction of the time to the first instruction
	earlyLeast = 1e6  // ns; an exec can take this long
)

// ImportedFindings is the prefix of finding codes from reading imported results.
const ImportedFindings = "import-"

// findings returns what limits the trust in the results.
func (j *Judgement) findings() []record.Finding {
	var out finding.List
	out.TakeOver(j.Record, ImportedFindings, finding.StartsThrottled)
	out.Whole(j.Record)
	failures(j.Record, out.Add)
	tables, rows := j.tables(), 0
	for _, t := range tables {
		rows += len(t.Parts("op")) * len(j.Record.Targets)
	}
	for i := range tables {
		t := &tables[i]
		j.unsteady(t, out.Add)
		if j.imported() == nil { // rounds cannot be added to stored results
			fewRounds(t, j.Plan.RoundsFor(len(pairs(t.Set, j.Baseline))), out.Add)
		}
		for _, cell := range t.Parts("op", "target") {
			j.cellFindings(t, cell, rows, out.Add)
		}
	}
	out.Node(j.Record)
	return out
}

// failures adds one finding per target, operation and number of lanes that failed, with
// the first cause. Warm-up is included.
func failures(rec *record.Record, add func(record.Finding)) {
	type sum struct {
		*record.Batch // the first
		failed, total int
		first         *record.Failure
	}
	var sums []*sum
	for i := range rec.Batches {
		b := &rec.Batches[i]
		at := slices.IndexFunc(sums, func(s *sum) bool { return s.Target == b.Target && s.Op == b.Op && s.Lanes == b.Lanes })
		if at < 0 {
			at, sums = len(sums), append(sums, &sum{Batch: b})
		}
		for k := range b.Samples {
			f := b.Samples[k].Failure
			if f != nil && f.Kind == record.FailInterrupted {
				continue // the target is not at fault
			}
			s := sums[at]
			if s.total++; f != nil {
				s.failed, s.first = s.failed+1, cmp.Or(s.first, f)
			}
		}
	}
	for _, s := range sums {
		if s.failed == 0 {
			continue
		}
		message := fmt.Sprintf("%d of %d failed, warm-up included; the first: %s", s.failed, s.total, s.first.Detail)
		if out := strings.TrimSpace(s.first.Output); out != "" {
			message += ": " + out
		}
		add(record.Finding{Code: finding.Failed, Level: finding.Error, Target: s.Target, Op: s.Op, Lanes: s.Lanes, Message: message, Advice: finding.Advice(s.first), Tried: s.first.Command})
	}
}

// fewRounds adds one finding per number of rounds that is too small. The finding names
// the target and operation if there is only one.
func fewRounds(t *table, need int, add func(record.Finding)) {
	where := map[int][]figure.Labels{}
	for _, f := range t.times() {
		if f.Known() && !f.Bounded {
			where[f.N] = append(where[f.N], f.Labels)
		}
	}
	for n := range stat.MinRounds(figure.Confidence) {
		if len(where[n]) == 0 {
			continue
		}
		f, _ := finding.TooFew(n, need, t.lanes)
		if len(where[n]) == 1 {
			f.Target, f.Op = where[n][0].Get("target"), where[n][0].Get("op")
		}
		add(f)
	}
	if f, few := finding.TooFew(t.rounds, need, t.lanes); few && t.rounds >= stat.MinRounds(figure.Confidence) {
		add(f)
	}
}

// unsteady reports a first round that differs from the others, and drift over the
// rounds. It tests all cells of a table together, then those of each target.
func (j *Judgement) unsteady(t *table, add func(record.Finding)) {
	targets := names(j.Record.Targets)
	if len(targets) != 1 {
		targets = append([]string{""}, targets...) // "": all targets together
	}
	tests := len(j.tables()) * len(targets) // for the multiple-testing correction
	cold, changed := "caches were still cold; raise --warmup", "something warmed up, filled up or throttled; raise --warmup, or look"
	if j.imported() != nil { // imported results cannot be measured again
		cold, changed = "caches may have been cold: read the others without it", "something filled up or throttled: look"
	}
	first, drift := false, false
	for _, name := range targets {
		var rows []stat.Rounds
		for _, f := range t.times() {
			if (name == "" || f.Labels.Get("target") == name) && f.Known() {
				rows = append(rows, f.Values())
			}
		}
		put := func(code, message, advice string) {
			add(record.Finding{Code: code, Level: finding.Warning, Target: name, Lanes: t.lanes, Message: message, Advice: advice})
		}
		s := stat.SteadinessOf(rows, tests)
		if s.First.Found && !first {
			first = name == ""
			advice := cold
			if s.First.Ratio <= 1 {
				advice = "something filled up or was throttled after it; look at what the rounds leave behind"
			}
			put(finding.FirstRound, fmt.Sprintf("the first round took %.2f times as long as the others (%s, %s)", s.First.Ratio, means(s.Rows), stat.P(s.First.P)), advice)
		}
		if s.Half.Found && !drift {
			drift = name == ""
			put(finding.Drift, fmt.Sprintf("the second half of the rounds is %+.0f %% off the first (%s, %s)", 100*(s.Half.Ratio-1), means(s.Rows), stat.P(s.Half.P)),
				changed+" at what else the machine did. Comparisons hold where others drifted alike: rounds are paired")
		}
	}
}

// means describes a ratio over a number of rows.
func means(rows int) string {
	if rows == 1 {
		return "1 row"
	}
	return fmt.Sprintf("geometric mean of %d rows", rows)
}

func (j *Judgement) cellFindings(t *table, cell figure.Set, rows int, add func(record.Finding)) {
	time, target, op := &cell[0], cell.Get("target"), cell.Get("op")
	put := func(code, level, message, advice string) {
		add(record.Finding{Code: code, Level: level, Target: target, Op: op, Lanes: t.lanes, Message: message, Advice: advice})
	}
	if m := stat.Bimodal(figure.Ordered(time.Values()), rows); m.Bimodal {
		put(finding.Bimodal, finding.Warning, fmt.Sprintf("two groups of times: about %s in %d rounds and about %s in %d",
			finding.Brief(m.Low), m.LowN, finding.Brief(m.High), m.N-m.LowN),
			"the median is in one of them or between; look for a cache, lock or timer that affects only some rounds")
	}
	own := limit(j.target(target)) // on host and floor, tare's lanes do the operation themselves
	if by, shown := early(time, returned(cell)); shown && !own {
		put(finding.ReturnedEarly, finding.Warning, "returned "+finding.Brief(by)+" before the workload ran",
			"the time of the call is not that of the operation: compare "+op+", which ends with the first instruction, and not its call")
	}
	skew := cell.Of("release-skew").Value
	if share := skew / time.Value; time.Known() && share > skewBound {
		put(finding.Skew, finding.Note, fmt.Sprintf("from the first lane's start to the last's %s pass, %.0f %% of the makespan", finding.Brief(skew), 100*share),
			"the operation is hardly longer than the release of the lanes; use the lanes' own latencies instead of the makespan")
	}
	// With one lane, tare runs on CPUs that are idle anyway.
	if share := cell.Of("own-cpu-share").Value; time.Known() && share > finding.OwnBound && t.lanes > 1 && !own {
		put(finding.OwnCost, finding.Note, fmt.Sprintf("tare itself used %.1f %% of the machine's CPU time in these batches", 100*share),
			"the times may be that much too long; use a machine with more CPUs, and fewer lanes at once")
	}
}

// early returns by how much calls returned before the workload's first instruction.
// shown reports whether the difference exceeds the noise between rounds.
func early(first, call *figure.Figure) (by float64, shown bool) {
	var off []float64
	for _, r := range first.Rounds {
		if v, both := call.Values()[r.Round]; both && byFirst(first) {
			off = append(off, r.Value-v)
		}
	}
	if len(off) == 0 {
		return 0, false
	}
	e, least, noise := figure.MedianOf(off), slices.Min(off), 0.0
	if e.Bounded {
		least, noise = e.Lo, max(e.Hi-e.Value, e.Value-e.Lo)
	}
	return e.Value, least > 0 && e.Value > max(noise, earlyLeast, earlyBound*first.Value)
}
