package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/node/nodestat"
)

const cpuDir = "/sys/devices/system/cpu"

// hardware looks at what makes the same work take a different time.
func (s *subject) hardware() []Check {
	checks := []Check{s.governor()}
	if c, ok := s.smt(); ok {
		checks = append(checks, c)
	}
	if c, ok := s.turbo(); ok {
		checks = append(checks, c)
	}
	return append(checks, s.clockSource(), s.steal())
}

func (s *subject) governor() Check {
	c := Check{Area: AreaMachine, Name: "CPU governor", Version: s.root.Governor(), Status: OK}
	switch c.Version {
	case "":
		c.Version = "none"
		c.Why = "this machine shows no frequency scaling; what lies below it may scale all the same"
	case "performance":
		c.Why = "the frequency does not follow the load"
	default:
		c.Status = Limited
		c.Why = "the frequency follows the load: short operations after a pause run slower"
		c.Fix = "echo performance | tee " + cpuDir + "/cpu*/cpufreq/scaling_governor"
	}
	return c
}

// smt reports on hyperthreads, ok false where the kernel shows none (Linux
// 4.19, and only on hardware that has them).
func (s *subject) smt() (c Check, ok bool) {
	control, err := s.root.FirstLine(cpuDir+"/smt/control", 64)
	if err != nil || control == "notsupported" || control == "notimplemented" {
		return Check{}, false
	}
	active, err := s.root.FirstLine(cpuDir+"/smt/active", 64)
	if err != nil {
		return Check{}, false
	}
	c = Check{Area: AreaMachine, Name: "SMT", Version: "off", Status: OK, Why: "lanes do not share cores"}
	if active == "1" {
		c.Version, c.Status = "on", Limited
		c.Why = "two lanes can share a core and slow each other"
		c.Fix = "echo off > " + cpuDir + "/smt/control"
	}
	return c, true
}

// turbo reports on frequencies above the nominal one, ok false where no driver
// shows a switch for them.
func (s *subject) turbo() (c Check, ok bool) {
	for _, driver := range []struct{ file, on, off string }{
		{"/intel_pstate/no_turbo", "0", "1"},
		{"/cpufreq/boost", "1", "0"},
	} {
		state, err := s.root.FirstLine(cpuDir+driver.file, 64)
		if err != nil {
			continue
		}
		c = Check{Area: AreaMachine, Name: "turbo", Version: "off", Status: OK, Why: "the frequency does not depend on heat"}
		if state == driver.on {
			c.Version, c.Status = "on", Limited
			c.Why = "the frequency depends on heat and on how many cores are busy"
			c.Fix = "echo " + driver.off + " > " + cpuDir + driver.file
		}
		return c, true
	}
	return Check{}, false
}

// slowClocks are read through a device instead of a register: a microsecond or
// more for every stamp, in the kernel's own as well.
var slowClocks = []string{"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}

func (s *subject) clockSource() Check {
	current, available := s.root.ClockSource()
	c := Check{Area: AreaMachine, Name: "clock source", Version: current, Status: OK, Why: "a stamp costs some tens of nanoseconds"}
	switch {
	case current == "":
		c.Status, c.Why = Limited, "it could not be read from /sys/devices/system/clocksource"
	case slices.Contains(slowClocks, current):
		c.Status = Limited
		c.Why = "a stamp costs a microsecond or more, or is that coarse"
		for _, better := range []string{"tsc", "kvm-clock"} {
			if slices.Contains(available, better) {
				c.Fix = "echo " + better + " > /sys/devices/system/clocksource/clocksource0/current_clocksource"
				break
			}
		}
		if c.Fix == "" {
			c.Why += "; the kernel has found no better one (" + strings.Join(available, ", ") + ")"
		}
	}
	return c
}

// stealWindow is how long stolen time is watched: twenty ticks of every CPU.
const stealWindow = 200 * time.Millisecond

// Stolen shares above these make figures unsteady. One tick in the window of a
// machine with two CPUs is already 2.5 %.
const (
	stealSinceStart = 0.01
	stealNow        = 0.05
)

func (s *subject) steal() Check {
	c := Check{Area: AreaMachine, Name: "stolen CPU time", Status: OK}
	first, err := nodestat.ReadCPU(s.root)
	if err != nil {
		c.Status, c.Why = Limited, fmt.Sprintf("could not be read: %v", err)
		return c
	}
	s.kernel.Wait(stealWindow)
	second, err := nodestat.ReadCPU(s.root)
	if err != nil {
		c.Status, c.Why = Limited, fmt.Sprintf("could not be read again: %v", err)
		return c
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
		c.Why += "; other machines on the same hardware take time from this one, and nothing in here stops them"
	}
	return c
}
