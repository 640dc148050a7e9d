//go:build prove

package containerd

import (
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
)

func TestHundredLanesAreConfirmedWithinSeconds(t *testing.T) {
	d := engines.Containerd(t, engines.V2)
	s := open(t, d, "crun", enginetest.Environment(t, 100))
	for _, op := range subject.ContainerOps[:3] {
		began := time.Now()
		var last int64
		for _, sample := range enginetest.Must(t, s, op, 100) {
			last = max(last, sample.Returned-sample.Start)
		}
		rest := time.Since(began) - time.Duration(last)
		check.That(t, rest <= 3*time.Second, "%s took %v to confirm", op, rest)
	}
}
