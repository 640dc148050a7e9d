package engine

import (
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// ClockCheck detects workloads that unexpectedly have a clock other than the host's.
type ClockCheck struct{ own bool }

// Check moves the first instruction's time to s.Guest if the workload is in another time
// namespace. It notes whether s has a guest time.
func (c *ClockCheck) Check(pid int, s *record.Sample) {
	theirs, ours := procs.Namespace(pid, "time"), procs.Namespace(0, "time")
	if theirs != "" && ours != "" && theirs != ours && s.First != 0 {
		s.Guest, s.First = s.First, 0
	}
	c.own = c.own || s.Guest != 0
}

// OwnClock reports whether any checked workload had a clock other than the host's.
func (c *ClockCheck) OwnClock() bool { return c.own }
