// Package load makes HTTP load and answers it: fortio's clients and echo server,
// each in a process of its own, so that their CPU time can be told apart and their
// cgroups chosen.
package load

import "github.com/tare-bench/tare/record"

// Result is what a client says.
type Result struct {
	record.Sent
	// Histogram are upper bounds (ns) and counts, so that clients can be added up.
	Histogram []Bin `json:"histogram"`
	CPU       int64 `json:"cpu"` // ns that the client used for the load itself
}

// Bin is one of a histogram.
type Bin struct {
	To    int64 `json:"to"` // ns, inclusive
	Count int64 `json:"count"`
}
