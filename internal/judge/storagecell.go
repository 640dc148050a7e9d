package judge

import (
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// The directions of I/O, as indexes.
const (
	reading = iota
	writing
	directions
)

func flows(c *record.Claim) [directions]*record.Flow { return [...]*record.Flow{&c.Read, &c.Write} }

// smallBlock is the largest block, in bytes, of which IOPS say more than
// bandwidth: up to there most devices take about as long for a block as for the
// smallest.
const smallBlock = 64 << 10

// weighedCell is a cell with the rounds it was made of.
type weighedCell struct {
	StorageCell
	judge  *storageJudge
	table  *weighedTable
	info   *record.Target
	place  *record.Place  // nil: not recorded
	trials []*record.Cell // those with figures, by round

	bandwidth, iops stat.Rounds // of both directions
	primary         stat.Rounds // one of them
	perGiB          stat.Rounds // CPU seconds
	facts           evidence    // of all rounds together
	alone           []Verdict   // of each round by itself, as trials
}

// take adds a round, false where it has no figures.
func (w *weighedCell) take(c *record.Cell) bool {
	if c.Version != "" && !slices.Contains(w.Versions, c.Version) {
		w.Versions = append(w.Versions, c.Version)
	}
	if w.Command == "" {
		w.Command = c.Command
	}
	failure := c.Failure
	if failure == nil && c.Claim == nil {
		failure = &record.Failure{Kind: record.FailState, Detail: "the record holds neither figures nor a reason why there are none"}
	}
	if failure != nil {
		w.Failed++
		if w.Failure == nil {
			w.Failure = failure
		}
		return false
	}
	w.trials = append(w.trials, c)
	return true
}

// flowRounds are the values of one direction, round by round.
type flowRounds struct {
	bytes, bandwidth, iops    stat.Rounds
	mean, p50, p95, p99, p999 stat.Rounds
	least, most               stat.Rounds
}

func newFlowRounds() *flowRounds {
	return &flowRounds{stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}}
}

// sum makes the cell's figures from its rounds.
func (w *weighedCell) sum() {
	w.Rounds = len(w.trials)
	w.perGiB = stat.Rounds{}
	if w.Rounds == 0 {
		return
	}
	slices.SortStableFunc(w.trials, func(a, b *record.Cell) int { return a.Round - b.Round })
	each := [directions]*flowRounds{newFlowRounds(), newFlowRounds()}
	both := newFlowRounds()
	seconds, workload, runtime := stat.Rounds{}, stat.Rounds{}, stat.Rounds{}
	var seen [directions][]float64
	for _, c := range w.trials {
		length := secondsOf(c)
		put(seconds, c.Round, length)
		total := record.Flow{}
		for d, f := range flows(c.Claim) {
			bandwidth, iops := ratesOf(f, length)
			each[d].add(c, f, bandwidth, iops)
			total.Bytes += f.Bytes
			total.Bandwidth += bandwidth
			total.IOPS += iops
		}
		if l, ok := lone(c.Claim); ok {
			total.Latency = l
		}
		both.add(c, &total, total.Bandwidth, total.IOPS)
		w.cpu(c, max(length, float64(c.Ended-c.Begun)/1e9), float64(total.Bytes), workload, runtime)
		if use, ok := deviceOf(c); ok {
			seen[reading], seen[writing] = append(seen[reading], float64(use.ReadBytes)), append(seen[writing], float64(use.WriteBytes))
		}
	}
	w.Read, w.Write, w.Total = each[reading].flow(), each[writing].flow(), both.flow()
	w.Seconds, w.WorkloadCPU, w.RuntimeCPU, w.CPUPerGiB = estimate(seconds), estimate(workload), estimate(runtime), estimate(w.perGiB)
	w.SeenRead, w.SeenWrite = median(seen[reading]), median(seen[writing])
	w.bandwidth, w.iops = both.bandwidth, both.iops
	w.facts = w.gather(w.trials)
}

// choose makes IOPS the table's primary figure where blocks are small, and
// otherwise bandwidth; the other one where a claim lacks it.
func (t *weighedTable) choose() {
	lacks := func(values func(*weighedCell) stat.Rounds) bool {
		return slices.ContainsFunc(t.cells, func(c *weighedCell) bool { return len(values(c)) < c.Rounds })
	}
	bandwidth := func(c *weighedCell) stat.Rounds { return c.bandwidth }
	iops := func(c *weighedCell) stat.Rounds { return c.iops }
	t.byIOPS = t.BS > 0 && t.BS <= smallBlock && !lacks(iops) || lacks(bandwidth) && !lacks(iops)
	for _, c := range t.cells {
		c.primary = c.bandwidth
		if t.byIOPS {
			c.primary = c.iops
		}
	}
}

// lone is the latency of the one direction that a claim has, or that of both
// together where the tool says it.
func lone(c *record.Claim) (record.Latency, bool) {
	switch r, w := moves(&c.Read), moves(&c.Write); {
	case r && !w:
		return c.Read.Latency, true
	case w && !r:
		return c.Write.Latency, true
	}
	return c.Latency, c.Latency != (record.Latency{})
}

func moves(f *record.Flow) bool { return f.Bytes > 0 || f.IOs > 0 || f.Bandwidth > 0 || f.IOPS > 0 }

// secondsOf is how long a job ran as its tool has it, or else as it was seen; 0
// where neither is known.
func secondsOf(c *record.Cell) float64 {
	if c.Claim.Seconds > 0 {
		return c.Claim.Seconds
	}
	for _, f := range flows(c.Claim) { // all of what was moved, at the tool's own rate
		if s := float64(f.Bytes) / f.Bandwidth; s > 0 && finite(s) {
			return s
		}
	}
	if c.Seen != nil {
		return float64(c.Seen.Took) / 1e9
	}
	return 0
}

// ratesOf are the tool's own, or else what follows from what it says.
func ratesOf(f *record.Flow, seconds float64) (bandwidth, iops float64) {
	bandwidth, iops = f.Bandwidth, f.IOPS
	if bandwidth == 0 && seconds > 0 {
		bandwidth = float64(f.Bytes) / seconds
	}
	if iops == 0 && seconds > 0 {
		iops = float64(f.IOs) / seconds
	}
	return bandwidth, iops
}

func (r *flowRounds) add(c *record.Cell, f *record.Flow, bandwidth, iops float64) {
	round := c.Round
	put(r.bytes, round, float64(f.Bytes))
	put(r.bandwidth, round, bandwidth)
	put(r.iops, round, iops)
	put(r.mean, round, float64(f.Latency.Mean))
	put(r.p50, round, float64(f.Latency.P50))
	put(r.p95, round, float64(f.Latency.P95))
	put(r.p99, round, float64(f.Latency.P99))
	put(r.p999, round, float64(f.Latency.P999))
	if c.Source != "" {
		put(r.least, round, float64(f.Latency.Min))
		put(r.most, round, float64(f.Latency.Max))
	}
}

func (r *flowRounds) flow() StorageFlow {
	return StorageFlow{Bytes: median(ordered(r.bytes)), Bandwidth: estimate(r.bandwidth), IOPS: estimate(r.iops),
		Mean: estimate(r.mean), P50: estimate(r.p50), P95: estimate(r.p95), P99: estimate(r.p99), P999: estimate(r.p999), Min: estimate(r.least), Max: estimate(r.most)}
}

// put keeps a value; 0 is what a tool did not say.
func put(values stat.Rounds, round int, v float64) {
	if v > 0 && !math.IsInf(v, 0) {
		values[round] = v
	}
}

// cpu adds what the target's roles used in a round.
func (w *weighedCell) cpu(c *record.Cell, seconds, bytes float64, workload, runtime stat.Rounds) {
	if c.Seen == nil || len(c.Seen.CPU) == 0 || !(seconds > 0) {
		return
	}
	var own, others float64
	for _, r := range c.Seen.CPU {
		switch r.Role {
		case record.RoleWorkload:
			own += float64(r.NS) / 1e9
		case record.RoleOthers: // nothing of the target's
		default:
			others += float64(r.NS) / 1e9
		}
	}
	if a, b := own/seconds, others/seconds; finite(a) && finite(b) {
		workload[c.Round], runtime[c.Round] = a, b
	}
	if v := (own + others) / (bytes / (1 << 30)); bytes > 0 && finite(v) {
		w.perGiB[c.Round] = v
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// estimate is the median with its interval.
func estimate(values stat.Rounds) Estimate {
	s := stat.Summarize(ordered(values), Confidence)
	if s.N == 0 || !finite(s.Median) {
		return Estimate{}
	}
	e := Estimate{Value: s.Median, Lo: s.Median, Hi: s.Median, Known: true}
	if s.Known {
		e.Lo, e.Hi, e.Bounded = s.Lo, s.Hi, true
	}
	return e
}

// compare sets what each cell is beside the base.
func (j *storageJudge) compare() {
	for _, t := range j.weighed {
		base := t.cellOf(storageBase)
		if base == nil || base.Rounds == 0 {
			continue
		}
		t.Base = storageBase
		for _, c := range t.cells {
			if c.Rounds == 0 {
				continue
			}
			if c == base {
				one := Estimate{Value: 1, Lo: 1, Hi: 1, Known: true}
				c.Ratio = one
				if len(c.perGiB) > 0 {
					c.CPURatio = one
				}
				continue
			}
			r := stat.Compare(base.primary, c.primary)
			c.Ratio, c.Different, c.Why = ratio(r), r.Different, r.Why
			c.CPURatio = ratio(stat.Compare(base.perGiB, c.perGiB))
		}
	}
}

// ratio is the median of the rounds' own ratios.
func ratio(r stat.Comparison) Estimate {
	if !finite(r.PairedDelta) {
		return Estimate{}
	}
	e := Estimate{Value: 1 + r.PairedDelta, Known: true}
	e.Lo, e.Hi = e.Value, e.Value
	if finite(r.PairedLo) && finite(r.PairedHi) {
		e.Lo, e.Hi, e.Bounded = 1+r.PairedLo, 1+r.PairedHi, true
	}
	return e
}
