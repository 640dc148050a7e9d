package nodestat

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// pressure is how long some task has waited for CPU, memory and disks since the
// machine started, in µs. The kernel brings it up to date on every read; its
// clock runs at the rate of CLOCK_MONOTONIC (kernel/sched/psi.c).
type pressure [3]uint64

// readPressure reads /proc/pressure, ok false where there is none: a kernel
// before Linux 4.20, built without CONFIG_PSI, or started without psi=1 where
// the distribution has it off.
func readPressure(root machine.Root) (p pressure, ok bool, err error) {
	for i, name := range []string{"cpu", "memory", "io"} {
		path := "/proc/pressure/" + name
		line, err := root.FirstLine(path, 1024)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP) {
			return pressure{}, false, nil
		}
		if err != nil {
			return pressure{}, false, err
		}
		if p[i], err = parsePressure(line); err != nil {
			return pressure{}, false, fmt.Errorf("parse %s: %w", path, err)
		}
	}
	return p, true, nil
}

// since returns the shares (0 to 1) of a time, in ns, that some task waited; ok is
// false when a counter went backwards, or no time passed.
func (p pressure) since(before pressure, elapsed int64) (shares [3]float64, ok bool) {
	for i := range p {
		if elapsed <= 0 || p[i] < before[i] {
			return [3]float64{}, false
		}
		// The clock and the three files are read a few µs apart, so that a share
		// can come out slightly above one.
		shares[i] = min(1, float64(p[i]-before[i])*1000/float64(elapsed))
	}
	return shares, true
}

// parsePressure reads the total of
// "some avg10=0.03 avg60=0.19 avg300=2.43 total=40243767".
func parsePressure(line string) (uint64, error) {
	averages, some := strings.CutPrefix(line, "some ")
	_, digits, ok := strings.Cut(averages, "total=")
	total, err := strconv.ParseUint(digits, 10, 64)
	if !some || !ok || err != nil {
		return 0, fmt.Errorf("want a line of %q with a total in µs, got %.80q", "some", line)
	}
	return total, nil
}
