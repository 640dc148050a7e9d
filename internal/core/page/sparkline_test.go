package page

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/term"
)

func TestSparkline(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		values []float64
		width  int
		want   string
	}{
		{"rises from the bottom to the top", []float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, "▁▂▃▄▅▆▇█"},
		{"falls", []float64{7, 0}, 8, "█▁"},
		{"has no more characters than values", []float64{1, 2}, 40, "▁█"},
		{"is resampled by the mean", []float64{0, 2, 8, 6, 14, 14}, 3, "▁▄█"},
		{"does not lose a peak's share", []float64{0, 0, 0, 8, 0, 0}, 3, "▁█▁"},
		{"leaves a space for a gap", []float64{0, nan, 4}, 3, "▁ █"},
		{"takes the neighbour's value where a gap is narrower than a character", []float64{0, nan, 4, 4}, 2, "▁█"},
		{"is at the bottom where all is zero", []float64{0, 0, 0}, 3, "▁▁▁"},
		{"is half high where nothing changes", []float64{5, 5, 5}, 3, "▄▄▄"},
		{"does not stretch noise", []float64{1000, 1001, 999, 1000}, 4, "▄▄▄▄"},
		{"goes below zero", []float64{-7, 0}, 2, "▁█"},
		{"is empty without values", nil, 10, ""},
		{"is empty without room", []float64{1, 2}, 0, ""},
		{"is nothing but gaps where nothing was read", []float64{nan, math.Inf(1)}, 2, "  "},
		{"survives the largest numbers", []float64{-math.MaxFloat64, math.MaxFloat64}, 2, "▁█"},
	} {
		if got := sparkline(tt.values, tt.width); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestASparklineIsAsWideOnATerminalAsItHasCharacters(t *testing.T) {
	values := make([]float64, 1000)
	for i := range values {
		values[i] = math.Sin(float64(i) / 50)
	}
	for width := range 60 {
		got := sparkline(values, width)
		if utf8.RuneCountInString(got) != width || term.Width(got) != width {
			t.Errorf("%d: %q has %d characters in %d columns", width, got, utf8.RuneCountInString(got), term.Width(got))
		}
	}
	if strings.Trim(sparkline(values, 40), string(bars)) != "" {
		t.Error("there is something else in it")
	}
}
