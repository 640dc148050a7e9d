package startup

import (
	"iter"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

// milestones are what a start is for, as far as it came, in order.
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

// readyAtMost is in how many starts the workload was ready when it was asked first: the
// time is the latest that can be.
func (t *Target) readyAtMost() int { return t.Ready.N - t.ReadyTo.N }

// readyNote says how exactly that is known, "" where nobody asked.
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
		return "ready: every workload was so when it was asked first, so that these are the latest that can be"
	}
	return "ready: as it was found when it was asked from outside, known to " + page.Duration(worst) + " at worst" + page.ReadyAtMost(atMost, asked)
}
