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
	usage, have, memoryErr := g.value(memoryUsage, amount)
	b, cpuErr := g.bytes(cpuUsage)
	if b != nil {
		if into.CPU, _, cpuErr = cpuTimes(b, g.version(cpuUsage)); cpuErr != nil {
			cpuErr = g.fault(cpuUsage, cpuErr)
		}
		into.HaveCPU = cpuErr == nil
	}
	if have && !isGone(cpuErr) {
		memoryErr = g.kinds(into, usage)
	}
	if isGone(memoryErr) || isGone(cpuErr) {
		*into = Sample{}
		return fmt.Errorf("cgroup %s: %w", g.path, ErrGone)
	}
	return errors.Join(memoryErr, cpuErr)
}

// kinds fills in the usage, and the kinds of memory from memory.stat.
func (g *Group) kinds(into *Sample, usage int64) error {
	s, last := g.system, &g.last
	if s.idle > 0 && last.HaveMemory && into.HaveCPU && last.HaveCPU && usage == last.Usage && into.CPU == last.CPU &&
		time.Since(g.read) < s.idle {
		*into = *last
		return nil
	}
	var st stats
	if err := g.stat(&st, needed); err != nil {
		return err
	}
	into.HaveMemory, into.Usage = true, usage
	into.Anon, into.File, into.Shmem, into.InactiveFile = st[anon], st[fileCache], st[shmem], st[inactive]
	if s.idle > 0 {
		*last, g.read = *into, time.Now()
	}
	return nil
}

// SkipIdle lets Sample skip memory.stat, two thirds of its cost, for idle groups. A group is
// idle if its usage and CPU time are exactly those of its last full sample, and that sample
// is not older than the duration most. The kinds of memory then keep their values. So Sample
// can miss pages that the kernel moved between its lists, and late updates by the kernel.
// The default 0 skips nothing.
func (s *System) SkipIdle(most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = most
}

// value reads a file with one value. have is false if the group lacks the file.
func (g *Group) value(i slot, parse func([]byte) (int64, error)) (n int64, have bool, err error) {
	b, err := g.bytes(i)
	if err != nil || b == nil {
		return 0, false, err
	}
	if n, err = parse(b); err != nil {
		return 0, false, g.fault(i, err)
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

// cpuTimes returns times in ns, from cpuacct.usage (ns) of v1 or from usage_usec and
// throttled_usec of cpu.stat.
func cpuTimes(b []byte, version int) (used, throttled int64, err error) {
	if version == 1 {
		used, ok := number(b)
		if !ok {
			return 0, 0, malformed("a number of ns", b)
		}
		return used, 0, nil
	}
	used, ok := keyed(b, "usage_usec")
	throttled, _ = keyed(b, "throttled_usec") // with the controller only
	if !ok || min(used, throttled) < 0 || max(used, throttled) > math.MaxInt64/1000 {
		return 0, 0, malformed("a line usage_usec", b)
	}
	return used * 1000, throttled * 1000, nil
}
