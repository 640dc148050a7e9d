package storage

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Tolerances for the time that a tool reports. They are wide: readings include some time
// around the job, and tools exclude their start and end.
const (
	longerFactor = 1.1  // maximum duration, as a factor of the lifetime of the tool's process; longerSlack is added
	longerSlack  = 0.1  // s
	busyFactor   = 1.5  // maximum busy time of the device, as a factor of the tool's time; busySlack is added
	busySlack    = 0.2  // s
	busyBytes    = 1.25 // maximum bytes at the device, as a factor of the claimed bytes, for its busy time to count as the job's
	openFactor   = 1.5  // maximum mean of open requests, as a factor of the job's concurrent requests
)

// inMost returns the first result of why if it has a result for most rounds, or nil.
func inMost(rounds []*record.Cell, why func(*record.Cell) string) []string {
	n, first := 0, ""
	for _, c := range rounds {
		if because := why(c); because != "" {
			n, first = n+1, cmp.Or(first, because)
		}
	}
	if 2*n <= len(rounds) {
		return nil
	}
	if n > 1 {
		first += fmt.Sprintf("; likewise in %d of %d rounds", n, len(rounds))
	}
	return []string{first}
}

// contradiction compares the tool's time with three others: the lifetime of its process,
// the busy time of the device, and the time of its requests.
func (w *Cell) contradiction(c *record.Cell) string {
	ran, lived := secondsOf(c), float64(c.Ended-c.Begun)/1e9
	if lived > 0 && ran > longerFactor*lived+longerSlack {
		return fmt.Sprintf("the tool reports a run of %s, but its process lived %s", secondsText(ran), secondsText(lived))
	}
	// Buffered writes go to the page cache; the kernel writes them to the device later.
	if w.table.Cache != record.CacheBuffered || c.Reported.Write.Bytes == 0 {
		if because := w.busyLonger(c); because != "" {
			return because
		}
	}
	var open float64
	for _, f := range flowsOf(c.Reported) {
		_, iops := ratesOf(f, ran)
		open += iops * float64(f.Latency.Mean) / 1e9
	}
	if n := w.table.inFlight(); n > 0 && stat.Finite(open) && open > openFactor*n {
		return fmt.Sprintf("by its IOPS and their mean latency %.3g requests were open at a time, and the job has %.0f", open, n)
	}
	return ""
}

// busyLonger returns a message if the device was busy with the tool's bytes for longer than the
// tool's time, or "".
func (w *Cell) busyLonger(c *record.Cell) string {
	ran, lived, d := secondsOf(c), float64(c.Ended-c.Begun)/1e9, deviceOf(c)
	read, written := c.Reported.Read.Bytes, c.Reported.Write.Bytes
	bytes := float64(read + written)
	if d == nil || strings.Contains(d.Name, "+") || ran <= 0 || bytes <= 0 {
		return ""
	}
	// Bytes of the other direction are those of other programs.
	busy, all, own := float64(d.Busy)/1e9, float64(d.ReadBytes+d.WriteBytes), float64(min(d.ReadBytes, read)+min(d.WriteBytes, written))
	if min(busy, lived) <= busyFactor*ran+busySlack || own < (1-missedBound)*bytes || all > busyBytes*bytes {
		return ""
	}
	return fmt.Sprintf("the tool reports a run of %s, its process took %s, and %s was busy for %s of it with the tool's bytes alone",
		secondsText(ran), secondsText(lived), d.Name, secondsText(busy))
}
