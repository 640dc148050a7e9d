package judge

import (
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// batchFacts gathers what BatchFacts says.
type batchFacts struct {
	latencies   []float64
	skews       []float64
	parallelism []float64
	own         []float64
}

func (f *batchFacts) add(b *record.Batch, done record.Stamp, whole bool, cpus int) {
	var latencies []float64
	var first, last int64
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Start != 0 {
			if first == 0 || s.Start < first {
				first = s.Start
			}
			last = max(last, s.Start)
		}
		if d, ok := s.Latency(done); ok {
			latencies = append(latencies, float64(d))
		}
	}
	f.latencies = append(f.latencies, latencies...)
	f.skews = append(f.skews, float64(last-first))
	makespan, ok := span(b, done)
	if !whole || !ok || makespan <= 0 {
		return
	}
	f.parallelism = append(f.parallelism, stat.Parallelism(latencies, makespan))
	f.own = append(f.own, float64(b.OwnCPU)/(makespan*float64(max(cpus, 1))))
}

func (f *batchFacts) result() *BatchFacts {
	if len(f.latencies) == 0 {
		return nil
	}
	q := stat.Quantiles(f.latencies, 0.5, 0.9, 0.99, 1)
	return &BatchFacts{
		Latencies: len(f.latencies), P50: q[0], P90: q[1], P99: q[2], Max: q[3],
		Skew: middle(f.skews), SkewMax: stat.Quantiles(f.skews, 1)[0],
		Parallelism: middle(f.parallelism), OwnShare: middle(f.own),
	}
}
