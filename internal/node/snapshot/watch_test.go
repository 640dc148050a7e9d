package snapshot

import (
	"slices"
	"testing"
)

func TestALongSeriesIsKeptAtHalfThePace(t *testing.T) {
	w := &watch{values: map[string][]int64{}, pace: 1}
	for at := range int64(3 * maxTicks) {
		w.tick(at)
	}
	if w.pace != 4 || len(w.times) > maxTicks || !slices.IsSorted(w.times) {
		t.Fatalf("pace %d, %d ticks", w.pace, len(w.times))
	}
	for i := 1; i < len(w.times); i++ {
		if w.times[i]-w.times[i-1] > int64(w.pace) {
			t.Fatalf("a gap from %d to %d", w.times[i-1], w.times[i])
		}
	}
	for name, values := range w.values {
		if len(values) != len(w.times) {
			t.Errorf("%s: %d values at %d ticks", name, len(values), len(w.times))
		}
	}
}
