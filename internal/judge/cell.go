package judge

import (
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// cell sums up the measured batches of one operation on one target.
func cell(t *record.Target, op subject.Op, lanes int, batches []*record.Batch, cpus int) Cell {
	def := t.Operations[string(op)]
	c := Cell{Target: t.Name, Absent: Absent(t, op), values: stat.Rounds{}}
	if c.Absent != "" {
		return c
	}
	moments := map[record.Stamp]stat.Rounds{}
	var user, system, rss []float64
	var facts batchFacts
	roles := roleFacts{}
	for _, b := range batches {
		if b.Target != t.Name || b.Op != string(op) {
			continue
		}
		c.Lost += b.Lost
		failed, cut := 0, 0
		for i := range b.Samples {
			s := &b.Samples[i]
			if s.Failure != nil && s.Failure.Kind == record.FailInterrupted {
				cut++
				continue
			}
			if s.Failure != nil {
				failed++
				continue
			}
			user, system, rss = append(user, float64(s.UserCPU)), append(system, float64(s.SysCPU)), append(rss, float64(s.MaxRSS))
		}
		c.Total += len(b.Samples) - cut
		c.Failed += failed
		// A batch that lost a lane was not the batch that was asked for.
		whole := failed+cut == 0 && len(b.Samples) == lanes
		for _, stamp := range []record.Stamp{record.StampReturned, record.StampRunning, record.StampFirst, record.StampSeen, record.StampExited} {
			v, ok := span(b, stamp)
			if !whole || !ok {
				continue
			}
			if moments[stamp] == nil {
				moments[stamp] = stat.Rounds{}
			}
			moments[stamp][b.Round] = v
			if stamp == def.Done {
				c.values[b.Round] = v
			}
		}
		facts.add(b, def.Done, whole, cpus)
		if whole {
			roles.add(b)
		}
	}
	c.Summary = interval(c.values)
	if mean, ok := stat.Trimmed(ordered(c.values)); ok {
		c.Trimmed = &mean
	}
	for _, stamp := range []record.Stamp{record.StampReturned, record.StampRunning, record.StampFirst, record.StampSeen, record.StampExited} {
		if len(moments[stamp]) > 0 {
			c.Moments = append(c.Moments, Moment{stamp, interval(moments[stamp])})
		}
	}
	c.UserCPU, c.SysCPU, c.MaxRSS = middle(user), middle(system), middle(rss)
	c.Batch, c.Roles = facts.result(), roles.result()
	return c
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

func interval(values stat.Rounds) Interval {
	s := stat.Summarize(ordered(values), Confidence)
	i := Interval{N: s.N, Known: s.Known}
	if s.N > 0 {
		i.Median = s.Median
	}
	if s.Known {
		i.Lo, i.Hi = s.Lo, s.Hi
	}
	return i
}

// ordered lists the values by round.
func ordered(values stat.Rounds) []float64 {
	var rounds []int
	for r := range values {
		rounds = append(rounds, r)
	}
	slices.Sort(rounds)
	out := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		out = append(out, values[r])
	}
	return out
}

func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stat.Quantiles(values, 0.5)[0]
}
