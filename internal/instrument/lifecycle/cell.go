package lifecycle

import (
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// cell sums up the measured batches of one operation on one target.
func cell(t *record.Target, op setting.Op, lanes int, batches []*record.Batch, cpus int) Cell {
	def := t.Operations[string(op)]
	labels := figure.Of("target", t.Name, "op", string(op), "lanes", strconv.Itoa(lanes))
	c := Cell{Target: t.Name, Absent: Absent(t, op), Time: about("latency", figure.Nanoseconds, labels)}
	if lanes > 1 {
		c.Time.Quantity = "makespan"
	}
	c.Time.Better = figure.Less
	c.Trimmed = about("trimmed-mean", figure.Nanoseconds, labels)
	if c.Absent != "" {
		return c
	}
	g := gathered{times: map[record.Stamp]stat.Rounds{}, roles: roleRounds{}}
	batches = slices.DeleteFunc(slices.Clone(batches), func(b *record.Batch) bool { return b.Target != t.Name || b.Op != string(op) })
	c.Done = headline(t, op, batches...)
	for _, b := range batches {
		g.add(b, c.Done, lanes, cpus)
	}
	c.Lost, c.Time.Failed, c.Time.Total = g.lost, g.failed, g.total
	c.Trimmed.Failed, c.Trimmed.Total = g.failed, g.total
	values := g.times[c.Done]
	if len(values) == 0 && len(g.told.values) > 0 {
		c.Time.Quantity, values = g.told.quantity, g.told.values
	}
	c.Time.Rounds, c.Time.Estimate = figure.ByRound(values), figure.Median(values)
	if c.Time.Known() {
		c.Time.Until = string(c.Done)
	}
	if len(g.told.trimmed) > 0 {
		c.Trimmed.Estimate = middle(g.told.trimmed)
	} else if mean, ok := stat.Trimmed(figure.Ordered(g.times[def.Done])); ok { // that report timed calls
		c.Trimmed.Estimate = figure.Exactly(mean)
		c.Trimmed.Estimate.N = len(g.times[def.Done])
	}
	c.Ready = g.ready.is(labels)
	for _, stamp := range record.Stamps {
		if v := g.times[stamp]; len(v) > 0 {
			f := about("time-to", figure.Nanoseconds, labels.With("stamp", string(stamp)))
			f.Rounds, f.Estimate, f.Better = figure.ByRound(v), figure.Median(v), figure.Less
			if stamp == record.StampReady && c.Ready.AtMost > c.Ready.Asked/2 {
				f.AtMost, f.Verdict = true, figure.AtMost
			}
			c.Moments = append(c.Moments, f)
		}
	}
	c.Own, c.Lanes, c.Roles = g.own(labels), g.lanes.figures(labels), g.roles.figures(labels)
	return c
}

// headline is the stamp that ends the time of an operation. A call of start or run may
// return before or after the workload runs, so it is the first instruction if every
// operation that succeeded has it, and the definition's stamp if not.
func headline(t *record.Target, op setting.Op, batches ...*record.Batch) record.Stamp {
	def := t.Operations[string(op)]
	if def.Done != record.StampReturned || t.Clock == guestClock || op != setting.Start && op != setting.Run {
		return def.Done
	}
	known := false
	for _, b := range batches {
		for i := range b.Samples {
			if s := &b.Samples[i]; s.Failure == nil {
				if known = s.First > 0; !known {
					return def.Done
				}
			}
		}
	}
	if !known {
		return def.Done
	}
	return record.StampFirst
}

func about(quantity string, unit figure.Unit, labels figure.Labels) figure.Figure {
	return figure.Figure{Experiment: Name, Quantity: quantity, Unit: unit, Labels: labels}
}

// gathered is what the batches of a cell add up to.
type gathered struct {
	lost, failed, total int
	times               map[record.Stamp]stat.Rounds
	cpu                 []float64 // user and system time together
	user, system, rss   []float64
	lanes               laneRounds
	roles               roleRounds
	ready               readiness
	told                told
}

// told is what a tool says of several operations together.
type told struct {
	quantity string
	values   stat.Rounds
	trimmed  []float64
}

// add takes a mean where there is one. The time of a whole run is another quantity:
// how many were under way at once is not known.
func (t *told) add(round int, s *record.Summary) {
	quantity, value := "mean-latency", float64(s.Mean)
	if s.Mean == 0 {
		quantity, value = "time-per-operation", s.Seconds*1e9/float64(s.Count)
	}
	if t.values == nil {
		t.quantity, t.values = quantity, stat.Rounds{}
	}
	if t.quantity == quantity {
		t.values[round] = value
	}
	if s.Trimmed > 0 {
		t.trimmed = append(t.trimmed, float64(s.Trimmed))
	}
}

func (g *gathered) add(b *record.Batch, done record.Stamp, lanes, cpus int) {
	g.lost += b.Lost
	failed, total := Outcomes(b)
	if !b.Unproven {
		g.failed, g.total = g.failed+failed, g.total+total
	}
	if b.Summary != nil {
		g.told.add(b.Round, b.Summary)
		return
	}
	for i := range b.Samples {
		g.ready.add(&b.Samples[i])
		if s := &b.Samples[i]; s.Failure == nil {
			g.cpu = append(g.cpu, float64(s.UserCPU+s.SysCPU))
			g.user, g.system, g.rss = append(g.user, float64(s.UserCPU)), append(g.system, float64(s.SysCPU)), append(g.rss, float64(s.MaxRSS))
		}
	}
	// A batch that lost a lane was not the batch that was asked for.
	whole := failed == 0 && total == len(b.Samples) && total == lanes
	for _, stamp := range record.Stamps {
		v, ok := span(b, stamp)
		if !whole || !ok {
			continue
		}
		if g.times[stamp] == nil {
			g.times[stamp] = stat.Rounds{}
		}
		g.times[stamp][b.Round] = v
	}
	g.lanes.add(b, done, whole, cpus)
	if whole {
		g.roles.add(b)
	}
}

// own are the resources of the operation's own command and the children it waited
// for. Medians of parts do not add up to that of the whole, so there are all three.
func (g *gathered) own(labels figure.Labels) (out []figure.Figure) {
	for _, q := range []struct {
		name   string
		unit   figure.Unit
		values []float64
	}{{"command-cpu", figure.Nanoseconds, g.cpu}, {"user-cpu", figure.Nanoseconds, g.user}, {"system-cpu", figure.Nanoseconds, g.system}, {"max-rss", figure.Bytes, g.rss}} {
		f := about(q.name, q.unit, labels)
		if slices.ContainsFunc(q.values, func(v float64) bool { return v > 0 }) { // calls of an API have no command
			f.Estimate = middle(q.values)
		}
		out = append(out, f)
	}
	return out
}

// span is the time to a stamp: a lane's own latency where there is one lane,
// from the release to the last lane's stamp where there are more.
func span(b *record.Batch, stamp record.Stamp) (float64, bool) {
	if len(b.Samples) == 0 {
		return 0, false
	}
	if b.Lanes == 1 {
		d, ok := b.Samples[0].Latency(stamp)
		return float64(d), ok
	}
	var last int64
	for i := range b.Samples {
		t, ok := b.Samples[i].Time(stamp)
		if !ok || b.Samples[i].Failure != nil {
			return 0, false
		}
		last = max(last, t)
	}
	return float64(last - b.Released), true
}

// middle is a median without an interval.
func middle(values []float64) figure.Estimate {
	if len(values) == 0 {
		return figure.Estimate{}
	}
	return figure.Estimate{N: len(values), Value: stat.Summarize(values, figure.Confidence).Median}
}
