package machine

import (
	"bytes"
	"errors"
	"fmt"
)

// Memory are lines of /proc/meminfo (Documentation/filesystems/proc.rst) in bytes.
// HugeTotal and HugeFree are numbers of pages.
type Memory struct {
	Total, Free, Available, Buffers, Cached, SwapCached, Shmem, Anon int64
	Slab, Stacks, Tables, SecTables, Percpu                          int64
	SwapTotal, SwapFree                                              int64
	HugeTotal, HugeFree, HugeSize                                    int64

	seen int // how many of the required lines were there
}

// maxKiB keeps sums from overflowing.
const maxKiB = 1 << 50

const meminfoLimit = 64 << 10 // enough for a thousand CPUs

// Memory reads /proc/meminfo.
func (r Root) Memory() (Memory, error) {
	data, err := r.Read("/proc/meminfo", meminfoLimit)
	var m Memory
	if err == nil {
		err = m.Parse(data)
	}
	return m, err
}

// Parse parses /proc/meminfo. It does not allocate.
func (m *Memory) Parse(b []byte) error {
	*m = Memory{}
	lines := [...]struct {
		name string
		to   *int64
	}{
		{"MemTotal", &m.Total}, {"MemFree", &m.Free}, {"MemAvailable", &m.Available}, {"Buffers", &m.Buffers}, {"Cached", &m.Cached},
		{"Shmem", &m.Shmem}, {"AnonPages", &m.Anon}, {"Slab", &m.Slab}, {"KernelStack", &m.Stacks}, {"PageTables", &m.Tables},
		{"SecPageTables", &m.SecTables}, // Linux 6.1; every kernel of the last ten years has the lines before it
		{"Percpu", &m.Percpu},           // Linux 4.20
		{"SwapCached", &m.SwapCached}, {"SwapTotal", &m.SwapTotal}, {"SwapFree", &m.SwapFree},
		{"HugePages_Total", &m.HugeTotal}, {"HugePages_Free", &m.HugeFree}, {"Hugepagesize", &m.HugeSize},
	}
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		for i := range lines {
			to := lines[i].to
			if lines[i].name != string(name) {
				continue
			}
			value = bytes.TrimSpace(value)
			digits, kib := bytes.CutSuffix(value, []byte(" kB"))
			n, ok := Number(digits)
			if !ok || n > maxKiB || kib == (to == &m.HugeTotal || to == &m.HugeFree) {
				return fmt.Errorf("parse /proc/meminfo: %s is %.40q, not an amount", name, value)
			}
			if *to = n; kib {
				*to = n << 10
			}
			if i < required {
				m.seen++
			}
		}
	}
	if m.Total == 0 {
		return errors.New("parse /proc/meminfo: it has no MemTotal; check whether something is mounted over it")
	}
	return nil
}

const required = 10 // the first lines of the list in Parse, which a ledger needs

// Complete returns an error if a required line is missing.
func (m *Memory) Complete() error {
	if m.seen != required {
		return errors.New("parse /proc/meminfo: it lacks one of MemTotal, MemFree, MemAvailable, Buffers, Cached, Shmem, AnonPages, Slab, KernelStack, PageTables; check whether something is mounted over it")
	}
	return nil
}

// Huge returns the used and free bytes of huge pages of the default size.
func (m *Memory) Huge() (used, free int64) {
	if m.HugeSize > 0 && m.HugeTotal > maxKiB/m.HugeSize*1024 {
		return 0, 0
	}
	return max(m.HugeTotal-m.HugeFree, 0) * m.HugeSize, min(m.HugeFree, m.HugeTotal) * m.HugeSize
}
