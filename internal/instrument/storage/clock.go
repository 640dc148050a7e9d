package storage

import (
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// The bounds beyond which what a tool says of its time is contradicted. They are wide:
// readings lie around the job, and a tool leaves its beginning and end out of its time.
const (
	longerFactor = 1.1  // times as long as the tool's process lived, and
	longerSlack  = 0.1  // s
	busyFactor   = 1.5  // times as long as the tool ran, the device worked for it, and
	busySlack    = 0.2  // s
	busyBytes    = 1.25 // times the claimed bytes, and no more, the device moved then
	openFactor   = 1.5  // times as many requests as the job has can be open at a time
)

// contradicted returns why the tool's time cannot be true in most of the rounds, or nil.
func (w *Cell) contradicted(rounds []*record.Cell) []string {
	return inMost(rounds, w.contradiction)
}

// writtenLater returns how the kernel wrote to the device, in most of the rounds, after
// the tool's time was over; or nil.
func (w *Cell) writtenLater(rounds []*record.Cell) []string {
	return inMost(rounds, w.busyLonger)
}

// inMost returns the first answer of why if most of the rounds have one, or nil.
func inMost(rounds []*record.Cell, why func(*record.Cell) string) []string {
	var first string
	n := 0
	for _, c := range rounds {
		if because := why(c); because != "" {
			n++
			if first == "" {
				first = because
			}
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

// contradiction holds a tool's own time against three others: that of its process, that
// in which the device worked for it, and that which its requests took.
func (w *Cell) contradiction(c *record.Cell) string {
	ran, lived := secondsOf(c), float64(c.Ended-c.Begun)/1e9
	if lived > 0 && ran > longerFactor*lived+longerSlack {
		return fmt.Sprintf("the tool says that it ran %s, and its process lived %s", secondsText(ran), secondsText(lived))
	}
	// The page cache takes what is written, and the kernel writes it to the device later.
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

// busyLonger returns how much longer than the tool ran the device worked for its bytes,
// or "".
func (w *Cell) busyLonger(c *record.Cell) string {
	ran, lived, d := secondsOf(c), float64(c.Ended-c.Begun)/1e9, deviceOf(c)
	bytes := float64(c.Reported.Read.Bytes + c.Reported.Write.Bytes)
	if d == nil || strings.Contains(d.Name, "+") || ran <= 0 || bytes <= 0 {
		return ""
	}
	busy, part := float64(d.Busy)/1e9, float64(d.ReadBytes+d.WriteBytes)/bytes
	if min(busy, lived) <= busyFactor*ran+busySlack || part < 1-missedBound || part > busyBytes {
		return ""
	}
	return fmt.Sprintf("the tool says that it ran %s, its process took %s, and %s was busy for %s of it with the tool's bytes alone",
		secondsText(ran), secondsText(lived), d.Name, secondsText(busy))
}
