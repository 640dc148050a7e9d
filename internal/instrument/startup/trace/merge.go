package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/record"
)

// Merge returns copies of the watched starts with the data of the run's logs, on the
// clock of each start. A logged start belongs to the watched start that has one of its
// ids and the longest overlap with it. Other logged starts are dropped. If no start
// was watched, Merge returns all unchanged.
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

// Common returns the overlap (ns) of a start and a logged start. It is 0 if they have
// no common id.
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

// lastOf returns the end of a logged start, or its last known time.
func lastOf(s *record.Start) int64 {
	last := max(s.Began, s.Ended)
	for i := range s.Spans {
		last = max(last, s.Spans[i].Ended)
	}
	return last
}

// merged returns s with the data of a logged start. The log is assumed silent before
// its first line and after its last line.
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
		if m.What != "no begin" && m.What != "no end" { // the watched start has both
			s.Missing = append(slices.Clip(s.Missing), m)
		}
	}
	align(&s)
	s.Source, s.Name = cmp.Or(s.Source, from.Source), cmp.Or(s.Name, from.Name)
	return s
}

// exact is the maximum uncertainty at which the first instruction of a guest counts as
// known.
const exact = int64(20 * time.Millisecond)

// align sets the time of the first instruction in a guest, which has its own clock.
// Lower bounds are the last calls to start a container, by the runtime and by the
// agent, on the host clock. The upper bound is the time at which the output of the
// workload was read.
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
	why := "the logs have no lower bound"
	if least > 0 {
		why = fmt.Sprintf("the first instruction is known to within %v, not %v", time.Duration(s.FirstBy-least).Round(time.Millisecond), time.Duration(exact))
	}
	s.Missing = append(slices.Clip(s.Missing), record.Missing{What: "first instruction", Count: 1, Detail: "the guest has a different clock: " + why})
}
