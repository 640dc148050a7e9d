package nodestat

import (
	"errors"
	"fmt"
	"math"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// CPU is the time of all CPUs since boot in ticks of USER_HZ, a hundredth of a second on
// every architecture in use. Shares over less than a second are coarse.
type CPU struct {
	Busy   uint64 // user, nice, system, irq, softirq; user and nice include guests
	Idle   uint64 // idle and iowait
	IOWait uint64 // the part of Idle in which a task waited for a disk
	Steal  uint64 // a virtual CPU was ready and the hypervisor ran another
}

// ReadCPU reads /proc/stat.
func ReadCPU(root machine.Root) (CPU, error) {
	// Read only the first line. The line of interrupts has hundreds of kilobytes on large
	// machines.
	line, err := root.FirstLine("/proc/stat", 1024)
	if err != nil {
		return CPU{}, err
	}
	return parseCPU([]byte(line))
}

// Since returns the busy and the stolen share, 0 to 1, of all CPUs' time since an earlier
// reading. Stolen time is not busy. ok is false if a counter went backwards or none moved.
//
// Idle and iowait are one counter here: the kernel moves time between them, so each may go
// backwards but not their sum (proc(5)).
func (c CPU) Since(before CPU) (busy, steal float64, ok bool) {
	if c.Busy < before.Busy || c.Idle < before.Idle || c.Steal < before.Steal {
		return 0, 0, false
	}
	b, i, s := c.Busy-before.Busy, c.Idle-before.Idle, c.Steal-before.Steal
	total := b + i + s
	if total == 0 {
		return 0, 0, false
	}
	return float64(b) / float64(total), float64(s) / float64(total), true
}

// maxTicks prevents overflow of sums: 2^58 ticks are ninety thousand years of a thousand
// CPUs.
const maxTicks = 1 << 58

// parseCPU parses "cpu  user nice system idle iowait irq softirq steal …". Steal exists since
// Linux 2.6.11. Guest times follow, which user and nice include.
func parseCPU(line []byte) (CPU, error) {
	name, rest := machine.Field(line, 0)
	ok := string(name) == "cpu"
	var t [8]uint64
	for i := range t {
		var digits []byte
		digits, rest = machine.Field(rest, 0)
		n, good := machine.Number(digits)
		ok = ok && good && n <= maxTicks
		t[i] = uint64(n)
	}
	if !ok {
		return CPU{}, fmt.Errorf("parse /proc/stat: want %q and at least 8 counters of ticks, got %.80q", "cpu", line)
	}
	return CPU{Busy: t[0] + t[1] + t[2] + t[5] + t[6], Idle: t[3] + t[4], IOWait: t[4], Steal: t[7]}, nil
}

// spent is CPU time, ns.
type spent struct{ busy, steal, ioWait int64 }

func (c CPU) times() (spent, error) {
	if max(c.Busy, c.Steal, c.IOWait) > math.MaxInt64/procs.Tick {
		return spent{}, errors.New("parse /proc/stat: the CPUs were busy for more than 292 years")
	}
	return spent{int64(c.Busy) * procs.Tick, int64(c.Steal) * procs.Tick, int64(c.IOWait) * procs.Tick}, nil
}
