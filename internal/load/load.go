// Package load makes HTTP load and answers it: fortio's clients and echo server,
// each in a process of its own, so that their CPU time can be told apart and their
// cgroups chosen.
//
// The processes are tare itself, executed again with a hidden argument (Main). Each
// is started, put into its cgroups, and only then told what to do, in one line of
// JSON on its standard input; it answers in lines of JSON on its standard output.
// It ends when that input does, and is killed with the thread that started it, so
// that none outlives tare.
//
// What sends and receives is fortio's own HTTP client and echo handler. When to
// send, and how what came back is counted, is not fortio's: its runner counts a
// latency from when a request was sent, not from when it was due, leaves out what
// was due and not sent at the end, sends one more on each connection before it
// counts, and keeps latencies in 57 bins, 10 to 20 s being one of them.
package load

import "github.com/tare-bench/tare/record"

// Result is what a client says. Its latencies are those of requests that were
// answered; a failure is no time. In an open loop what was never answered has one
// still, see Missing: without it a server that stalls for good would look quick.
type Result struct {
	record.Sent
	// Histogram are upper bounds (ns) and counts, so that clients can be added up:
	// bins no wider than 1/128 of their value, ascending, without empty ones. Each
	// quantile is the upper bound of the bin in which it lies.
	Histogram []Bin `json:"histogram"`
	// Missing are the same of an open loop's requests that had no answer in time, or
	// were never sent: for how long since they were due there had been none. They are
	// in mean, quantiles and Max, of which they make lower bounds.
	Missing []Bin `json:"missing,omitempty"`
	CPU     int64 `json:"cpu"` // ns that the client used for the load itself
	// Elapsed is from the beginning to the last answer, of an open loop to when the last
	// request was sent that was answered, or to the end of the time asked for, whichever
	// was later, ns.
	Elapsed int64 `json:"elapsed"`
}

// Bin is one of a histogram.
type Bin struct {
	To    int64 `json:"to"` // ns, inclusive
	Count int64 `json:"count"`
}
