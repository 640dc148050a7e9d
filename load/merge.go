package load

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Merge adds up what several clients say that ran at the same time.
func Merge(results []Result) Result {
	var out Result
	counts := map[int64]int64{}
	var sum float64
	for _, r := range results {
		out.Requests += r.Requests
		out.Errors += r.Errors
		out.Unsent += r.Unsent
		out.QPS += r.QPS
		out.Sockets += r.Sockets
		out.CPU += r.CPU
		out.OpenLoop = r.OpenLoop
		out.Max = max(out.Max, r.Max)
		out.Lag = max(out.Lag, r.Lag)
		out.Elapsed = max(out.Elapsed, r.Elapsed)
		sum += float64(r.Mean) * float64(r.Requests-r.Errors)
		for _, b := range r.Histogram {
			counts[b.To] += b.Count
		}
		for why, n := range r.Failures {
			if out.Failures == nil {
				out.Failures = map[string]int64{}
			}
			out.Failures[why] += n
		}
	}
	out.Histogram = []Bin{}
	for _, to := range slices.Sorted(maps.Keys(counts)) {
		out.Histogram = append(out.Histogram, Bin{To: to, Count: counts[to]})
	}
	if answered := out.Requests - out.Errors; answered > 0 {
		out.Mean = int64(math.Round(sum / float64(answered)))
	}
	out.quantiles()
	return out
}

// check refuses a result that cannot be: a client is a process, and what comes from
// a process may be anything.
func (r *Result) check() error {
	if len(r.Histogram) > allBins || len(r.Failures) > kinds+1 {
		return errors.New("has more in it than a client says")
	}
	var bins, last int64
	last = -1
	for _, b := range r.Histogram {
		if b.To <= last || b.Count <= 0 || b.Count > most {
			return fmt.Errorf("has a bin up to %d ns with %d, after one up to %d ns", b.To, b.Count, last)
		}
		last = b.To
		bins += b.Count
	}
	for _, n := range []int64{r.Requests, r.Errors, r.Sockets, r.Unsent} {
		if n < 0 || n > most {
			return fmt.Errorf("counts %d of something", n)
		}
	}
	for _, n := range []int64{r.Mean, r.P50, r.P90, r.P99, r.P999, r.Max, r.Elapsed, r.Lag, r.CPU} {
		if n < 0 {
			return fmt.Errorf("has a time of %d ns", n)
		}
	}
	for _, n := range r.Failures {
		if n < 0 || n > most {
			return fmt.Errorf("counts %d failures of a kind", n)
		}
	}
	switch {
	case r.Errors > r.Requests || bins != r.Requests-r.Errors:
		return fmt.Errorf("counts %d requests, %d errors and %d latencies", r.Requests, r.Errors, bins)
	case math.IsNaN(r.QPS) || r.QPS < 0 || r.QPS > most:
		return fmt.Errorf("has %g requests per second", r.QPS)
	}
	return nil
}
