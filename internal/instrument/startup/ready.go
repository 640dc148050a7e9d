package startup

import (
	"iter"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

// milestones iterates over the milestones that a start reached, in order.
func milestones(s *record.Start) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if s.First > s.Began && !yield("first instruction", s.First) {
			return
		}
		if s.Ready > s.Began {
			yield("ready", s.Ready)
		}
	}
}

// readyAtMost returns the number of starts with a workload that was ready at the first
// poll. Their time is an upper bound.
func (t *Target) readyAtMost() int { return t.Ready.N - t.ReadyTo.N }

// readyNote describes the resolution of the ready times. It returns "" if no workload
// was polled.
func readyNote(all []Target) string {
	worst, atMost, asked := 0.0, 0, 0
	for i := range all {
		t := &all[i]
		asked, atMost = asked+t.Ready.N, atMost+t.readyAtMost()
		for _, r := range t.ReadyTo.Rounds {
			worst = max(worst, r.Value)
		}
	}
	switch {
	case asked == 0:
		return ""
	case atMost == asked:
		return "ready: every workload was ready at the first poll, so these are upper bounds"
	}
	return "ready: polled from outside, known to within " + page.Duration(worst) + " at worst" + page.ReadyAtMost(atMost, asked)
}
