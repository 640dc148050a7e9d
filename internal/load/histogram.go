package load

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// The bins are exact below 256 ns, and 128 per doubling up to 18 minutes: 34 KiB in all. The
// layout is that of HdrHistogram.
const (
	steps   = 128
	topBits = 40 // the longest time is 2^40 ns
	allBins = (topBits-8)*steps + 2*steps
	longest = 1<<topBits - 1
)

// histogram counts times. It is safe for concurrent use. The zero value is ready.
type histogram struct {
	counts [allBins]atomic.Int64
	sum    atomic.Int64 // ns
	max    atomic.Int64
}

func (h *histogram) add(ns int64) { h.addTimes(ns, 1) }

// addTimes counts a time n times.
func (h *histogram) addTimes(ns, n int64) {
	ns = max(ns, 0)
	h.counts[binOf(ns)].Add(n)
	h.sum.Add(ns * n)
	latest(&h.max, ns)
}

// latest sets at to ns if ns is larger.
func latest(at *atomic.Int64, ns int64) {
	for {
		if old := at.Load(); ns <= old || at.CompareAndSwap(old, ns) {
			return
		}
	}
}

func binOf(ns int64) int {
	v := uint64(min(ns, longest))
	if v < 2*steps {
		return int(v)
	}
	e := bits.Len64(v) - 8
	return e*steps + int(v>>e)
}

// upper returns the longest time of a bin.
func upper(bin int) int64 {
	if bin < 2*steps {
		return int64(bin)
	}
	e := bin/steps - 1
	return int64(bin%steps+steps+1)<<e - 1
}

// bins lists the bins that are not empty.
func (h *histogram) bins() []Bin {
	out := []Bin{}
	for i := range h.counts {
		if n := h.counts[i].Load(); n > 0 {
			out = append(out, Bin{To: upper(i), Count: n})
		}
	}
	return out
}

// total returns the sum of the counts.
func total(bins []Bin) int64 {
	var n int64
	for _, b := range bins {
		n += b.Count
	}
	return n
}

// quantile returns the upper bound of the bin of the q-quantile (nearest rank), at most the
// longest time, or 0 without values. Its error is below 1/128.
func quantile(bins []Bin, q float64, longest int64) int64 {
	rank := int64(math.Ceil(q * float64(total(bins))))
	var seen int64
	for _, b := range bins {
		if seen += b.Count; seen >= rank {
			return min(b.To, longest)
		}
	}
	return 0
}

// quantiles sets the quantiles of a result from its histogram, missing answers and maximum.
func (r *Result) quantiles() {
	all := together(r.Histogram, r.Missing)
	for q, to := range map[float64]*int64{0.5: &r.P50, 0.9: &r.P90, 0.99: &r.P99, 0.999: &r.P999} {
		*to = quantile(all, q, r.Max)
	}
}

// together returns the sum of several histograms.
func together(histograms ...[]Bin) []Bin {
	counts := map[int64]int64{}
	for _, bins := range histograms {
		for _, b := range bins {
			counts[b.To] += b.Count
		}
	}
	out := make([]Bin, 0, len(counts))
	for _, to := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, Bin{To: to, Count: counts[to]})
	}
	return out
}
