package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/node/nodestat"
)

const cpuDir = "/sys/devices/system/cpu"

// hardware has the properties of a machine that make the same work take different times.
var hardware = []facility{
	{AreaMachine, "CPU governor", (*subject).governor},
	{AreaMachine, "SMT", (*subject).smt},
	{AreaMachine, "turbo", (*subject).turbo},
	{AreaMachine, "clock source", (*subject).clockSource},
	{AreaMachine, "stolen CPU time", (*subject).steal},
}

func (s *subject) governor(c *Check) {
	switch c.Version = s.root.Governor(); c.Version {
	case "":
		c.Version, c.Why = "none", "this machine reports no frequency scaling; a hypervisor below it may still scale"
	case "performance":
		c.Why = "the frequency does not follow the load"
	default:
		c.is(Limited, "the frequency follows the load: short operations after a pause run slower",
			"echo performance | tee "+cpuDir+"/cpu*/cpufreq/scaling_governor")
	}
}

// smt checks hyperthreads. The kernel reports them since Linux 4.19, on hardware that has
// them.
func (s *subject) smt(c *Check) {
	control, err := s.root.FirstLine(cpuDir+"/smt/control", 64)
	active, activeErr := s.root.FirstLine(cpuDir+"/smt/active", 64)
	c.Version, c.Why = "off", "lanes do not share cores"
	switch {
	case err != nil, activeErr != nil, control == "notsupported", control == "notimplemented":
		c.Status = absent
	case active == "1":
		c.Version = "on"
		c.is(Limited, "two lanes can share a core and slow each other", "echo off > "+cpuDir+"/smt/control")
	}
}

// turbo checks frequencies above the nominal one, if the driver has a switch.
func (s *subject) turbo(c *Check) {
	for _, driver := range []struct{ file, on, off string }{
		{"/intel_pstate/no_turbo", "0", "1"},
		{"/cpufreq/boost", "1", "0"},
	} {
		state, err := s.root.FirstLine(cpuDir+driver.file, 64)
		if err != nil {
			continue
		}
		c.Version, c.Why = "off", "the frequency does not depend on heat"
		if state == driver.on {
			c.Version = "on"
			c.is(Limited, "the frequency depends on heat and on how many cores are busy", "echo "+driver.off+" > "+cpuDir+driver.file)
		}
		return
	}
	c.Status = absent
}

// slowClocks are read through a device instead of a register. A read takes a microsecond or
// more, also in the kernel.
var slowClocks = []string{"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}

func (s *subject) clockSource(c *Check) {
	current, available := s.root.ClockSource()
	c.Version, c.Why = current, "a timestamp costs some tens of nanoseconds"
	switch {
	case current == "":
		c.is(Limited, "it could not be read from /sys/devices/system/clocksource", "")
	case slices.Contains(slowClocks, current):
		c.is(Limited, "a timestamp costs a microsecond or more, or has that resolution", "")
		for _, better := range []string{"kvm-clock", "tsc"} { // the last is the best
			if slices.Contains(available, better) {
				c.Fix = "echo " + better + " > /sys/devices/system/clocksource/clocksource0/current_clocksource"
			}
		}
		if c.Fix == "" {
			c.Why += "; the kernel offers no better one (" + strings.Join(available, ", ") + ")"
		}
	}
}

// stealWindow is how long stolen time is measured: twenty ticks of every CPU.
const stealWindow = 200 * time.Millisecond

// Stolen shares above these make figures unsteady. One tick in the window of a
// machine with two CPUs is already 2.5 %.
const (
	stealSinceStart = 0.01
	stealNow        = 0.05
)

func (s *subject) steal(c *Check) {
	first, err := nodestat.ReadCPU(s.root)
	if err != nil {
		c.unread(err)
		return
	}
	s.kernel.Wait(stealWindow)
	second, err := nodestat.ReadCPU(s.root)
	if err != nil {
		c.is(Limited, fmt.Sprintf("could not be read again: %v", err), "")
		return
	}
	_, before, _ := first.Since(nodestat.CPU{})
	busy, now, known := second.Since(first)
	c.Version = fmt.Sprintf("%.1f %%", before*100)
	c.Why = "since the machine started"
	if known {
		c.Why += fmt.Sprintf("; %.1f %% in %v, with the CPUs %.0f %% busy", now*100, stealWindow, busy*100)
	}
	if before >= stealSinceStart || now >= stealNow {
		c.Status = Limited
		c.Why += "; other VMs on the same host take CPU time from this one, and this machine cannot prevent it"
	}
}
