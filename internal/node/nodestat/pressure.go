package nodestat

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// pressure is how long some task has waited for CPU, memory and disks since boot, in µs. The
// kernel updates it on every read. Its clock runs at the rate of CLOCK_MONOTONIC
// (kernel/sched/psi.c).
type pressure [3]uint64

// readPressure reads /proc/pressure. ok is false if there is none: before Linux 4.20, without
// CONFIG_PSI, or without psi=1 where the distribution disables it.
func readPressure(root machine.Root) (p pressure, ok bool, err error) {
	return readPressures(root, "/proc/pressure/", "")
}

// readPressures reads the files of CPU, memory and I/O with a prefix and a suffix.
func readPressures(root machine.Root, before, after string) (p pressure, ok bool, err error) {
	for i, name := range []string{"cpu", "memory", "io"} {
		path := before + name + after
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

// GroupPressure returns how long (µs) some task in the cgroup of a process has waited for
// CPU, memory and I/O. Only cgroup v2 counts it, and not in the root.
func GroupPressure(root machine.Root, pid int) (cpu, memory, io int64, err error) {
	text, err := root.Read(fmt.Sprintf("/proc/%d/cgroup", pid), 64<<10)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read the cgroups of process %d: %w", pid, err)
	}
	mounted, err := root.Cgroups()
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read the mounted cgroup hierarchies: %w", err)
	}
	group := procs.ParseGroups(string(text)).Paths[""]
	at := slices.IndexFunc(mounted, func(h machine.Hierarchy) bool { return h.Version == 2 && h.Root == "/" })
	if at >= 0 && group != "" && group != "/" {
		p, ok, err := readPressures(root, filepath.Join(mounted[at].Mount, filepath.Clean(group))+"/", ".pressure")
		if err != nil || ok {
			return int64(p[0]), int64(p[1]), int64(p[2]), err
		}
	}
	return 0, 0, 0, errNoGroupPressure
}

var errNoGroupPressure = errors.New("the kernel counts it in groups of cgroup v2 only, and the workload is in the root group")

// since returns the shares, 0 to 1, of the elapsed time (ns) in which some task waited. ok is
// false if a counter went backwards or no time passed.
func (p pressure) since(before pressure, elapsed int64) (shares [3]float64, ok bool) {
	for i := range p {
		if elapsed <= 0 || p[i] < before[i] {
			return [3]float64{}, false
		}
		// The clock and the files are read a few µs apart, so a share can exceed one.
		shares[i] = min(1, float64(p[i]-before[i])*1000/float64(elapsed))
	}
	return shares, true
}

// parsePressure parses the total of
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
