package tracer

import (
	"errors"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/must"
)

// Nobody waits for a ring that has ended, whoever forgets to ask.
func TestATracerThatIsClosedIsNotWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		must.OK(t, errors.Join(tr.Close(), tr.Close()))
		began := time.Now()
		_, err := tr.Take(now())
		if tracked := tr.Track(1); err == nil || tracked == nil || time.Since(began) > time.Minute {
			t.Errorf("%v and %v after %v", err, tracked, time.Since(began))
		}
	})
}
