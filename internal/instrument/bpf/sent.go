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

// addSent adds the client's counts of one round: errors, requests not sent, and the
// reasons of failures.
func (r *Row) addSent(s *record.Sent, first bool) {
	if first || s.Requests < r.Fewest {
		r.Fewest = s.Requests
	}
	r.Errors, r.Unsent, r.Lag, r.Open = r.Errors+s.Errors, r.Unsent+s.Unsent, max(r.Lag, s.Lag), s.OpenLoop
	r.Client = cmp.Or(r.Client, s.Client)
	for why, n := range s.Failures {
		r.Failures[why] += n
	}
}

// uncounted returns the number of requests without a latency, which are the failed
// ones. In an open loop, requests that timed out do have one: the time they waited.
func (r *Row) uncounted() int64 { return max(r.Errors-r.waitedFor(), 0) }

// Bounds returns the number of requests whose latency is only a lower bound.
func (r *Row) Bounds() int64 { return r.Unsent + r.waitedFor() }

func (r *Row) waitedFor() int64 {
	if !r.Open {
		return 0
	}
	return min(r.Failures[noAnswerInTime], r.Errors)
}

// reasons lists why requests failed, most frequent reason first.
func (r *Row) reasons() string {
	all := slices.SortedFunc(maps.Keys(r.Failures), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Failures[b], r.Failures[a]), strings.Compare(a, b))
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
	add.list(foundLoadErrors, finding.Warning, "requests failed (no answer, or not 2xx): ", j.rowsThat(func(r *Row, where string) string {
		return when(r.Errors > 0, "%d with %s%s", r.Errors, where, r.reasons())
	}), "QPS and latencies count answers only (in an open loop, latencies include timed-out requests with their waiting time); check the server's log, its descriptor limit, and the node's ports (net.ipv4.ip_local_port_range)")
	add.list(foundUnsent, finding.Warning, "requests were due and never sent: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.Unsent > 0, "%d with %s", r.Unsent, where)
	}), "no connection was free; they are not in QPS, and count in latencies with their waiting time, a lower bound: lower --qps, or use more connections")
	add.list(foundConnections, finding.Warning, "fewer requests than connections, so some connections were never used: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.All.Of("requests").Known() && r.Fewest < int64(r.Asked.Connections), "%d requests with %s", r.Fewest, where)
	}), "the figures are for fewer connections than the row says: use a longer --time, fewer -c, or a higher --qps")
	add.list(foundRateMissed, finding.Warning, "the rate was not reached: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.Asked.QPS > 0 && r.All.Of("requests").Known() && r.All.Of("requests").Value < full*r.Asked.QPS, "%.0f/s of %g with %s", r.All.Of("requests").Value, r.Asked.QPS, where)
	}), "latencies include the growing queue; lower --qps, or use more connections")
	if slices.ContainsFunc(j.b.Rows, func(r Row) bool { return r.All.Of("latency", "quantile", "p50").Known() && !r.Open }) {
		add(record.Finding{Code: foundClosedLoop, Level: finding.Note, Message: "latencies are from a closed loop: a waiting connection sends nothing, so a stall counts once instead of for every request it delayed (coordinated omission)",
			Advice: "for latencies use a rate (--qps) below the throughput reached here; QPS and CPU are correct as they are"})
	}
}
