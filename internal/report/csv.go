package report

import (
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

func nanoseconds(v float64) string { return fixed(v, 0) }

func fixed(v float64, decimals int) string {
	if !finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// harmless keeps a spreadsheet from taking a text for a formula.
func harmless(s string) string {
	s = term.Clean(s)
	if s != "" && strings.Contains("=+-@", s[:1]) {
		return "'" + s
	}
	return s
}
