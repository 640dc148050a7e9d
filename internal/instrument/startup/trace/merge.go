package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/record"
)

// Merge puts what the logs of a run tell of its starts into those starts, which it
// copies, on their clock. A log's start is that of which it has an id and with which it
// has the most time in common; one that is nobody's is left out. Where no start was
// watched they are as they were.
func Merge(all []record.Start) []record.Start {
	logged := func(s record.Start) bool { return s.Method == record.MethodLogs }
	if !slices.ContainsFunc(all, logged) || !slices.ContainsFunc(all, func(s record.Start) bool { return s.Wall != 0 }) {
		return all
	}
	live := slices.DeleteFunc(slices.Clone(all), logged)
	for i := range all {
		if from := &all[i]; logged(*from) {
			best, most := -1, int64(0)
			for j := range live {
				if common := Common(&live[j], from); common > most {
					best, most = j, common
				}
			}
			if best >= 0 {
				live[best] = merged(live[best], from)
			}
		}
	}
	return live
}

// Common is the time (ns) that a start and what a log tells of a start with one of its
// ids have in common, 0 where they are not the same.
func Common(s, logged *record.Start) int64 {
	ids := append([]string{s.Sandbox}, s.Containers...)
	if s.Wall == 0 || !slices.ContainsFunc(append([]string{logged.Sandbox}, logged.Containers...), func(id string) bool { return id != "" && slices.Contains(ids, id) }) {
		return 0
	}
	end := max(s.Ended, s.First)
	if s.Ended == 0 {
		end = 1 << 62
	}
	off := s.Began - s.Wall
	return min(end, lastOf(logged)+off) - max(s.Began, logged.Began+off)
}

// lastOf is when a log's start ended, or the last that is known of it.
func lastOf(s *record.Start) int64 {
	last := max(s.Began, s.Ended)
	for i := range s.Spans {
		last = max(last, s.Spans[i].Ended)
	}
	return last
}

// merged is a start with what a log tells of it. The time before a log's first line and
// behind its last is silent in it, too.
func merged(s record.Start, from *record.Start) record.Start {
	off := s.Began - s.Wall
	s.Spans, s.Gaps, s.Guests = slices.Clone(s.Spans), slices.Clone(s.Gaps), slices.Clone(s.Guests)
	for _, x := range from.Spans {
		x.Began, x.Ended = x.Began+off, x.Ended+off
		s.Spans = append(s.Spans, x)
	}
	slices.SortStableFunc(s.Spans, func(a, b record.Span) int {
		return cmp.Or(cmp.Compare(a.Began, b.Began), cmp.Compare(b.Ended, a.Ended))
	})
	for _, g := range from.Gaps {
		g.Began, g.Ended = g.Began+off, g.Ended+off
		s.Gaps = append(s.Gaps, g)
	}
	first, last := from.Began+off, lastOf(from)+off
	if s.Gaps = append(s.Gaps, record.Gap{Began: min(s.Began, first), Ended: first, Before: "the first line of the log", CPU: -1}); s.Ended > last {
		s.Gaps = append(s.Gaps, record.Gap{Began: last, Ended: s.Ended, After: "the last line of the start in the log", CPU: -1})
	}
	for _, g := range from.Guests {
		g.Offset += off
		s.Guests = append(s.Guests, g)
	}
	for _, m := range from.Missing {
		if m.What != "no begin" && m.What != "no end" { // both were seen
			s.Missing = append(slices.Clip(s.Missing), m)
		}
	}
	align(&s)
	s.Source, s.Name = cmp.Or(s.Source, from.Source), cmp.Or(s.Name, from.Name)
	return s
}

// exact is how far apart the bounds of a guest's first instruction may be for it to be
// known.
const exact = int64(20 * time.Millisecond)

// align finds the first instruction within a guest, whose clock is another. It is behind
// the last call of the runtime's to start a container, and behind the agent's, which its
// clock's bounds put on the host's; and before what the workload said had been read.
func align(s *record.Start) {
	if s.First != 0 || s.FirstBy == 0 {
		return
	}
	least := int64(0)
	for _, x := range s.Spans {
		began := x.Began
		switch {
		case !strings.HasSuffix(x.Name, " start") && !strings.HasSuffix(x.Name, " start_container"), x.Kind != record.KindCall && x.Kind != record.KindGuest:
			continue
		case x.Kind == record.KindGuest && (len(s.Guests) != 1 || s.Guests[0].Uncertainty < 0):
			continue
		case x.Kind == record.KindGuest:
			began -= s.Guests[0].Uncertainty
		}
		least = max(least, began)
	}
	if least > 0 && s.FirstBy-least <= exact {
		s.First = max(s.FirstBy, least)
		return
	}
	why := "nothing in the logs bounds it from below"
	if least > 0 {
		why = fmt.Sprintf("what is known of it is good to %v, not to %v", time.Duration(s.FirstBy-least).Round(time.Millisecond), time.Duration(exact))
	}
	s.Missing = append(slices.Clip(s.Missing), record.Missing{What: "first instruction", Count: 1, Detail: "it is the guest's, on another clock: " + why})
}
