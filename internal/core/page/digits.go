package page

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
)

// Rounded formats an estimate's value with the digits that its interval justifies. It rounds
// at the first digit of the larger half-interval: 24.63 ± 0.4 becomes 24.6. If that digit is 1,
// it keeps one more place. A value has at least two digits. If show writes fewer than three
// digits, Rounded may add some.
func Rounded(e figure.Estimate, show func(float64) string) string {
	return at(e, e.Value, show)
}

// HalfOf formats the larger half of an estimate's interval in the unit of show, with the
// digits of [Rounded]. It returns "" without an interval.
func HalfOf(e figure.Estimate, show func(float64) string) string {
	if !e.Bounded {
		return ""
	}
	return at(e, half(e), show)
}

// Bound formats a bound of an estimate's interval with the digits of [Rounded].
func Bound(e figure.Estimate, v float64, show func(float64) string) string { return at(e, v, show) }

func half(e figure.Estimate) float64 { return max(e.Hi-e.Value, e.Value-e.Lo) }

// number matches the output of a show function: sign, digits and unit.
var number = regexp.MustCompile(`^([-+]?)(\d+)(\.\d+)?( .*)?$`)

// at formats a value, such as a bound, with the same last decimal place as the estimate.
func at(e figure.Estimate, v float64, show func(float64) string) string {
	text, h := show(v), half(e)
	parts := number.FindStringSubmatch(text)
	if !e.Bounded || !(h > 0) || !stat.Finite(h) || v == 0 || parts == nil {
		return text
	}
	shown, _ := strconv.ParseFloat(parts[2]+parts[3], 64)
	finest := min(1-len(parts[3]), 0) // place of the last digit
	if len(parts[3]) == 2 && len(strings.TrimLeft(parts[2], "0")) < 2 && parts[4] == "" {
		// One decimal may hide digits that the interval justifies. Format 1000 times the value
		// to get them.
		if more, err := strconv.ParseFloat(show(1000*math.Abs(v)), 64); err == nil && more > 0 {
			shown = more / 1000
			finest = min(finest, exponent(shown)-2)
		}
	}
	if shown == 0 {
		return text
	}
	h *= shown / math.Abs(v) // in the displayed unit
	last := exponent(h)
	if h < 2*math.Pow10(last) {
		last--
	}
	last = max(min(last, exponent(shown)-1), finest) // at least two digits
	unit := math.Pow10(last)
	return parts[1] + strconv.FormatFloat(math.Round(shown/unit)*unit, 'f', max(-last, 0), 64) + parts[4]
}

// exponent returns the place of the first digit: 0 for 7, −1 for 0.7.
func exponent(v float64) int { return int(math.Floor(math.Log10(v))) }
