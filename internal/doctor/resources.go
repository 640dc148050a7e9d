package doctor

import (
	"fmt"

	"github.com/tare-bench/tare/internal/node/machine"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// resources looks at what a run needs and others may be using.
func (s *subject) resources() []Check {
	checks := []Check{s.load()}
	checks = append(checks, s.memory()...)
	for _, f := range s.folders {
		checks = append(checks, s.disk(f))
	}
	return checks
}

// quietLoad is the load a CPU up to which a machine counts as idle enough:
// above it a lane has often to wait.
const quietLoad = 0.25

func (s *subject) load() Check {
	c := Check{Area: AreaMachine, Name: "load", Status: OK}
	load, err := s.root.Load()
	if err != nil {
		c.Status, c.Why = Limited, fmt.Sprintf("could not be read: %v", err)
		return c
	}
	c.Version = fmt.Sprintf("%.2f", load)
	cpus, err := s.root.CPUs()
	if err != nil {
		c.Status, c.Why = Limited, fmt.Sprintf("of the last minute; on how many CPUs could not be read: %v", err)
		return c
	}
	c.Why = fmt.Sprintf("of the last minute, on %d %s", cpus, plural(cpus, "CPU"))
	if load > quietLoad*float64(cpus) {
		c.Status = Limited
		c.Why += "; other work is being done and will show in the figures: wait until it ends, or stop it"
	}
	return c
}

func (s *subject) memory() []Check {
	c := Check{Area: AreaMachine, Name: "memory", Status: OK}
	m, err := s.root.Memory()
	if err != nil {
		c.Status, c.Why = Limited, fmt.Sprintf("could not be read: %v", err)
		return []Check{c}
	}
	c.Version = size(uint64(m.Available))
	c.Why = "available of " + size(uint64(m.Total))
	switch {
	case m.Available < 128*mib:
		c.Status = Missing
		c.Why += ": not enough for a batch of containers"
	case m.Available < gib:
		c.Status = Limited
		c.Why += ": large batches and virtual machines will not fit"
	}
	return []Check{c, swap(m)}
}

func swap(m machine.Memory) Check {
	c := Check{Area: AreaMachine, Name: "swap", Version: size(uint64(m.SwapTotal)), Status: OK}
	used := max(0, m.SwapTotal-m.SwapFree)
	switch {
	case m.SwapTotal == 0:
		c.Version, c.Why = "none", "memory stays where it is counted"
		return c
	case used > 0:
		c.Why = size(uint64(used)) + " of it in use"
	default:
		c.Why = "not in use yet"
	}
	c.Status, c.Fix = Limited, "swapoff -a"
	c.Why += ": what is swapped out is missing from resident memory"
	return c
}

func (s *subject) disk(f Folder) Check {
	c := Check{Area: AreaMachine, Name: "disk for " + f.Name, Status: OK, Why: "free in " + f.Path}
	free, err := s.kernel.FreeDisk(string(s.root) + f.Path)
	if err != nil {
		c.Status, c.Why = Limited, fmt.Sprintf("could not be read: %v", err)
		return c
	}
	c.Version = size(free)
	switch {
	case free < 64*mib:
		c.Status = Missing
		c.Why += ": not enough for images, bundles and a record"
	case free < gib:
		c.Status = Limited
		c.Why += ": enough for small batches only"
	}
	return c
}

// size writes bytes with three digits and a binary unit.
func size(bytes uint64) string {
	switch {
	case bytes >= 10*gib:
		return fmt.Sprintf("%.0f GiB", float64(bytes)/gib)
	case bytes >= gib:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
	default:
		return fmt.Sprintf("%.0f MiB", float64(bytes)/mib)
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
