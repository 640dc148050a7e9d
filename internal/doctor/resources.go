package doctor

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/node/cgroup"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// resources are what a run needs and other processes may use.
func (s *subject) resources() []facility {
	list := []facility{{AreaMachine, "load", (*subject).load}, {AreaMachine, "CPU limit", (*subject).cpuLimit}, {AreaMachine, "memory", (*subject).memory}, {AreaMachine, "swap", (*subject).swap}}
	for _, f := range s.folders {
		list = append(list, facility{AreaMachine, "disk for " + f.Name, f.look})
	}
	return list
}

// quietLoad is the highest load per CPU of an idle machine. Above it a lane often has to
// wait.
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
		c.is(Limited, fmt.Sprintf("of the last minute; cannot read the number of CPUs: %v", err), "")
		return
	}
	c.Why = "of the last minute, on " + page.Amount(cpus, "CPU")
	if load > quietLoad*float64(cpus) {
		c.is(Limited, c.Why+"; other processes are running and will affect the figures: wait until they end, or stop them", "")
	}
}

// cpuLimit checks the limit of tare's own cgroup, which throttles tare and its children.
func (s *subject) cpuLimit(c *Check) {
	l, limited := cgroup.Tightest(s.root)
	cpus, err := s.root.CPUs()
	if !limited || err == nil && l.CPUs >= float64(cpus) {
		c.Status = absent
		return
	}
	c.Version = fmt.Sprintf("%.3g CPUs", l.CPUs)
	c.is(Limited, fmt.Sprintf("limit of tare's cgroup %s, which was throttled in %d of %d periods. It would determine the times: lift it, or start tare elsewhere", l.Group, l.Throttled, l.Periods), l.Lift)
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
	case err != nil: // the memory check reports it
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
	c.is(Limited, c.Why+": swapped-out pages are missing from resident memory", "swapoff -a")
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

// size formats bytes with up to three digits and a binary unit.
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
