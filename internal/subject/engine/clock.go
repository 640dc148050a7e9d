package engine

import (
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// ClockCheck finds out whether workloads that should have the host's clock have another one.
type ClockCheck struct{ own bool }

// Check takes the first instruction's time back from a workload with another clock: one that
// is in a time namespace of its own, or says a time that cannot be.
func (c *ClockCheck) Check(pid int, s *record.Sample) {
	theirs, ours := procs.Namespace(pid, "time"), procs.Namespace(0, "time")
	if theirs != "" && ours != "" && theirs != ours && s.First != 0 {
		s.Guest, s.First = s.First, 0
	}
	c.own = c.own || s.Guest != 0
}

// OwnClock reports whether a workload had another clock than the host's.
func (c *ClockCheck) OwnClock() bool { return c.own }
