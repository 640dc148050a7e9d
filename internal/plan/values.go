package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The forms in which people write values, the same in a plan and in a flag.

// ParsePrecision reads "5%" or "0.05": the half width, as a share of the
// median, that every interval has to reach.
func ParsePrecision(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	p, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		p /= 100
	}
	if err != nil || !validPrecision(p) {
		return 0, fmt.Errorf("%s is not a precision: write one above 0 and below 1, such as 5%% or 0.05, or none for exactly as many rounds as are asked for", quote(s))
	}
	return p, nil
}

// validPrecision is false for NaN too.
func validPrecision(p float64) bool {
	return p > 0 && p < 1
}

// ParseLanes reads batch sizes such as "1,10,100".
func ParseLanes(s string) ([]int, error) {
	return parseCounts(s, "lanes", "1,10,100", lanesComplaints)
}

func parseCounts(s, of, example string, complaints func([]int) []complaint) ([]int, error) {
	var counts []int
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return nil, fmt.Errorf("%s is not a list of %s: write whole numbers with commas between, such as %s", quote(s), of, example)
		}
		counts = append(counts, n)
	}
	if found := complaints(counts); len(found) > 0 {
		return nil, found[0]
	}
	return counts, nil
}

// memoryUnits are those of Kubernetes quantities, with and without the B. The
// longest come first, so that Mi is not read as M and a rest.
var memoryUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"B", 1},
}

// ParseMemory reads "512Mi", "512MiB", "512M" (10^6) or a number of bytes.
func ParseMemory(s string) (int64, error) {
	number, unit := strings.TrimSpace(s), int64(1)
	for _, u := range memoryUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%s is not an amount of memory: write a whole number with or without a unit, such as 512Mi, 1GiB or 536870912", quote(s))
	}
	return n * unit, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	if _, bare := strconv.ParseFloat(s, 64); bare == nil {
		return 0, fmt.Errorf("%s has no unit: write %ss for seconds, or another of ms, s, m, h", quote(s), s)
	}
	return 0, fmt.Errorf("%s is not a duration: write a number with its unit, such as 500ms, 60s, 10m or 1h30m", quote(s))
}

// formatDuration writes "1m" where time.Duration writes "1m0s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return s
}

// quote shows what was written.
func quote(s string) string {
	return strconv.Quote(shorten(s))
}

// shorten cuts what was written to what fits in a line.
func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
