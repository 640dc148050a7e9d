package ledger

import (
	"math/bits"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Uncertainty returns how far the residual of a phase may be off, in ± bytes:
//
//	|drift| · elapsed  +  1.96 · √2 · 1.4826 · MAD  +  granularity
//
// Drift is the change of the node's usage over the whole visit, less the change in
// other processes. Elapsed is the share of the visit that had passed when the phase
// ended: the ledger includes all drift up to then.
//
// MAD is the median absolute deviation of the node's usage in the second half of the
// phase. 1.4826 · MAD estimates a standard deviation (Hampel, The Influence Curve and
// its Role in Robust Estimation, JASA 69 (1974) 383–393). The factor √2 is for the
// difference of two readings, and 1.96 gives 95 %.
//
// Granularity is what per-CPU counters may hold back. The terms are added, not
// combined as a root of squares, because they may be dependent. A term is omitted
// if the reading after the visit, or the series, is missing.
func (v *Visit) Uncertainty(i, cpus int) int64 {
	u := 0.0
	if b, a := v.Before, v.After; b != nil && a != nil && a.Host.Total > 0 {
		drift := a.Host.Used() - b.Host.Used() - (a.Host.Others - b.Host.Others)
		u += float64(max(drift, -drift)) * v.elapsed(i)
	}
	const change = 1.96 * 1.41421356 * 1.4826
	if s := v.Phases[i].Series; s != nil {
		u += change * fluctuation(s.Values[record.SeriesNodeUsed])
	}
	for _, r := range []*record.Reading{v.Before, v.Phases[i].End} {
		if r != nil && !r.Host.Refreshed {
			u += float64(granularity(cpus, r.Host.Total)) / 2
		}
	}
	return int64(u + 0.5)
}

// elapsed returns the share of the visit, 0 to 1, that had passed when the phase ended.
func (v *Visit) elapsed(i int) float64 {
	whole, end := v.After.Time-v.Before.Time, v.Phases[i].End
	if end == nil || whole <= 0 {
		return 1
	}
	return min(max(float64(end.Time-v.Before.Time)/float64(whole), 0), 1)
}

// fluctuation returns the median absolute deviation of the second half of the values,
// without unread ones. It is 0 for fewer than 5 values.
func fluctuation(values []int64) float64 {
	read := make([]int64, 0, len(values))
	for _, n := range values[len(values)/2:] {
		if n >= 0 {
			read = append(read, n)
		}
	}
	if len(read) < 5 {
		return 0
	}
	center := middle(read)
	for i, n := range read {
		read[i] = max(n-center, center-n)
	}
	return float64(middle(read))
}

func middle(values []int64) int64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// granularity returns the bytes of a zone that per-CPU counters may hold back. Each
// CPU holds at most min(125, 2·fls(CPUs)·(1+fls(m))) pages, where m is the zone's
// memory in units of 128 MiB (calculate_normal_threshold in the kernel's mm/vmstat.c).
// Writing vm.stat_refresh folds the counters.
func granularity(cpus int, total int64) int64 {
	if cpus <= 0 {
		return 0
	}
	const page = 4096
	pages := min(125, 2*bits.Len(uint(cpus))*(1+bits.Len64(uint64(max(total, 0)>>27))))
	return int64(cpus) * int64(pages) * page
}
