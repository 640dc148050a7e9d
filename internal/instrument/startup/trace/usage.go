package trace

import (
	"sort"

	"github.com/tare-bench/tare/record"
)

// usage is CPU time by moments, in order of time.
type usage []record.BusyAt

// at is the CPU time used by a moment, on a straight line between the two moments
// around it. Before the first and after the last nothing is known to be used.
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

// between is the CPU time used from one moment to another in ns, -1 not known.
func (u usage) between(from, to int64) int64 {
	if len(u) < 2 {
		return -1
	}
	return max(0, int64(u.at(to)+0.5)-int64(u.at(from)+0.5))
}
