package nodestat

import (
	"errors"
	"fmt"
	"math"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// CPU is the time that all CPUs together have spent since the machine started,
// in ticks of USER_HZ, a hundredth of a second on every architecture in use.
// A share over less than a second is that coarse.
type CPU struct {
	Busy   uint64 // user, nice, system, irq, softirq; guests are in user and nice
	Idle   uint64 // idle and iowait
	IOWait uint64 // of Idle: some task waited for a disk
	Steal  uint64 // a virtual CPU was ready and the hypervisor ran another
}

// ReadCPU reads /proc/stat.
func ReadCPU(root machine.Root) (CPU, error) {
	// Only the first line is needed; the one of interrupts, further down, has
	// hundreds of kilobytes on large machines.
	line, err := root.FirstLine("/proc/stat", 1024)
	if err != nil {
		return CPU{}, err
	}
	return parseCPU([]byte(line))
}

// Since returns which share of all CPUs' time was busy and which was stolen
// since an earlier reading, 0 to 1. They add up to at most 1: stolen time is
// not busy. ok is false when a counter went backwards, or none moved.
//
// Idle and iowait are one counter here: the kernel moves time from the one to
// the other, so each of them may go backwards and their sum does not (proc(5)).
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

// maxTicks keeps sums from overflowing: 2^58 ticks are ninety thousand years
// of a thousand CPUs.
const maxTicks = 1 << 58

// parseCPU reads "cpu  user nice system idle iowait irq softirq steal …". Steal
// is there since Linux 2.6.11; guest times follow, which are counted already.
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
