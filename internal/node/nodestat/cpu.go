package nodestat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
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
	return parseCPU(line)
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

// mostTicks keeps sums from overflowing: 2^58 ticks are ninety thousand years
// of a thousand CPUs.
const mostTicks = 1 << 58

// parseCPU reads "cpu  user nice system idle iowait irq softirq steal …". Steal
// is there since Linux 2.6.11; guest times follow, which are counted already.
func parseCPU(line string) (CPU, error) {
	fields := strings.Fields(line)
	if len(fields) < 9 || len(fields) > 17 || fields[0] != "cpu" {
		return CPU{}, fmt.Errorf("parse /proc/stat: want %q and at least 8 counters, got %.80q", "cpu", line)
	}
	var t [8]uint64
	for i := range t {
		n, err := strconv.ParseUint(fields[i+1], 10, 64)
		if err != nil || n > mostTicks {
			return CPU{}, fmt.Errorf("parse /proc/stat: counter %d is %.40q, not a number of ticks", i+1, fields[i+1])
		}
		t[i] = n
	}
	return CPU{Busy: t[0] + t[1] + t[2] + t[5] + t[6], Idle: t[3] + t[4], IOWait: t[4], Steal: t[7]}, nil
}
