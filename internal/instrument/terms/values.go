package terms

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
)

// Formats of values, the same in plans and in flags.
var (
	Memory = option.Written(ParseMemory, nil, either("integer", `^\s*[0-9]+\s*([KMGT]i?B?|ki?B?|B)?\s*$`))
	CPU    = option.Written(parseCPULimit, nil, either("number", cpuPattern))
	// MilliCPU is in thousandths of a CPU.
	MilliCPU = option.Written(ParseMilliCPU, nil, either("number", cpuPattern))
	// Precision is the target half width of intervals, relative to the median. Margin is the difference
	// below which targets count as the same.
	Precision = option.Written(fraction("precision", ", or none for exactly the requested rounds"), unlessZero, either("number", sharePattern))
	Margin    = option.Written(fraction("margin", ""), unlessZero, either("number", sharePattern))
	Scale     = option.Written(parseScale, nil, either("number", sharePattern))
)

const sharePattern = `^\s*[0-9.]+\s*%?\s*$`

const cpuPattern = `^\s*([0-9]+m|[0-9]+\.?[0-9]*|\.[0-9]+)\s*$`

func either(kind, pattern string) option.Schema {
	return option.Schema{"anyOf": []option.Schema{{"type": kind, "minimum": 0}, {"type": "string", "pattern": pattern}}}
}

func unlessZero(p float64) string {
	if p == 0 {
		return ""
	}
	return strconv.FormatFloat(p, 'g', -1, 64)
}

// fraction parses "5%" or "0.05". The result must be between 0 and 1, exclusive.
func fraction(what, otherwise string) func(string) (float64, error) {
	return func(s string) (float64, error) {
		p, err := share(s)
		if err != nil || !(p > 0 && p < 1) {
			return 0, fmt.Errorf("%s is not a %s: write one above 0 and below 1, such as 5%% or 0.05%s", option.Quote(s), what, otherwise)
		}
		return p, nil
	}
}

// isFraction returns a check that a value is between 0 and 1, exclusive.
func isFraction(what string) func(float64) error {
	return func(p float64) error {
		if !(p > 0 && p < 1) {
			return fmt.Errorf("%g is not a %s: it has to be above 0 and below 1, such as 0.05", p, what)
		}
		return nil
	}
}

// Checks of fractions.
var (
	CheckMargin    = isFraction("margin")
	CheckPrecision = isFraction("precision")
)

func share(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	p, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		p /= 100
	}
	return p, err
}

// Bounds of a scale.
const (
	minScale = 0.000001
	maxScale = 1000
)

// ValidScale reports whether a scale is valid. 0 means 1. NaN is invalid.
func ValidScale(scale float64) bool {
	return scale == 0 || (scale >= minScale && scale <= maxScale)
}

// CheckScale returns an error if the scale is invalid.
func CheckScale(scale float64) error {
	if !ValidScale(scale) {
		return fmt.Errorf("%g is not a scale: write one from 0.000001 to %d, such as 0.01", scale, maxScale)
	}
	return nil
}

// parseScale parses a factor for sizes, counts and times: "0.01" or "1%".
func parseScale(s string) (float64, error) {
	scale, err := share(s)
	if strings.ContainsAny(s, "+-eExXpPnN_") || err != nil || !ValidScale(scale) {
		return 0, fmt.Errorf("%s is not a scale: write one from 0.000001 to %d, such as 0.01 or 1%%", option.Quote(s), maxScale)
	}
	return scale, nil
}

// ScaleHelp is the help of scale options.
const ScaleHelp = "multiply the sizes, counts and times of loads: 0.01 for a short trial"

// ScaleFlag declares --scale for a measurement without a scale field in its plan. The options
// themselves are scaled.
func ScaleFlag(s *option.Set, apply func(scale float64) error) {
	scale := 1.0
	option.Var(s, &scale, "", ScaleHelp, Scale, option.Flag("scale"))
	s.Before(func(context.Context) error {
		switch {
		case !s.Given("scale"):
			return nil
		case scale == 0:
			return NoScale()
		}
		return apply(scale)
	})
}

// NoScale returns the error for a scale of 0.
func NoScale() error {
	return option.WrongFlag("scale", "0 leaves nothing to do: write a factor such as 0.01, or omit the flag")
}

// memoryUnits are the units of Kubernetes quantities, with and without B. Longer units come first, so
// that Mi is not read as M.
var memoryUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"B", 1},
}

// ParseMemory parses "512Mi", "512MiB", "512M" (10^6) or a number of bytes.
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
		return 0, fmt.Errorf("%s is not an amount of memory: write a whole number with or without a unit, such as 512Mi, 1GiB or 536870912", option.Quote(s))
	}
	return n * unit, nil
}

// ParseCPUs parses a decimal number without exponent, sign or NaN.
func ParseCPUs(s string) (float64, bool) {
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

// parseCPULimit parses a Kubernetes CPU quantity: "1", "0.5" or "500m". Unlike Kubernetes, it accepts
// fractions of a thousandth.
func parseCPULimit(s string) (float64, error) {
	if n, ok := ParseCPUs(strings.TrimSpace(s)); ok {
		return n, nil
	}
	milli, err := ParseMilliCPU(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number of CPUs: write one such as 1, 0.5 or 500m", option.Quote(s))
	}
	return float64(milli) / 1000, nil
}

// ParseMilliCPU parses a Kubernetes CPU quantity ("250m", "0.25" or "1") into thousandths of a CPU,
// the finest unit of Kubernetes.
func ParseMilliCPU(s string) (int64, error) {
	number, milli := strings.CutSuffix(strings.TrimSpace(s), "m")
	n, ok := ParseCPUs(number)
	if milli {
		ok = ok && !strings.Contains(number, ".")
	} else {
		n *= 1000
	}
	rounded := math.Round(n)
	if !ok || math.Abs(n-rounded) > 1e-6 || rounded > MaxCPU*1000 {
		return 0, fmt.Errorf("%s is not an amount of CPU: write it as in Kubernetes, such as 250m, 0.25 or 1, up to %d and no finer than 1m", option.Quote(s), MaxCPU)
	}
	return int64(rounded), nil
}
