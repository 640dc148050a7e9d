package report

import (
	"fmt"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
)

// Shares of CPU are of one core or of the node, and every title says of which, in
// words so short that a table has both.
const (
	ofACore   = "core %"
	ofTheNode = "node %"
)

// hundred is a share in percent without the sign, which stands in the title.
func hundred(share float64) string {
	switch v := 100 * share; {
	case !finite(v):
		return "?"
	case v > 0 && v < 0.005:
		return "<0.01"
	default:
		return digits(v)
	}
}

// inBrackets is a median with its interval in brackets, where there are enough
// rounds for one.
func inBrackets(e judge.Estimate, show func(float64) string) cell {
	if !e.Known {
		return plain(none)
	}
	c := plain(show(e.Value))
	if e.Bounded {
		c.tail = "[" + show(e.Lo) + ", " + show(e.Hi) + "]"
	}
	return c
}

// valued is a median alone: its interval would make a table of many columns wide.
func valued(e judge.Estimate, show func(float64) string) cell {
	if !e.Known {
		return plain(none)
	}
	return plain(show(e.Value))
}

// ofNode turns a share of one core into one of the node's.
func ofNode(e judge.Estimate, cpus int) judge.Estimate {
	if cpus <= 0 {
		return judge.Estimate{}
	}
	n := float64(cpus)
	e.Value, e.Lo, e.Hi = e.Value/n, e.Lo/n, e.Hi/n
	return e
}

// bytesOf is an amount of memory, – where it is not known.
func bytesOf(n int64) cell {
	if n < 0 {
		return plain(none)
	}
	return plain(size(float64(n)))
}

// both adds two amounts up, where both are known.
func both(a, b int64) int64 {
	if a < 0 || b < 0 || a+b < 0 {
		return -1
	}
	return a + b
}

// amount is a whole number with its noun: "1 connection", "65535 rounds".
func amount[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// cpuLimit is a number of CPUs: "1 CPU", "0.2 CPUs".
func cpuLimit(cpus float64) string {
	text := strconv.FormatFloat(cpus, 'g', 4, 64)
	if text == "1" {
		return "1 CPU"
	}
	return text + " CPUs"
}

// unless leaves out a column that knows nothing of any row.
func (m *matrix) unless(title string, cells []cell) {
	for _, c := range cells {
		if c.head != none {
			m.onlyIf(title, cells)
			return
		}
	}
}
