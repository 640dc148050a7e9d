package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/tare-bench/tare/record"
)

// shortest is the least time between two events that is called a gap.
const shortest = int64(time.Millisecond)

// InWorkload is what begins whose a gap is that is a workload's: what that waits for is
// no part of its start.
const InWorkload = "workload "

// Gaps returns at most n intervals in which a start waited, the longest first: of
// a live one those of 1 ms and more between two events of its processes, of logs
// those that were recorded.
//
// In says whose a live gap is: as in [Parts], but what a call started counts as
// its child, and with the youngest child that was there all the time: "runc
// create (sleep)". What a workload's own children do is not looked at.
func Gaps(s *record.Start, engine string, n int) []record.Gap {
	if n <= 0 {
		return nil
	}
	var gaps []record.Gap
	switch s.Method {
	case record.MethodLogs:
		for _, g := range s.Gaps { // what a log holds beyond the start is none of its
			if s.Ended > s.Began {
				g.Began, g.Ended = max(g.Began, s.Began), min(g.Ended, s.Ended)
			}
			gaps = append(gaps, g)
		}
	case record.MethodNotes, record.MethodNone: // without events there is nothing between them
	default:
		if s.Ended > s.Began {
			gaps = silent(quiet(s), s)
		}
	}
	gaps = slices.DeleteFunc(gaps, func(g record.Gap) bool { return g.Ended < g.Began })
	slices.SortStableFunc(gaps, func(a, b record.Gap) int { return cmp.Compare(b.Ended-b.Began, a.Ended-a.Began) })
	gaps = gaps[:min(n, len(gaps))]
	if len(s.Processes) > 0 {
		blame(s, gaps, engine)
	}
	for i := range gaps {
		gaps[i].In, gaps[i].Wait = cmp.Or(gaps[i].In, engine), nil
	}
	return gaps
}

// moment is an event of a start in words.
type moment struct {
	at   int64
	rank int // of several at one time the highest is named
	what string
}

// quiet are the intervals between the events of a live start.
func quiet(s *record.Start) []record.Gap {
	events := moments(s)
	cpu := usage(s.Busy)
	var gaps []record.Gap
	for i := 0; i+1 < len(events); i++ {
		a, b := events[i], events[i+1]
		if b.at-a.at >= shortest {
			gaps = append(gaps, record.Gap{Began: a.at, Ended: b.at, After: a.what, Before: b.what, CPU: cpu.between(a.at, b.at)})
		}
	}
	return gaps
}

// silent leaves of gaps what is silent in the start's logs, too, where it has some.
func silent(gaps []record.Gap, s *record.Start) (both []record.Gap) {
	if len(s.Gaps) == 0 {
		return gaps
	}
	cpu := usage(s.Busy)
	for _, live := range gaps {
		for _, g := range s.Gaps {
			if live.Began >= g.Began {
				g.Began, g.After = live.Began, live.After
			}
			if live.Ended <= g.Ended {
				g.Ended, g.Before = live.Ended, live.Before
			}
			if g.Ended-g.Began >= shortest {
				g.CPU = cpu.between(g.Began, g.Ended)
				both = append(both, g)
			}
		}
	}
	return both
}

// moments are the events of a live start in order, one for each time.
func moments(s *record.Start) []moment {
	f := family(s)
	all := []moment{{s.Began, 9, "the call was made"}, {s.Ended, 9, "it returned"}}
	if s.First != 0 { // as the workload says itself, a little after its exec
		all = append(all, moment{s.First, 0, "the first instruction"})
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		if up := f.parent[i]; p.Kind == record.KindWorkload && up >= 0 && s.Processes[up].Kind == p.Kind {
			continue
		}
		all = append(all, moment{p.Born, 1, p.Name + " forked"})
		if p.Exec != 0 {
			all = append(all, moment{p.Exec, 3, p.Name + " executed"})
		}
		if p.Ended != 0 {
			all = append(all, moment{f.end(i), 2, p.Name + " ended"})
		}
	}
	all = slices.DeleteFunc(all, func(m moment) bool { return m.at < s.Began || m.at > s.Ended })
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Or(cmp.Compare(a.at, b.at), b.rank-a.rank) })
	return slices.CompactFunc(all, func(a, b moment) bool { return a.at == b.at })
}

// blame says of each gap whose it is.
func blame(s *record.Start, gaps []record.Gap, engine string) {
	f := family(s)
	waits := waitedFor(s)
	for i := range gaps {
		g := &gaps[i]
		var owner *stretch
		for j := range waits {
			c := &waits[j]
			if c.rank == rankInit || c.rank == rankWithin || c.began > g.Began || c.ended < g.Ended {
				continue
			}
			if owner == nil || precedence(c, owner) < 0 {
				owner = c
			}
		}
		at, said := -1, g.In
		g.In = engine
		if said != "" && (owner == nil || owner.rank == rankGuest) {
			g.In = said // of the engine's time, and the guest's, a log knows more
			continue
		}
		if owner != nil {
			at, g.In = owner.process, owner.name
			if owner.rank == rankWorkload {
				g.In = InWorkload + owner.name
				continue
			}
			if owner.rank == rankGuest {
				g.In += " (guest not seen)"
				continue
			}
		}
		if child := f.sleeper(g, at); child != "" && child != g.In {
			g.In += " (" + child + ")"
		}
	}
}

// sleeper is the youngest process below another that was there during a gap and
// ended later within the start, or with at -1 below the engine.
func (f *relatives) sleeper(g *record.Gap, at int) string {
	name := ""
	for _, i := range f.order { // by birth, so the last one is the youngest
		p := &f.start.Processes[i]
		if p.Born > g.Began || f.end(i) < g.Ended {
			continue
		}
		waits, ended := false, p.Exec != 0 && f.ended(i)
		switch p.Kind {
		case record.KindOther:
			waits = ended
		case record.KindInit:
			waits = at >= 0 && f.maker(i) == at
		case record.KindHelper:
			waits = at >= 0 && ended
		case record.KindClient:
			waits = at < 0 && ended && f.parent[i] >= 0
		}
		if !waits {
			continue
		}
		if at < 0 || f.below(i, at) {
			name = p.Name
		}
	}
	return name
}
