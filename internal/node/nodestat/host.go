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

const zoneinfoLimit = 16 << 20 // enough for a thousand CPUs

// ReadHost reads the memory and the counters of the machine. It reads memory first, within
// some tens of µs.
//
// The caller sets Others and OthersCount, and calls Refresh. Without Refresh the memory
// figures of the kernel lag by up to some MiB on machines with many CPUs. With an error
// ReadHost still fills in the readable fields.
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

// hostMemory reads MemFree and right after it the CPUs' lists, because pages move between
// the two.
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

// Refresh makes the kernel's memory figures exact by adding up the per-CPU counters. Every
// CPU delays changes of up to 125 pages of each kind for about a second (mm/vmstat.c). It
// needs root and interrupts every CPU once. On machines with isolcpus or nohz_full it does
// nothing, because it would disturb those CPUs and could block. It reports whether the
// refresh was done. See vm.stat_refresh in Documentation/admin-guide/sysctl/vm.rst.
func Refresh() bool {
	for _, list := range []string{"isolated", "nohz_full"} {
		if cpus, err := machine.Root("").FirstLine("/sys/devices/system/cpu/"+list, 4096); err == nil && strings.Trim(cpus, " \n()nul") != "" {
			return false
		}
	}
	return os.WriteFile("/proc/sys/vm/stat_refresh", []byte("1"), 0) == nil
}

// oomKills returns how many processes the kernel has killed for lack of memory, of a cgroup
// or the machine: oom_kill of /proc/vmstat, since Linux 4.13. It returns nil if unknown.
func oomKills(root machine.Root) *int64 {
	stat, _ := root.Keyed("/proc/vmstat")
	n, known := stat["oom_kill"]
	if !known {
		return nil
	}
	return &n
}
