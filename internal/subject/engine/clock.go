package engine

import (
	"fmt"
	"os"

	"github.com/tare-bench/tare/record"
)

// ClockCheck finds out whether workloads that should have the host's clock have another one.
type ClockCheck struct{ own bool }

// Check takes the first instruction's time back from a workload with another clock: one that
// is in a time namespace of its own, or says a time that cannot be.
func (c *ClockCheck) Check(pid int, s *record.Sample) {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/time", pid))
	ours, ownErr := os.Readlink("/proc/self/ns/time")
	if err == nil && ownErr == nil && theirs != ours && s.First != 0 {
		s.Guest, s.First = s.First, 0
	}
	c.own = c.own || s.Guest != 0
}

// OwnClock reports whether a workload had another clock than the host's.
func (c *ClockCheck) OwnClock() bool { return c.own }
