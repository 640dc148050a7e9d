package startup

import (
	"math"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
)

// tookCell formats the median of a time and the larger half of its interval.
func tookCell(f *figure.Figure) page.Cell {
	return page.WithHalf(f, page.Duration, page.None)
}

// boundedCell formats the median of a time and its interval in the same unit.
func boundedCell(f *figure.Figure) page.Cell {
	c := page.Value(f, page.Duration)
	if c.Figure != nil {
		c.Tail = bracketed(f.Estimate)
	}
	return c
}

// joined formats a cell as text.
func joined(c page.Cell) string {
	if c.Tail == "" {
		return c.Head
	}
	return c.Head + " " + c.Tail
}

// bracketed formats an interval in the unit of its median: "[238, 251]". It returns ""
// if there are too few starts for an interval.
func bracketed(e figure.Estimate) string {
	if !e.Bounded || !stat.Finite(e.Lo) || !stat.Finite(e.Hi) || !stat.Finite(e.Value) {
		return ""
	}
	unit := 1e9
	for _, u := range []float64{1, 1e3, 1e6} {
		if math.Abs(e.Value)/u < 999.5 {
			unit = u
			break
		}
	}
	return "[" + page.Digits(e.Lo/unit) + ", " + page.Digits(e.Hi/unit) + "]"
}

// since returns at - began. An overflow, possible only in made-up records, becomes the
// largest or smallest value.
func since(began, at int64) int64 {
	d := at - began
	switch {
	case at >= began && d < 0:
		return math.MaxInt64
	case at < began && d > 0:
		return math.MinInt64
	}
	return d
}
