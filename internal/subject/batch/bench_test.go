package batch

import (
	"context"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/must"
)

// BenchmarkCall makes a call that does nothing: what lies between its two stamps is
// what tare adds to a call of an engine's API, and the rest is armed and collected
// outside of what is timed.
func BenchmarkCall(b *testing.B) {
	var window, wake int64
	for b.Loop() {
		armed, err := PrepareCalls([]Call{{Timeout: 10 * time.Second, Do: func(context.Context) error { return nil }}})
		must.OK(b, err)
		released, samples, err := armed.Start(b.Context())
		if err != nil || samples[0].Failure != nil {
			b.Fatal(err, samples)
		}
		window += samples[0].Returned - samples[0].Start
		wake += samples[0].Start - released
	}
	b.ReportMetric(float64(window)/float64(b.N), "window-ns/op")
	b.ReportMetric(float64(wake)/float64(b.N), "wake-ns/op")
}
