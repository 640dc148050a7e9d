//go:build prove

package browser

import (
	"slices"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
)

// How long it takes depends on the machine: a quiet one of two CPUs keeps the bound
// with much room.
func TestAHundredThousandSamplesOpenInUnderThreeSeconds(t *testing.T) {
	html := report(t, large(t, manySamples))
	var times []time.Duration
	for range 5 {
		p := newTab(t)
		began := time.Now()
		p.show("large", html)
		p.await(drawn)
		p.run(painted, nil)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	t.Logf("%d bytes, opened and drawn in %v", len(html), times)
	check.That(t, times[len(times)/2] <= 3*time.Second, "the median of %v", times)
}
