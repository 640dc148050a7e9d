package stat

import (
	"math"
	"testing"
)

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		sorted []float64
		q      float64
		want   float64
	}{
		{"p50 of a hundred is the median", hundred, 0.50, 50.5},
		{"p90 of a hundred is the ninetieth", hundred, 0.90, 90},
		{"p99 of a hundred is the ninety-ninth", hundred, 0.99, 99},
		{"rounding of q does not lift the rank", hundred, 0.07, 7},
		{"one is the largest", hundred, 1, 100},
		{"above one is the largest", hundred, 7, 100},
		{"zero is the smallest", hundred, 0, 1},
		{"below zero is the smallest", hundred, -1, 1},
		{"p99 of ten is the largest", hundred[:10], 0.99, 10},
		{"p50 of four is the median", hundred[:4], 0.5, 2.5},
		{"every quantile of one value is that value", hundred[:1], 0.9, 1},
		{"no values have no quantile", nil, 0.5, nan},
		{"a share that is no number has no quantile", hundred, nan, nan},
	} {
		if got := Quantile(tt.sorted, tt.q); !same(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestQuantilesSortAndKeepTheOrderAsked(t *testing.T) {
	got := Quantiles([]float64{3, 1, 2}, 1, 0, 0.5)
	if got[0] != 3 || got[1] != 1 || got[2] != 2 {
		t.Errorf("got %v", got)
	}
}

func TestQuantilesRefuseWhatIsNoNumber(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := Quantiles([]float64{1, bad, 2}, 0.5, 1); !math.IsNaN(got[0]) || !math.IsNaN(got[1]) {
			t.Errorf("with %v: got %v", bad, got)
		}
	}
}

func TestParallelism(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name      string
		latencies []float64
		makespan  float64
		want      float64
	}{
		{"one after the other is 1", []float64{10, 10, 10}, 30, 1},
		{"all side by side is their number", []float64{30, 30, 30}, 30, 3},
		{"a queue seen from outside lies between", []float64{10, 20, 30}, 30, 2},
		{"an empty batch did nothing", nil, 30, 0},
		{"a batch without a makespan has none", []float64{1}, 0, nan},
		{"nor with a negative one", []float64{1}, -1, nan},
		{"nor with an endless one", []float64{1}, math.Inf(1), nan},
		{"a negative latency is no latency", []float64{-1, 2}, 1, nan},
		{"what is no number is no latency", []float64{nan, 2}, 1, nan},
	} {
		if got := Parallelism(tt.latencies, tt.makespan); !same(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
