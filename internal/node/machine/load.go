package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// Load returns the load average of the last minute: how many tasks wanted a
// CPU or waited for a disk, exponentially damped.
func (r Root) Load() (float64, error) {
	line, err := r.FirstLine("/proc/loadavg", 256)
	if err != nil {
		return 0, err
	}
	return parseLoad(line)
}

// parseLoad reads /proc/loadavg, "0.01 0.35 0.31 1/87 10696".
func parseLoad(line string) (float64, error) {
	fields := strings.Fields(line)
	if len(fields) != 5 || !isDecimal(fields[0]) {
		return 0, fmt.Errorf("parse /proc/loadavg: want five fields such as %q, got %.80q", "0.01 0.35 0.31 1/87 10696", line)
	}
	load, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 0, fmt.Errorf("parse /proc/loadavg: %w", err)
	}
	return load, nil
}

// isDecimal keeps out what ParseFloat takes and no kernel writes: signs,
// exponents, NaN, hexadecimal digits.
func isDecimal(s string) bool {
	whole, part, _ := strings.Cut(s, ".")
	return isDigits(whole) && isDigits(part) && len(s) <= 32
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
