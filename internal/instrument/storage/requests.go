package storage

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
)

// A page cache can answer a direct job without that a byte is missing at the
// device: it reads ahead, each byte once and in large requests, or it joins what
// was written. Then the bytes are right and the number of requests is not.

// The bounds of what a device's requests say of direct I/O.
const (
	joinedFactor = 0.5 // of the least requests that direct I/O can become
	sparse       = 16  // blocks for each request in flight, from which on random ones do not meet
)

// most is how many requests a job has open at a time, by its fields or by the
// options of its job file; 0 where that cannot be told.
func (t *Table) most() float64 {
	if len(t.job.Options) == 0 {
		return t.inFlight()
	}
	total := 0.0
	for _, job := range FileJobs(t.job.Options) {
		n := 1.0
		for _, name := range []string{"numjobs", "iodepth"} {
			v, err := strconv.Atoi(cmp.Or(job.Options[name], "1"))
			if err != nil {
				return 0
			}
			n *= float64(max(v, 1))
		}
		total += n
	}
	return total
}

// least is how many requests a device gets at least for an I/O that a job made
// past the page cache. A thread's next I/O follows when the one before is done,
// so that only those can be joined that are open at a time, and only if they lie
// beside each other: random ones in large files do not. Splitting makes more. 0 where
// it is not known how many are open.
func (t *Table) least() float64 {
	n := t.most()
	switch {
	case n == 0:
		return 0
	case t.random() && len(t.job.Options) == 0 && t.BS > 0 && float64(t.job.Bytes()/t.BS) >= sparse*n:
		return 1
	}
	return 1 / n
}

// joined says that a direct job did not reach the device as it was made: that had
// far fewer requests than direct I/O can become, or than were made while the page
// cache grew by what they moved. "" where it did, or nothing can tell.
func (w *Cell) joined(e *evidence) string {
	least := w.table.least()
	for d := range directionCount {
		if e.claimed[d] <= countsShare*e.claimed.sum() || e.requests[d] == 0 {
			continue
		}
		fewer := e.requests[d] < joinedFactor*least*e.asked[d]
		cached := e.requests[d] < joinedFactor*e.asked[d] && e.cached >= growthPart*e.claimed[d]
		if !fewer && !cached {
			continue
		}
		how := [directionCount]string{"read ahead", "joined them"}[d]
		text := fmt.Sprintf("%s %s the %.0f I/Os of the tool in %.0f requests: a page cache %s, and every byte passed it",
			e.deviceName(), [directionCount]string{"answered", "took"}[d], e.asked[d], e.requests[d], how)
		if e.cached >= growthPart*e.claimed[d] {
			text += "; the node's grew by " + finding.Bytes(e.cached)
		}
		return text
	}
	return ""
}

// ownThreads says that a job's threads read one file, each all of it, so that a
// page cache has to have all but the first of each block.
func (t *Table) ownThreads() string {
	n := max(t.job.NumJobs, 1)
	if t.Tool != ToolFio || n < 2 || max(t.job.Files, 1) > 1 || !strings.Contains(t.RW, "read") && !strings.Contains(t.RW, "rw") {
		return ""
	}
	return fmt.Sprintf("%d threads go through the same file, so that of each block all but the first reading come from memory: --numjobs 1 is without that", n)
}
