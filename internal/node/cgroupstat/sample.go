package cgroupstat

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Sample is one reading of a group: memory in bytes, and CPU time in ns since its creation.
type Sample struct {
	HaveMemory                             bool
	Usage, Anon, File, Shmem, InactiveFile int64 // File is without Shmem
	HaveCPU                                bool
	CPU                                    int64
}

// Sample reads memory usage, CPU time and memory.stat without an allocation. With an error
// it still fills in the readable parts, unless the error wraps ErrGone.
func (g *Group) Sample(into *Sample) error {
	g.system.mu.Lock()
	defer g.system.mu.Unlock()
	*into = Sample{}
	if len(g.places) == 0 {
		return fmt.Errorf("cgroup %s: %w", g.path, ErrGone)
	}
	usage, have, memoryErr := g.usage()
	if isGone(memoryErr) {
		return memoryErr
	}
	var cpu cpuTime
	cpuErr := g.cpu(&cpu)
	if isGone(cpuErr) {
		return cpuErr
	}
	into.HaveCPU, into.CPU = cpu.have, cpu.used
	if memoryErr == nil && have {
		into.Usage = usage
		if memoryErr = g.kinds(into); memoryErr != nil {
			*into = Sample{HaveCPU: cpu.have, CPU: cpu.used}
		}
		if isGone(memoryErr) {
			*into = Sample{}
			return memoryErr
		}
	}
	return errors.Join(memoryErr, cpuErr)
}

// kinds fills in the kinds of memory from memory.stat.
func (g *Group) kinds(into *Sample) error {
	s, last := g.system, &g.last
	if s.idle > 0 && last.HaveMemory && into.HaveCPU && last.HaveCPU && into.Usage == last.Usage && into.CPU == last.CPU &&
		time.Since(g.read) < s.idle {
		*into = *last
		return nil
	}
	var st stats
	if err := g.stat(&st, needed); err != nil {
		return err
	}
	into.HaveMemory = true
	into.Anon, into.File, into.Shmem, into.InactiveFile = st[anon], st[fileCache], st[shmem], st[inactive]
	if s.idle > 0 {
		*last, g.read = *into, time.Now()
	}
	return nil
}

// SkipIdle lets Sample skip memory.stat, two thirds of its cost, for an idle group: one
// with exactly the usage and the CPU time of its last reading, at most this long ago. The
// kinds of memory then keep their values. This can miss pages that the kernel moved
// between its lists, and its late updates. The default 0 skips nothing.
func (s *System) SkipIdle(most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = most
}

// usage reads the memory that is charged to the group. have is false if the group has no
// memory accounting.
func (g *Group) usage() (n int64, have bool, err error) {
	b, err := g.bytes(memoryUsage)
	if err != nil || b == nil {
		return 0, false, err
	}
	if n, err = amount(b); err != nil {
		return 0, false, g.fault(memoryUsage, err)
	}
	return n, true, nil
}

func (g *Group) stat(s *stats, most key) error {
	b, err := g.bytes(memoryStat)
	if err != nil {
		return err
	}
	if err := s.parse(b, g.version(memoryStat), most); err != nil {
		return g.fault(memoryStat, err)
	}
	return nil
}

func (g *Group) version(i slot) int { return g.places[g.files[i].place].tree.Version }

// cpuTime is in ns.
type cpuTime struct {
	have            bool
	used, throttled int64
}

// cpu reads cpuacct.usage (ns), or the usage_usec and throttled_usec of cpu.stat.
func (g *Group) cpu(into *cpuTime) error {
	b, err := g.bytes(cpuUsage)
	if err != nil || b == nil {
		return err
	}
	if g.version(cpuUsage) == 1 {
		n, ok := number(b)
		if !ok {
			return g.fault(cpuUsage, malformed("a number of ns", b))
		}
		into.have, into.used = true, n
		return nil
	}
	used, ok := keyed(b, "usage_usec")
	throttled, _ := keyed(b, "throttled_usec") // with the controller only
	if !ok || min(used, throttled) < 0 || max(used, throttled) > math.MaxInt64/1000 {
		return g.fault(cpuUsage, malformed("a line usage_usec", b))
	}
	*into = cpuTime{true, used * 1000, throttled * 1000}
	return nil
}
