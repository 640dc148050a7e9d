package notes

import (
	"math"
	"strings"

	"github.com/tare-bench/tare/internal/plan"
)

// dedupe leaves out what a table repeats of an output in the same text, and
// gives the rest the units of that side's tool. It returns how many were left
// out, and the lines of those that say too little to stand alone.
func (n *Notes) dedupe() (twice int, unread []int) {
	raw := map[string][]*Result{}
	for i := range n.Results {
		if r := &n.Results[i]; !r.table {
			raw[r.Target] = append(raw[r.Target], r)
		}
	}
	kept := n.Results[:0:0]
	for _, r := range n.Results {
		if r.table && repeats(&r, raw[r.Target]) {
			twice++
			continue
		}
		if r.total > 0 {
			unread = append(unread, r.Line)
			continue
		}
		if r.table && r.Job.Tool == plan.ToolDD {
			r.Claim.Write.Bandwidth *= unitOf(r, raw[r.Target])
			r.Claim.Read.Bandwidth *= unitOf(r, raw[r.Target])
		}
		kept = append(kept, r)
	}
	n.Results = kept
	return twice, unread
}

func repeats(r *Result, raw []*Result) bool {
	for _, o := range raw {
		if o.Job.Tool != r.Job.Tool || o.prepare != r.prepare {
			continue
		}
		switch a, b := r.Claim, o.Claim; {
		case r.total > 0:
			if close(r.total, b.Read.Bandwidth+b.Write.Bandwidth) {
				return true
			}
		case r.prepare, a.Read.Bandwidth > 0 && a.Write.Bandwidth > 0:
			if close(a.Read.Bandwidth, b.Read.Bandwidth) && close(a.Write.Bandwidth, b.Write.Bandwidth) && close(a.Seconds, b.Seconds) {
				return true
			}
		case r.Job.RW != o.Job.RW:
		case a.Read.IOPS+a.Write.IOPS > 0:
			if math.Round(a.Read.IOPS) == math.Round(b.Read.IOPS) && math.Round(a.Write.IOPS) == math.Round(b.Write.IOPS) {
				return true
			}
		case r.printed != "" && r.printed == o.printed:
			return true
		}
	}
	return false
}

// close says whether two figures are one, written with four digits or so.
func close(a, b float64) bool { return math.Abs(a-b) <= 0.0002*math.Max(a, b) }

// unitOf is what a table's MB/s has to be multiplied by: busybox' dd means
// powers of 1024 and writes no "i"; whether a side had that shows in its outputs.
func unitOf(r Result, raw []*Result) float64 {
	m := ddPrinted.FindStringSubmatch(r.printed + "/s")
	if m == nil || strings.Contains(m[2], "i") {
		return 1
	}
	for _, o := range raw {
		p := ddPrinted.FindStringSubmatch(o.printed + "/s")
		if o.Job.Tool != plan.ToolDD || p == nil || o.Claim.Seconds <= 0 {
			continue
		}
		real := float64(o.Claim.Read.Bytes+o.Claim.Write.Bytes) / o.Claim.Seconds
		if nearer(p[1], strings.TrimSuffix(p[2], "B"), real) == 1024 {
			binary, _ := quantity(m[1], strings.TrimSuffix(m[2], "B"), 1024)
			thousand, _ := quantity(m[1], strings.TrimSuffix(m[2], "B"), 1000)
			return binary / thousand
		}
	}
	return 1
}
