package doctor

import "fmt"

const (
	mib = 1 << 20
	gib = 1 << 30
)

// resources are what a run needs and others may be using.
func (s *subject) resources() []facility {
	list := []facility{{AreaMachine, "load", (*subject).load}, {AreaMachine, "CPU limit", (*subject).cpuLimit}, {AreaMachine, "memory", (*subject).memory}, {AreaMachine, "swap", (*subject).swap}}
	for _, f := range s.folders {
		list = append(list, facility{AreaMachine, "disk for " + f.Name, f.look})
	}
	return list
}

// quietLoad is the load a CPU up to which a machine counts as idle enough:
// above it a lane has often to wait.
const quietLoad = 0.25

func (s *subject) load(c *Check) {
	load, err := s.root.Load()
	if err != nil {
		c.unread(err)
		return
	}
	c.Version = fmt.Sprintf("%.2f", load)
	cpus, err := s.root.CPUs()
	if err != nil {
		c.is(Limited, fmt.Sprintf("of the last minute; on how many CPUs could not be read: %v", err), "")
		return
	}
	c.Why = fmt.Sprintf("of the last minute, on %d CPUs", cpus)
	if cpus == 1 {
		c.Why = "of the last minute, on 1 CPU"
	}
	if load > quietLoad*float64(cpus) {
		c.is(Limited, c.Why+"; other work is being done and will show in the figures: wait until it ends, or stop it", "")
	}
}

// cpuLimit is about that of tare's own cgroup, which holds back what tare does itself and
// what it starts there.
func (s *subject) cpuLimit(c *Check) {
	l, limited := s.root.CPULimit()
	cpus, err := s.root.CPUs()
	if !limited || err == nil && l.CPUs >= float64(cpus) {
		c.Status = absent
		return
	}
	c.Version = fmt.Sprintf("%.3g CPUs", l.CPUs)
	c.is(Limited, fmt.Sprintf("cgroup %s, which tare is in, may use no more; it was throttled in %d of %d periods. Times would be the limit's: lift it, or start tare elsewhere", l.Group, l.Throttled, l.Periods), l.Lift)
}

func (s *subject) memory(c *Check) {
	m, err := s.root.Memory()
	if err != nil {
		c.unread(err)
		return
	}
	c.Version, c.Why = size(uint64(m.Available)), "available of "+size(uint64(m.Total))
	switch {
	case m.Available < 128*mib:
		c.is(Missing, c.Why+": not enough for a batch of containers", "")
	case m.Available < gib:
		c.is(Limited, c.Why+": large batches and virtual machines will not fit", "")
	}
}

func (s *subject) swap(c *Check) {
	m, err := s.root.Memory()
	switch used := max(0, m.SwapTotal-m.SwapFree); {
	case err != nil: // memory has told
		c.Status = absent
		return
	case m.SwapTotal == 0:
		c.Version, c.Why = "none", "memory stays where it is counted"
		return
	case used > 0:
		c.Why = size(uint64(used)) + " of it in use"
	default:
		c.Why = "not in use yet"
	}
	c.Version = size(uint64(m.SwapTotal))
	c.is(Limited, c.Why+": what is swapped out is missing from resident memory", "swapoff -a")
}

func (f Folder) look(s *subject, c *Check) {
	if f.Refusal != nil {
		c.is(Missing, f.Refusal.Error(), "")
		return
	}
	free, err := s.kernel.FreeDisk(string(s.root) + f.Path)
	if err != nil {
		c.unread(err)
		return
	}
	c.Version, c.Why = size(free), "free in "+f.Path
	switch {
	case free < 64*mib:
		c.is(Missing, c.Why+": not enough for images, bundles and a record", "")
	case free < gib:
		c.is(Limited, c.Why+": enough for small batches only", "")
	}
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
