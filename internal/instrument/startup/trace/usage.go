package trace

import (
	"sort"

	"github.com/tare-bench/tare/record"
)

// usage is the cumulative CPU time at several times, sorted by time.
type usage []record.BusyAt

// at returns the CPU time used until t, by linear interpolation. It is constant before
// the first sample and after the last one.
func (u usage) at(t int64) float64 {
	i := sort.Search(len(u), func(i int) bool { return u[i].At >= t })
	switch {
	case i == len(u):
		return float64(u[i-1].CPU)
	case i == 0 || u[i].At == t:
		return float64(u[i].CPU)
	}
	a, b := u[i-1], u[i]
	return float64(a.CPU) + float64(b.CPU-a.CPU)*(float64(t-a.At)/float64(b.At-a.At))
}

// between returns the CPU time (ns) used between two times, or -1 if unknown.
func (u usage) between(from, to int64) int64 {
	if len(u) < 2 {
		return -1
	}
	return max(0, int64(u.at(to)+0.5)-int64(u.at(from)+0.5))
}
