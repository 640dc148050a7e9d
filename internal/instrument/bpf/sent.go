package bpf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/record"
)

// noAnswerInTime is the client's name for requests that timed out; see package load.
const noAnswerInTime = "no answer in time"

// addSent adds the requests of a load that are in no figure, or only as a bound.
func (r *Row) addSent(s *record.Sent, first bool) {
	if first || s.Requests < r.Fewest {
		r.Fewest = s.Requests
	}
	r.Errors, r.Unsent, r.Lag, r.Open = r.Errors+s.Errors, r.Unsent+s.Unsent, max(r.Lag, s.Lag), s.OpenLoop
	r.Client = cmp.Or(r.Client, s.Client)
	for why, n := range s.Failures {
		if r.Failures == nil {
			r.Failures = map[string]int64{}
		}
		r.Failures[why] += n
	}
}

// uncounted returns the requests without a latency: those that failed. In an open
// loop, requests that timed out count with their waiting time.
func (r *Row) uncounted() int64 { return max(r.Errors-r.waitedFor(), 0) }

// Bounds returns the requests with a latency that is only a lower bound.
func (r *Row) Bounds() int64 { return r.Unsent + r.waitedFor() }

func (r *Row) waitedFor() int64 {
	if !r.Open {
		return 0
	}
	return min(r.Failures[noAnswerInTime], r.Errors)
}

// reasons lists the reasons of failed requests, most frequent first.
func (r *Row) reasons() string {
	all := slices.SortedFunc(maps.Keys(r.Failures), func(a, b string) int {
		if r.Failures[a] != r.Failures[b] {
			return int(min(max(r.Failures[b]-r.Failures[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	for i, why := range all {
		all[i] = fmt.Sprintf("%d %s", r.Failures[why], why)
	}
	if all == nil {
		return ""
	}
	return ": " + fewOf(all)
}

// sent adds findings about the client's report of the load.
func (j *judging) sent(add adding) {
	add.list(foundLoadErrors, finding.Warning, "requests without an answer, or with one that is no 2xx: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.Errors > 0, "%d with %s%s", r.Errors, where, r.reasons())
	}), "QPS counts answers only, and latencies are those of answers (in an open loop also of what had no answer in time, with as long as it was waited for); look at the server's log, its limit of descriptors, and the node's ports (net.ipv4.ip_local_port_range)")
	add.list(foundUnsent, finding.Warning, "requests were due and never sent: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.Unsent > 0, "%d with %s", r.Unsent, where)
	}), "no connection was free for them; they are in no QPS, and in latencies with as long as they had been due, which is the least: ask for a lower --qps, or for more connections")
	add.list(foundConnections, finding.Warning, "there were fewer requests than connections, so not all of these were ever there: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.All.Of("requests").Known() && r.Fewest < int64(r.Asked.Connections), "%d requests with %s", r.Fewest, where)
	}), "the figures are of fewer connections than the row says: ask for a longer --time, for fewer -c, or for a higher --qps")
	add.list(foundRateMissed, finding.Warning, "the rate was not reached: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.Asked.QPS > 0 && r.All.Of("requests").Known() && r.All.Of("requests").Value < full*r.Asked.QPS, "%.0f/s of %g with %s", r.All.Of("requests").Value, r.Asked.QPS, where)
	}), "latencies hold the queue that grew meanwhile; ask for a lower --qps, or for more connections")
	if slices.ContainsFunc(j.b.Rows, func(r Row) bool { return r.All.Of("latency", "quantile", "p50").Known() && !r.Open }) {
		add(record.Finding{Code: foundClosedLoop, Level: finding.Note, Message: "latencies are those of a closed loop: a connection that waits sends nothing meanwhile, so stalls count once and not for every request that would have come (coordinated omission)",
			Advice: "for latencies ask for a rate (--qps) below what was reached here; QPS and CPU are right as they are"})
	}
}
