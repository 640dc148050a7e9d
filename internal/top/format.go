package top

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// unknown stands for what cannot be said.
const unknown = "?"

// size writes bytes in at most six characters: 0, 712, 9.8K, 371.2M, 1.9G. Units
// are powers of 1024.
func size(m Maybe[int64]) string {
	if !m.OK {
		return unknown
	}
	return amount(float64(m.V))
}

func rate(m Maybe[float64]) string {
	if !m.OK {
		return unknown
	}
	return amount(m.V)
}

func amount(v float64) string {
	if v < 1023.5 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	for _, unit := range "KMGTP" {
		v /= 1024
		switch {
		case v < 999.95:
			return strconv.FormatFloat(v, 'f', 1, 64) + string(unit)
		case v < 1023.5:
			return strconv.FormatFloat(v, 'f', 0, 64) + string(unit)
		}
	}
	return strconv.FormatFloat(v/1024, 'f', 1, 64) + "E"
}

// percent writes a share of one as "12.3", CPUs as percent of one of them.
func percent(m Maybe[float64]) string {
	if !m.OK {
		return unknown
	}
	if v := m.V * 100; v < 999.95 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(m.V*100, 'f', 0, 64)
}

// cpus writes CPUs as "1.03".
func cpus(m Maybe[float64]) string {
	if !m.OK {
		return unknown
	}
	return strconv.FormatFloat(m.V, 'f', 2, 64)
}

// cut makes a text clean and at most as wide as that; "…" stands for the rest.
func cut(text string, width int) string {
	text = term.Clean(text)
	if width <= 0 {
		return ""
	}
	if len(text) <= width || term.Width(text) <= width {
		return text
	}
	used, end := 0, 0
	for i, r := range text {
		w := term.Width(string(r))
		if used+w > width-1 {
			break
		}
		used += w
		end = i + len(string(r))
	}
	return text[:end] + "…"
}

// pad cuts a text, or fills it with spaces, to a width.
func pad(text string, width int, right bool) string {
	text = cut(text, width)
	space := strings.Repeat(" ", max(0, width-term.Width(text)))
	if right {
		return space + text
	}
	return text + space
}

// flow sets texts one after the other into lines of a width.
func flow(texts []string, width int) []string {
	var lines []string
	line := ""
	for _, text := range texts {
		text = cut(text, width)
		switch {
		case line == "":
			line = text
		case term.Width(line)+3+term.Width(text) <= width:
			line += "   " + text
		default:
			lines = append(lines, line)
			line = text
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
