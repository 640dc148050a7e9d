package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/tare-bench/tare/record"
)

// shortest is the minimum duration of a gap.
const shortest = int64(time.Millisecond)

// InWorkload is the prefix of Gap.In for gaps in a workload. They do not delay the
// start.
const InWorkload = "workload "

// Gaps returns at most n intervals in which a start waited, longest first. For a live
// start these are the intervals of at least 1 ms between two events of its processes.
// For logs they are the recorded gaps.
//
// Gap.In is the owner of a live gap, as in [Parts]. If a child of the owner existed
// during the whole gap, the youngest such child is added: "runc create (sleep)".
// Children include processes started by a call, but not the children of a workload.
func Gaps(s *record.Start, engine string, n int) []record.Gap {
	if n <= 0 {
		return nil
	}
	var gaps []record.Gap
	switch s.Method {
	case record.MethodLogs:
		for _, g := range s.Gaps { // drop log time outside the start
			if s.Ended > s.Began {
				g.Began, g.Ended = max(g.Began, s.Began), min(g.Ended, s.Ended)
			}
			gaps = append(gaps, g)
		}
	case record.MethodNotes, record.MethodNone: // no events, so no gaps
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

// moment is an event of a start, with a description.
type moment struct {
	at   int64
	rank int // of several events at the same time, the one with the highest rank counts
	what string
}

// quiet returns the intervals between the events of a live start.
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

// silent limits gaps to the time in which the logs of the start are also silent. It
// returns all gaps if there are no logs.
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

// moments returns the events of a live start, at most one per time, in time order.
func moments(s *record.Start) []moment {
	f := family(s)
	all := []moment{{s.Began, 9, "the call was made"}, {s.Ended, 9, "it returned"}}
	if s.First != 0 { // reported by the workload, slightly after its exec
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

// blame sets the owner of each gap.
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
			g.In = said // logs are more precise about engine and guest time
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

// sleeper returns the name of the youngest process that existed during a gap and ended
// later within the start. It searches the descendants of process at, or of the engine
// if at is -1.
func (f *relatives) sleeper(g *record.Gap, at int) string {
	name := ""
	for _, i := range f.order { // by birth, so the last match is the youngest
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
