package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// The bounds above which something is worth a finding.
const (
	skewBound  = 0.20 // of the makespan between the first lane's start and the last's
	earlyBound = 0.10 // of the time to the first instruction that a call returned before it,
	earlyLeast = 1e6  // ns: less is what an exec takes on its way
)

// failures sums up what went wrong, one finding for each target, operation and
// number of lanes, warm-up included, with the first cause.
func failures(rec *record.Record, add func(record.Finding)) {
	type key struct {
		target, op string
		lanes      int
	}
	type sum struct {
		failed, total int
		first         *record.Failure
	}
	sums := map[key]*sum{}
	var order []key
	for i := range rec.Batches {
		b := &rec.Batches[i]
		k := key{b.Target, b.Op, b.Lanes}
		if sums[k] == nil {
			sums[k] = &sum{}
			order = append(order, k)
		}
		for j := range b.Samples {
			f := b.Samples[j].Failure
			if f != nil && f.Kind == record.FailInterrupted {
				continue // no fault of the target
			}
			sums[k].total++
			if f != nil {
				sums[k].failed++
				if sums[k].first == nil {
					sums[k].first = f
				}
			}
		}
	}
	for _, k := range order {
		s := sums[k]
		if s.failed == 0 {
			continue
		}
		message := fmt.Sprintf("%d of %d failed, warm-up included; the first: %s", s.failed, s.total, s.first.Detail)
		if out := strings.TrimSpace(s.first.Output); out != "" {
			message += ": " + out
		}
		add(record.Finding{Code: finding.Failed, Level: finding.Error, Target: k.target, Op: k.op, Lanes: k.lanes, Message: message, Advice: finding.Advice(s.first), Tried: s.first.Command})
	}
}

// fewRounds tells once for each number of rounds that is too small, and where
// if it is one place only.
func fewRounds(t *Table, need int, add func(record.Finding)) {
	where := map[int][]record.Finding{}
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if e := c.Time.Estimate; e.Known() && !e.Bounded {
				where[e.N] = append(where[e.N], record.Finding{Target: c.Target, Op: string(row.Op)})
			}
		}
	}
	for n := range stat.MinRounds(figure.Confidence) {
		if len(where[n]) == 0 {
			continue
		}
		f, _ := finding.TooFew(n, need, t.Lanes)
		if len(where[n]) == 1 {
			f.Target, f.Op = where[n][0].Target, where[n][0].Op
		}
		add(f)
	}
	if f, few := finding.TooFew(t.Rounds, need, t.Lanes); few && t.Rounds >= stat.MinRounds(figure.Confidence) {
		add(f)
	}
}

// unsteady reports, of all cells of a table together or else of those of one target,
// that the first round is unlike the others, or that the rounds drifted.
func (j *Judgement) unsteady(t *Table, add func(record.Finding)) {
	from := -1 // all targets
	if len(j.Targets) == 1 {
		from = 0
	}
	tests := len(j.Tables) * (len(j.Targets) - from) // that are read together
	of := func(at int) (rows []stat.Rounds) {
		for _, row := range t.Rows {
			for i := range row.Cells {
				if c := &row.Cells[i]; (at < 0 || i == at) && c.Time.Known() {
					rows = append(rows, c.Time.Values())
				}
			}
		}
		return rows
	}
	put := func(at int, code, message, advice string) {
		f := record.Finding{Code: code, Level: finding.Warning, Lanes: t.Lanes, Message: message, Advice: advice}
		if at >= 0 {
			f.Target = j.Targets[at].Name
		}
		add(f)
	}
	again := "raise --warmup"
	if j.Imported != nil {
		again = "when the tool runs again, let it warm up first"
	}
	first, drift := false, false
	for at := from; at < len(j.Targets); at++ {
		s := stat.SteadinessOf(of(at), tests)
		if s.First.Found && !first {
			first = at < 0
			message := fmt.Sprintf("the first round took %.2f times as long as the others (%s, %s)", s.First.Ratio, means(s.Rows), stat.P(s.First.P))
			if s.First.Ratio > 1 {
				put(at, finding.FirstRound, message, "caches were still cold; "+again)
			} else {
				put(at, finding.FirstRound, message, "something filled up or was throttled after it; look at what the rounds leave behind")
			}
		}
		if s.Half.Found && !drift {
			drift = at < 0
			put(at, finding.Drift, fmt.Sprintf("the second half of the rounds is %+.0f %% off the first (%s, %s)", 100*(s.Half.Ratio-1), means(s.Rows), stat.P(s.Half.P)),
				"something warmed up, filled up or throttled; "+again+", or look at what else the machine did. Comparisons hold where others drifted alike: rounds are paired")
		}
	}
}

// means says what a ratio of so many rows is.
func means(rows int) string {
	if rows == 1 {
		return "1 row"
	}
	return fmt.Sprintf("geometric mean of %d rows", rows)
}

func cellFindings(t *Table, row Row, c *Cell, kind string, rows int, add func(record.Finding)) {
	put := func(code, level, message, advice string) {
		add(record.Finding{Code: code, Level: level, Target: c.Target, Op: string(row.Op), Lanes: t.Lanes, Message: message, Advice: advice})
	}
	if m := stat.Bimodal(figure.Ordered(c.Time.Values()), rows); m.Bimodal {
		put(finding.Bimodal, finding.Warning, fmt.Sprintf("two heaps: about %s in %d rounds and about %s in %d",
			finding.Brief(m.Low), m.LowN, finding.Brief(m.High), m.N-m.LowN),
			"the median sits in one of them or between; look for a cache, a lock or a timer that is hit in some rounds only")
	}
	if by, early := c.early(); early && kind != kindHost && kind != kindFloor { // of those tare itself execs the workload
		put(finding.ReturnedEarly, finding.Warning, "returned "+finding.Brief(by)+" before the workload ran",
			"the time of the call is not that of the operation: compare "+string(row.Op)+", which ends with the first instruction, and not its call")
	}
	if c.Lanes != nil && c.Time.Estimate.Known() {
		skew, own := c.Lanes[skewColumn].Estimate.Value, c.Lanes[ownColumn].Estimate.Value
		if share := skew / c.Time.Estimate.Value; share > skewBound {
			put(finding.Skew, finding.Note, fmt.Sprintf("from the first lane's start to the last's %s pass, %.0f %% of the makespan", finding.Brief(skew), 100*share),
				"the operation is hardly longer than releasing the lanes takes; read the lanes' own latencies instead of the makespan")
		}
		// Of host and floor the lane makes the operation itself; and one lane
		// leaves CPUs idle, on which tare does nobody harm.
		if own > finding.OwnBound && t.Lanes > 1 && kind != kindHost && kind != kindFloor {
			put(finding.OwnCost, finding.Note, fmt.Sprintf("tare itself used %.1f %% of the machine's CPU time in these batches", 100*own),
				"the times may be that much too long; use a machine with more CPUs, and fewer lanes at once")
		}
	}
}

// early is by how much calls returned before the workload's first instruction, if that is
// shown in the rounds and is more than their noise.
func (c *Cell) early() (by float64, shown bool) {
	call := c.returned()
	if c.Done != record.StampFirst || call == nil || !c.Time.Known() {
		return 0, false
	}
	returned := call.Values()
	var off []float64
	for _, r := range c.Time.Rounds {
		if v, both := returned[r.Round]; both {
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
	return e.Value, least > 0 && e.Value > max(noise, earlyLeast, earlyBound*c.Time.Value)
}
