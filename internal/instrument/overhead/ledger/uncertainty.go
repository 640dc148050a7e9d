package ledger

import (
	"math/bits"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Uncertainty is how far the residual of a phase may be off, ± bytes:
//
//	|drift| · elapsed  +  1.96 · √2 · 1.4826 · MAD  +  granularity
//
// The drift is what the node's use has changed by from before the visit to after
// it, others' change taken off, though nothing is left of the sandboxes; elapsed is
// which part of that time had gone by at the phase's end, since the books hold all
// that the node drifted by up to then: the last phase nearly all of it. MAD is the median absolute
// deviation of the node's use over the last half of the phase; 1.4826 · MAD
// estimates a standard deviation (Hampel, The Influence Curve and its Role in
// Robust Estimation, JASA 69 (1974) 383–393), a change is the difference of two
// readings, and 1.96 makes it 95 %. Granularity is what the CPUs' own counters
// may hold back. Their sum, not its root: they need not be independent. Where
// there is no reading after or no series, that part is missing.
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

// elapsed is the part of the visit, 0 to 1, that had gone by when a phase ended.
func (v *Visit) elapsed(i int) float64 {
	whole, end := v.After.Time-v.Before.Time, v.Phases[i].End
	if end == nil || whole <= 0 {
		return 1
	}
	return min(max(float64(end.Time-v.Before.Time)/float64(whole), 0), 1)
}

// fluctuation is the median absolute deviation of the last half of the values
// that were read; 0 of fewer than 5.
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

// granularity is what the CPUs may have counted of a zone's pages and not yet
// added up, in bytes: on each at most min(125, 2·fls(CPUs)·(1+fls(m))) pages, m
// the zone's memory in units of 128 MiB (calculate_normal_threshold in the
// kernel's mm/vmstat.c). Writing vm.stat_refresh adds them up.
func granularity(cpus int, total int64) int64 {
	if cpus <= 0 {
		return 0
	}
	const page = 4096
	pages := min(125, 2*bits.Len(uint(cpus))*(1+bits.Len64(uint64(max(total, 0)>>27))))
	return int64(cpus) * int64(pages) * page
}
