package snapshot

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestLongSeriesKeepsEverySecondTick(t *testing.T) {
	w := &watch{values: map[string][]int64{}, pace: 1}
	for at := range int64(3 * maxTicks) {
		w.tick(at)
	}
	must.That(t, w.pace == 4 && len(w.times) <= maxTicks && slices.IsSorted(w.times), "pace %d, %d ticks", w.pace, len(w.times))
	for i := 1; i < len(w.times); i++ {
		must.That(t, w.times[i]-w.times[i-1] <= int64(w.pace), "gap from %d to %d", w.times[i-1], w.times[i])
	}
	for name, values := range w.values {
		check.Equal(t, name, len(values), len(w.times))
	}
}
