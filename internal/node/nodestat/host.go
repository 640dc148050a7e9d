package nodestat

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// zoneinfoLimit is more than a machine of a thousand CPUs has.
const zoneinfoLimit = 16 << 20

// ReadHost reads the memory and the counters of the machine. Memory comes first,
// and what is read of it within some tens of µs.
//
// Others and OthersCount are left to the caller, and Refresh too, without which
// the kernel's figures of memory lag by up to some MiB on machines with many
// CPUs. An error comes with what could be read.
func ReadHost(root machine.Root) (record.Host, error) {
	var h record.Host
	f, err := OpenFast(root)
	if err != nil {
		return h, fmt.Errorf("read the machine's memory and counters: %w", err)
	}
	defer f.Close()
	memoryErr := f.hostMemory(&h)
	cpu, cpuErr := f.cpu()
	h.Busy, h.Steal, h.IOWait = cpu.busy, cpu.steal, cpu.ioWait
	load, loadErr := f.load()
	h.Load1 = float64(max(load, 0)) / 1000
	if b, err := f.bytes(fastLoad, 256); err == nil {
		h.Tasks, _ = machine.Tasks(b)
	}
	h.MaxTasks, h.OOMKills = root.MaxTasks(), oomKills(root)
	p, have, pressureErr := readPressure(root)
	if pressureErr == nil && have {
		pressureErr = p.host(&h)
	}
	read, written, diskErr := f.disk()
	h.ReadBytes, h.WriteBytes = max(read, 0), max(written, 0)
	if err := errors.Join(memoryErr, cpuErr, loadErr, pressureErr, diskErr); err != nil {
		return h, fmt.Errorf("read the machine's memory and counters: %w", err)
	}
	return h, nil
}

// hostMemory reads the pages on the CPUs' lists next to MemFree: between the two
// they go back and forth.
func (f *Fast) hostMemory(h *record.Host) error {
	var m machine.Memory
	if err := errors.Join(f.memory(&m), f.list()); err != nil {
		return err
	}
	h.Total, h.Available, h.Buffers, h.Cached, h.SwapCached = m.Total, m.Available, m.Buffers, m.Cached, m.SwapCached
	h.Shmem, h.Anon, h.Slab, h.Stacks, h.Percpu = m.Shmem, m.Anon, m.Slab, m.Stacks, m.Percpu
	h.PageTables = m.Tables + m.SecTables
	h.SwapUsed = max(m.SwapTotal-m.SwapFree, 0)
	h.Huge, h.HugeFree = m.Huge()
	h.Listed = f.lists.bytes
	h.Free = m.Free + h.Listed
	if used, free, ok := hugetlb(f.root); ok {
		h.Huge, h.HugeFree = used, free
	}
	return nil
}

func (p pressure) host(h *record.Host) error {
	if slices.Max(p[:]) > math.MaxInt64/1000 {
		return errors.New("parse /proc/pressure: tasks have waited for more than 292 years")
	}
	h.HavePSI = true
	h.PSICPU, h.PSIMemory, h.PSIIO = int64(p[0])*1000, int64(p[1])*1000, int64(p[2])*1000
	return nil
}

// Refresh has the kernel add up what its CPUs have counted on their own, so that
// the figures that are read next are exact: every CPU keeps changes of up to 125
// pages of each kind to itself for about a second (mm/vmstat.c). It wants root,
// and interrupts every CPU once; so it is not done where some are kept free of
// interruptions (isolcpus, nohz_full), on which it could even wait for ever. Where
// it is not done, or fails, the figures are as exact as they are. See
// vm.stat_refresh in Documentation/admin-guide/sysctl/vm.rst.
func Refresh() bool {
	for _, kept := range []string{"isolated", "nohz_full"} {
		if cpus, err := machine.Root("").FirstLine("/sys/devices/system/cpu/"+kept, 4096); err == nil && strings.Trim(cpus, " \n()nul") != "" {
			return false
		}
	}
	return os.WriteFile("/proc/sys/vm/stat_refresh", []byte("1"), 0) == nil
}
