//go:build prove

package cri

import (
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/enginetest"
)

func TestHundredPodsAreConfirmedWithinSeconds(t *testing.T) {
	u := onCRIO(t)
	s := opened(t, u, "crun", enginetest.Environment(t, 100))
	for _, op := range []subject.Op{subject.Run} {
		began := time.Now()
		var last int64
		for _, sample := range enginetest.Must(t, s, op, 100) {
			last = max(last, sample.Returned-sample.Start)
		}
		if rest := time.Since(began) - time.Duration(last); rest > 4*time.Second {
			t.Errorf("%s took %v to confirm", op, rest)
		}
	}
}
