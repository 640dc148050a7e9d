package load

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
)

// Merge adds up what several clients say that ran at the same time.
func Merge(results []Result) Result {
	var out Result
	var sum float64
	answered, missing := make([][]Bin, 0, len(results)), make([][]Bin, 0, len(results))
	for _, r := range results {
		out.Requests += r.Requests
		out.Errors += r.Errors
		out.Unsent += r.Unsent
		out.QPS += r.QPS
		out.Sockets += r.Sockets
		out.CPU += r.CPU
		out.OpenLoop = out.OpenLoop || r.OpenLoop
		out.Max = max(out.Max, r.Max)
		out.Lag = max(out.Lag, r.Lag)
		out.Elapsed = max(out.Elapsed, r.Elapsed)
		sum += float64(r.Mean) * float64(r.timed())
		answered, missing = append(answered, r.Histogram), append(missing, r.Missing)
		out.addFailures(r.Failures)
	}
	out.Histogram, out.Missing = together(answered...), together(missing...)
	if n := out.timed(); n > 0 {
		out.Mean = int64(math.Round(sum / float64(n)))
	}
	out.quantiles()
	out.Client = sentBy()
	return out
}

// sentBy names what sends, with the version that was built in.
func sentBy() string {
	const module = "fortio.org/fortio"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == module {
				return "fortio " + d.Version
			}
		}
	}
	return "fortio"
}

// timed is how many requests are in mean and quantiles.
func (r *Result) timed() int64 { return r.Requests - r.Errors + total(r.Missing) }

// addFailures adds those of a client, of as many reasons as one client has.
func (r *Result) addFailures(of map[string]int64) {
	for _, why := range slices.Sorted(maps.Keys(of)) {
		f := failures{counts: r.Failures}
		f.count(why, of[why])
		r.Failures = f.counts
	}
}

// check refuses a result that cannot be: a client is a process, and what comes from
// a process may be anything.
func (r *Result) check() error {
	if len(r.Histogram) > allBins || len(r.Missing) > allBins || len(r.Failures) > kinds+1 {
		return errors.New("has more in it than a client says")
	}
	for _, bins := range [][]Bin{r.Histogram, r.Missing} {
		if err := checkBins(bins); err != nil {
			return err
		}
	}
	if err := r.checkCounts(); err != nil {
		return err
	}
	bins := total(r.Histogram)
	switch {
	case total(r.Missing) > r.Errors+r.Unsent || len(r.Missing) > 0 && !r.OpenLoop:
		return fmt.Errorf("waited for %d requests, of which %d failed and %d were not sent", total(r.Missing), r.Errors, r.Unsent)
	case r.Errors > r.Requests || bins != r.Requests-r.Errors:
		return fmt.Errorf("counts %d requests, %d errors and %d latencies", r.Requests, r.Errors, bins)
	case math.IsNaN(r.QPS) || r.QPS < 0 || r.QPS > most:
		return fmt.Errorf("has %g requests per second", r.QPS)
	}
	return nil
}

// checkBins refuses latencies that are not in ascending order.
func checkBins(bins []Bin) error {
	last := int64(-1)
	for _, b := range bins {
		if b.To <= last || b.Count <= 0 || b.Count > most {
			return fmt.Errorf("has a bin up to %d ns with %d, after one up to %d ns", b.To, b.Count, last)
		}
		last = b.To
	}
	return nil
}

// checkCounts refuses what no counter and no clock can say.
func (r *Result) checkCounts() error {
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
	for why, n := range r.Failures {
		if n < 0 || n > most || len(why) > longestReason {
			return fmt.Errorf("counts %d failures of a kind", n)
		}
	}
	return nil
}
