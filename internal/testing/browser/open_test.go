//go:build prove

package browser

import (
	"slices"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
)

// The time depends on the machine; a quiet one with two CPUs is far below the limit.
func TestHundredThousandSamplesOpenWithinThreeSeconds(t *testing.T) {
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
