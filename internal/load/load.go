// Package load runs HTTP clients and an echo server of fortio. Each is a separate process with
// its own CPU time and cgroups.
//
// The processes execute tare with a hidden argument (Main). Each is moved into its cgroups and
// then gets its configuration in one line of JSON on standard input. It answers in lines of
// JSON on standard output. It ends at the end of its input, and is killed with the thread that
// started it, so no process outlives tare.
//
// The HTTP client and the echo handler are fortio's. The schedule and the statistics are not:
// fortio's runner counts latency from the sending of a request instead of its due time, skips
// requests that were not sent at the end, sends an extra request per connection first, and
// has only 57 bins of latency, one of them from 10 to 20 s.
package load

import "github.com/tare-bench/tare/record"

// Result is the report of a client. Latencies are those of answered requests. In an open loop
// they include requests without an answer, see Missing: otherwise a server that stalls would
// look fast.
type Result struct {
	record.Sent
	// Histogram lists the non-empty bins in ascending order. The width of a bin is at most
	// 1/128 of its value. Histograms of several clients can be added. Each quantile is the
	// upper bound of its bin.
	Histogram []Bin `json:"histogram"`
	// Missing has the requests of an open loop that timed out or were never sent, by the
	// time that each had waited since it was due. Mean, quantiles and Max include these
	// times as lower bounds.
	Missing []Bin `json:"missing,omitempty"`
	CPU     int64 `json:"cpu"` // ns of the client during the load
	// Elapsed is the time (ns) from the start to the last answer. In an open loop it ends
	// when the last answered request was sent, or after the requested duration, whichever
	// is later.
	Elapsed int64 `json:"elapsed"`
}

// Bin is a bin of a histogram.
type Bin struct {
	To    int64 `json:"to"` // ns, inclusive
	Count int64 `json:"count"`
}
