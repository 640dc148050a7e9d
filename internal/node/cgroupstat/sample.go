package cgroupstat

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Sample is what a tick reads of a group: bytes, and ns since it was made.
type Sample struct {
	HaveMemory                             bool
	Usage, Anon, File, Shmem, InactiveFile int64 // File is without Shmem
	HaveCPU                                bool
	CPU                                    int64
}

// Sample reads memory usage, CPU time and memory.stat, and allocates nothing. An
// error comes with what could be read; one that wraps ErrGone with nothing.
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

// kinds fills in what memory.stat says.
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

// SkipIdle lets Sample leave out memory.stat, two thirds of its cost, for a group
// that is idle: whose usage and CPU time are, to the byte and the nanosecond, what
// they were when it was last read, which must not be longer ago than most. The
// kinds of memory are then as they were; what can be missed are pages that the
// kernel itself moved between its lists, and its own late adding up. 0, as at the
// beginning, leaves out nothing.
func (s *System) SkipIdle(most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = most
}

// usage reads what the group is charged for; have is false where memory is not
// accounted for it.
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
