//go:build prove

package probe

import (
	"fmt"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
)

func TestExactlyTheCPUThatWasAskedForIsUsed(t *testing.T) {
	for _, cpus := range []float64{0.01, 0.25, 0.5} {
		t.Run(fmt.Sprint(cpus), func(t *testing.T) {
			spun, used := spin(t, cpus, 2*time.Second)
			want := time.Duration(cpus * float64(spun.Wall))
			// One more piece of work may be added at the end.
			off, most := spun.CPU-want, want/200+200*time.Microsecond
			check.That(t, off.Abs() <= most, "%v more than %v of a CPU: %+v", off, cpus, spun)
			// The kernel's value also includes the exec and the exit.
			more := used - spun.CPU
			check.That(t, more >= 0 && more <= 5*time.Millisecond, "the kernel counts %v, the probe %v", used, spun.CPU)
		})
	}
}
