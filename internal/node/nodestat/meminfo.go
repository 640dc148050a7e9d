package nodestat

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tare-bench/tare/record"
)

// meminfo are lines of /proc/meminfo (Documentation/filesystems/proc.rst), in
// bytes but for counts of pages.
type meminfo struct {
	total, free, available, buffers, cached, swapCached, shmem, anon int64
	slab, stacks, tables, sectables, percpu                          int64
	swapTotal, swapFree                                              int64
	hugeTotal, hugeFree, hugeSize                                    int64
	have                                                             int
}

// mostKiB keeps sums from overflowing.
const mostKiB = 1 << 50

// parse reads the lines that are wanted; of those that kernels of the last ten
// years all have, each must be there.
func (m *meminfo) parse(b []byte) error {
	*m = meminfo{}
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		var to *int64
		required := 0
		switch string(name) {
		case "MemTotal":
			to, required = &m.total, 1
		case "MemFree":
			to, required = &m.free, 1
		case "MemAvailable":
			to, required = &m.available, 1
		case "Buffers":
			to, required = &m.buffers, 1
		case "Cached":
			to, required = &m.cached, 1
		case "Shmem":
			to, required = &m.shmem, 1
		case "AnonPages":
			to, required = &m.anon, 1
		case "Slab":
			to, required = &m.slab, 1
		case "KernelStack":
			to, required = &m.stacks, 1
		case "PageTables":
			to, required = &m.tables, 1
		case "SecPageTables": // Linux 6.1
			to = &m.sectables
		case "Percpu": // Linux 4.20
			to = &m.percpu
		case "SwapCached":
			to = &m.swapCached
		case "SwapTotal":
			to = &m.swapTotal
		case "SwapFree":
			to = &m.swapFree
		case "HugePages_Total":
			to = &m.hugeTotal
		case "HugePages_Free":
			to = &m.hugeFree
		case "Hugepagesize":
			to = &m.hugeSize
		default:
			continue
		}
		value = bytes.TrimSpace(value)
		digits, kib := bytes.CutSuffix(value, []byte(" kB"))
		n, ok := decimal(digits)
		if !ok || n > mostKiB || kib == (to == &m.hugeTotal || to == &m.hugeFree) {
			return fmt.Errorf("parse /proc/meminfo: %s is %.40q, not an amount", name, value)
		}
		if kib {
			n <<= 10
		}
		*to = n
		m.have += required
	}
	if m.have != 10 || m.total == 0 {
		return errors.New("parse /proc/meminfo: it lacks one of MemTotal, MemFree, MemAvailable, Buffers, Cached, Shmem, AnonPages, Slab, KernelStack, PageTables; look whether something is mounted over it")
	}
	return nil
}

// host fills in what is in meminfo. Free lacks the pages on the lists of CPUs.
func (m *meminfo) host(h *record.Host) {
	h.Total, h.Free, h.Available, h.Buffers, h.Cached = m.total, m.free, m.available, m.buffers, m.cached
	h.SwapCached, h.Shmem, h.Anon, h.Slab, h.Stacks = m.swapCached, m.shmem, m.anon, m.slab, m.stacks
	h.PageTables, h.Percpu = m.tables+m.sectables, m.percpu
	h.SwapUsed = max(m.swapTotal-m.swapFree, 0)
	h.Huge, h.HugeFree = m.huge()
}

// huge are the hugetlb pages of the usual size that are in use, and the others.
func (m *meminfo) huge() (used, free int64) {
	if m.hugeSize > 0 && m.hugeTotal > mostKiB/m.hugeSize*1024 {
		return 0, 0
	}
	return max(m.hugeTotal-m.hugeFree, 0) * m.hugeSize, min(m.hugeFree, m.hugeTotal) * m.hugeSize
}
