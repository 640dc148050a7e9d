package option

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseDuration parses a duration such as "10m". For a plain number, the error asks for a unit.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	if _, bare := strconv.ParseFloat(s, 64); bare == nil {
		return 0, fmt.Errorf("%s has no unit: write %ss for seconds, or another of ms, s, m, h", Quote(s), s)
	}
	return 0, fmt.Errorf("%s is not a duration: write a number with its unit, such as 500ms, 60s, 10m or 1h30m", Quote(s))
}

// FormatDuration formats a duration without trailing zero units: "1m" instead of "1m0s".
func FormatDuration(d time.Duration) string {
	s := d.String()
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return s
}
