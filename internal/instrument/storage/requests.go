package storage

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
)

// A page cache can serve a direct job although the device sees every byte. It reads ahead
// in large requests, or merges writes. The bytes are then correct, but the number of
// requests is too low.

// Thresholds for the device's requests of a direct job.
const (
	joinedFactor = 0.5 // of the fewest requests that direct I/O can cause
	sparse       = 16  // blocks per concurrent request, above which random ones are rarely adjacent
)

// most returns the maximum of concurrent requests of a job, or 0 if unknown. It uses the
// job's fields or the options of its job file.
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

// least returns the minimum of device requests per direct I/O, or 0 if unknown. A thread
// issues an I/O only after its previous one, so only concurrent I/Os can be merged. They
// also have to be adjacent, which random I/Os in large files are not. Splitting an I/O
// only adds requests.
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

// joined returns why a direct job did not reach the device unchanged, or "". One sign is
// that the device had far fewer requests than direct I/O can cause. The other is that it
// had fewer requests than the job made, while the page cache grew by the moved bytes.
func (w *Cell) joined(e *evidence) string {
	least := w.table.least()
	for d := range directionCount {
		if e.claimed[d] <= countsShare*e.claimed.sum() || e.requests.both[d] == 0 {
			continue
		}
		fewer := e.requests.both[d] < joinedFactor*least*e.asked[d]
		cached := e.requests.both[d] < joinedFactor*e.asked[d] && e.cached >= growthPart*e.claimed[d]
		if !fewer && !cached {
			continue
		}
		how := [directionCount]string{"read ahead", "joined them"}[d]
		text := fmt.Sprintf("%s %s the %.0f I/Os of the tool in %.0f requests: a page cache %s, although the device saw every byte",
			e.deviceName(), [directionCount]string{"answered", "took"}[d], e.asked[d], e.requests.both[d], how)
		if e.cached >= growthPart*e.claimed[d] {
			text += "; the node's grew by " + finding.Bytes(e.cached)
		}
		return text
	}
	return ""
}

// ownThreads explains that several threads read the whole of one file. The page cache
// then serves all but the first read of each block. It returns "" for other jobs.
func (t *Table) ownThreads() string {
	n := max(t.job.NumJobs, 1)
	if t.Tool != ToolFio || n < 2 || max(t.job.Files, 1) > 1 || !strings.Contains(t.RW, "read") && !strings.Contains(t.RW, "rw") {
		return ""
	}
	return fmt.Sprintf("%d threads read the same file, so all but the first read of each block come from memory: use --numjobs 1 to avoid that", n)
}
