//go:build prove

package probe

import (
	"fmt"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
)

func TestSpinUsesExactlyTheRequestedCPU(t *testing.T) {
	for _, cpus := range []float64{0.01, 0.25, 0.5} {
		t.Run(fmt.Sprint(cpus), func(t *testing.T) {
			spun, used := spin(t, cpus, 2*time.Second)
			want := time.Duration(cpus * float64(spun.Wall))
			// The probe works in slices, so it may use one slice more.
			off, most := spun.CPU-want, want/200+200*time.Microsecond
			check.That(t, off.Abs() <= most, "%v off from %v of a CPU: %+v", off, cpus, spun)
			// The kernel also counts the exec and the exit.
			more := used - spun.CPU
			check.That(t, more >= 0 && more <= 5*time.Millisecond, "the kernel counts %v, the probe reports %v", used, spun.CPU)
		})
	}
}
