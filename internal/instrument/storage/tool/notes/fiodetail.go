package notes

import (
	"math"
	"regexp"
	"strings"

	"github.com/tare-bench/tare/record"
)

// fioDetail reads latencies and counts, which follow their direction's figures.
func (s *scanner) fioDetail(text string) bool {
	f := &s.fio
	if strings.HasPrefix(text, "clat percentiles") {
		f.quantiles, f.unit = true, nanoseconds(text)
		return true
	}
	if strings.HasPrefix(text, "|") {
		if f.quantiles {
			f.job.last.Latency = quantiles(f.job.last.Latency, text, f.unit)
		}
		return true
	}
	f.quantiles = false
	if m := fioLatency.FindStringSubmatch(text); m != nil {
		if m[1] == "clat" {
			unit := float64(nanoseconds("(" + m[2] + ")"))
			most, _ := quantity(m[3], m[4], 1000)
			mean, _ := quantity(m[5], m[6], 1000)
			f.job.last.Latency.Max, f.job.last.Latency.Mean = spanOf(most*unit), spanOf(mean*unit)
		}
		return true
	}
	for _, issued := range []*regexp.Regexp{fioIssued3, fioIssued2} {
		if m := issued.FindStringSubmatch(text); m != nil {
			if f.job.read {
				f.job.claim.Read.IOs = whole(m[1])
			}
			if f.job.write {
				f.job.claim.Write.IOs = whole(m[2])
			}
			return true
		}
	}
	return false
}

// nanoseconds is the unit that stands in a line, "(usec)".
func nanoseconds(text string) int64 {
	switch {
	case strings.Contains(text, "(usec)"):
		return 1000
	case strings.Contains(text, "(msec)"):
		return 1000_000
	}
	return 1
}

// spanOf is a latency in ns; 0, not said, for what cannot be one.
func spanOf(ns float64) int64 {
	if math.IsNaN(ns) || ns < 0 || ns > 30*86400e9 {
		return 0
	}
	return int64(math.Round(ns))
}

func quantiles(l record.Latency, text string, unit int64) record.Latency {
	for _, m := range fioQuantile.FindAllStringSubmatch(text, 20) {
		ns := spanOf(float64(whole(m[2])) * float64(unit))
		switch m[1] {
		case "50.00":
			l.P50 = ns
		case "95.00":
			l.P95 = ns
		case "99.00":
			l.P99 = ns
		case "99.90":
			l.P999 = ns
		}
	}
	return l
}
