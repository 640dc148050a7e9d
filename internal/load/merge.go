package load

import (
	"maps"
	"math"
	"runtime/debug"
	"slices"
)

// Merge merges the results of clients that ran at the same time.
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

// sentBy returns the name and the version of the client library.
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

// timed returns the number of requests that mean and quantiles are computed from.
func (r *Result) timed() int64 { return r.Requests - r.Errors + total(r.Missing) }

// addFailures adds the failures of a client, with the same limit of reasons.
func (r *Result) addFailures(of map[string]int64) {
	for _, why := range slices.Sorted(maps.Keys(of)) {
		f := failures{counts: r.Failures}
		f.add(why, of[why])
		r.Failures = f.counts
	}
}
