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

// pressure is how long some task has waited for each resource since the
// machine started, in µs. The kernel brings it up to date on every read; its
// clock runs at the rate of CLOCK_MONOTONIC (kernel/sched/psi.c).
type pressure struct {
	cpu, memory, io uint64
}

// shares are shares of wall time, 0 to 1.
type shares struct {
	cpu, memory, io float64
}

// readPressure reads /proc/pressure, ok false where there is none: a kernel
// before Linux 4.20, built without CONFIG_PSI, or started without psi=1 where
// the distribution has it off.
func readPressure(root machine.Root) (p pressure, ok bool, err error) {
	for _, f := range []struct {
		name  string
		total *uint64
	}{{"cpu", &p.cpu}, {"memory", &p.memory}, {"io", &p.io}} {
		path := "/proc/pressure/" + f.name
		line, err := root.FirstLine(path, 1024)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP) {
			return pressure{}, false, nil
		}
		if err != nil {
			return pressure{}, false, err
		}
		if *f.total, err = parsePressure(line); err != nil {
			return pressure{}, false, fmt.Errorf("parse %s: %w", path, err)
		}
	}
	return p, true, nil
}

// since returns the shares of a time, in ns, that some task waited; ok is
// false when a counter went backwards, or no time passed.
func (p pressure) since(before pressure, elapsed int64) (s shares, ok bool) {
	if elapsed <= 0 || p.cpu < before.cpu || p.memory < before.memory || p.io < before.io {
		return shares{}, false
	}
	// The clock and the three files are read a few µs apart, so that a share
	// can come out slightly above one.
	share := func(micros uint64) float64 { return min(1, float64(micros)*1000/float64(elapsed)) }
	return shares{
		cpu:    share(p.cpu - before.cpu),
		memory: share(p.memory - before.memory),
		io:     share(p.io - before.io),
	}, true
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
