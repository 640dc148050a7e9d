package machine

import (
	"bytes"
	"errors"
	"fmt"
)

// Memory are lines of /proc/meminfo (Documentation/filesystems/proc.rst), in
// bytes but for the huge pages, of which there is a count.
type Memory struct {
	Total, Free, Available, Buffers, Cached, SwapCached, Shmem, Anon int64
	Slab, Stacks, Tables, SecTables, Percpu                          int64
	SwapTotal, SwapFree                                              int64
	HugeTotal, HugeFree, HugeSize                                    int64

	required int // how many of those were there that each kernel of the last ten years has
}

// mostKiB keeps sums from overflowing.
const mostKiB = 1 << 50

// meminfoLimit is above what a machine of a thousand CPUs has.
const meminfoLimit = 64 << 10

// Memory reads the machine's memory.
func (r Root) Memory() (Memory, error) {
	data, err := r.Read("/proc/meminfo", meminfoLimit)
	var m Memory
	if err == nil {
		err = m.Parse(data)
	}
	return m, err
}

// Parse reads the lines that are wanted, and allocates nothing.
func (m *Memory) Parse(b []byte) error {
	*m = Memory{}
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		to, required := m.field(name)
		if to == nil {
			continue
		}
		value = bytes.TrimSpace(value)
		digits, kib := bytes.CutSuffix(value, []byte(" kB"))
		n, ok := Number(digits)
		if !ok || n > mostKiB || kib == (to == &m.HugeTotal || to == &m.HugeFree) {
			return fmt.Errorf("parse /proc/meminfo: %s is %.40q, not an amount", name, value)
		}
		if kib {
			n <<= 10
		}
		*to = n
		if required {
			m.required++
		}
	}
	if m.Total == 0 {
		return errors.New("parse /proc/meminfo: it has no MemTotal; look whether something is mounted over it")
	}
	return nil
}

func (m *Memory) field(name []byte) (to *int64, required bool) {
	switch string(name) {
	case "MemTotal":
		return &m.Total, true
	case "MemFree":
		return &m.Free, true
	case "MemAvailable":
		return &m.Available, true
	case "Buffers":
		return &m.Buffers, true
	case "Cached":
		return &m.Cached, true
	case "Shmem":
		return &m.Shmem, true
	case "AnonPages":
		return &m.Anon, true
	case "Slab":
		return &m.Slab, true
	case "KernelStack":
		return &m.Stacks, true
	case "PageTables":
		return &m.Tables, true
	case "SecPageTables": // Linux 6.1
		return &m.SecTables, false
	case "Percpu": // Linux 4.20
		return &m.Percpu, false
	case "SwapCached":
		return &m.SwapCached, false
	case "SwapTotal":
		return &m.SwapTotal, false
	case "SwapFree":
		return &m.SwapFree, false
	case "HugePages_Total":
		return &m.HugeTotal, false
	case "HugePages_Free":
		return &m.HugeFree, false
	case "Hugepagesize":
		return &m.HugeSize, false
	}
	return nil, false
}

// Complete is an error where a line is missing that a ledger cannot do without.
func (m *Memory) Complete() error {
	if m.required != 10 {
		return errors.New("parse /proc/meminfo: it lacks one of MemTotal, MemFree, MemAvailable, Buffers, Cached, Shmem, AnonPages, Slab, KernelStack, PageTables; look whether something is mounted over it")
	}
	return nil
}

// Huge are the bytes of huge pages of the usual size that are in use, and the
// others.
func (m *Memory) Huge() (used, free int64) {
	if m.HugeSize > 0 && m.HugeTotal > mostKiB/m.HugeSize*1024 {
		return 0, 0
	}
	return max(m.HugeTotal-m.HugeFree, 0) * m.HugeSize, min(m.HugeFree, m.HugeTotal) * m.HugeSize
}
