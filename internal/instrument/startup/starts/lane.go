package starts

import (
	"cmp"
	"slices"
	"time"

	"github.com/tare-bench/tare/record"
)

const (
	// breath is the maximum time between two lines that count as simultaneous. It is
	// also the minimum length of a gap.
	breath = int64(time.Millisecond)
	// jitter is the maximum disorder of lines. Programs log from several threads. A larger
	// step back means that the clock was set.
	jitter = int64(time.Second)
)

// edge is a line that can begin or end a gap.
type edge struct {
	at    int64
	text  []byte
	in    []byte
	place place
	mark  bool
}

// set copies an edge, including its texts.
func (d *edge) set(s *edge) {
	d.at, d.place, d.mark = s.at, s.place, s.mark
	d.text = append(d.text[:0], cut(s.text)...)
	d.in = append(d.in[:0], cut(s.in)...)
}

// lane has the last lines of one program, or of programs that call each other.
type lane struct {
	last, milestone, guest edge // guest: last guest line since last
	before                 int64
	others                 int64 // number of lines since last that are not edges of this lane, excluding those counted in breath
	breath                 int64 // number of lines in the latest burst; they move to others unless an edge is simultaneous
	breathed               int64
	open                   record.Gap // last gap, whose end a milestone may still replace; Ended 0: none
}

// The lanes of a start.
const (
	host  = iota // the engine and the runtime
	proxy        // Kata 1.x's proxy
	beside
	lanes
)

// pass counts a line that is not an edge of this lane. Lines that are simultaneous with
// either end of the gap do not count.
func (l *lane) pass(at int64) {
	if at-l.last.at <= breath {
		return
	}
	if at-l.breathed > breath {
		l.others, l.breath, l.breathed = l.others+l.breath, 0, at
	}
	l.breath++
}

// passGuest counts a guest line.
func (l *lane) passGuest(g *edge) {
	l.pass(g.at)
	if l.last.at != 0 {
		l.guest.set(g)
	}
}

// edge ends the current gap of a lane and begins the next one.
func (s *sandbox) edge(b *Builder, which int, e *edge) {
	l := &s.lanes[which]
	took := e.at - l.last.at
	if e.at-l.breathed > breath {
		l.others += l.breath
	}
	switch {
	case l.last.at == 0 || took < -jitter:
	case took < 0:
		return
	default:
		l.giveWay(b, s, e)
		if took >= breath && (which == host || s.lanes[host].silent(l.last.at, e.at)) {
			s.gap(b, l, e)
		}
	}
	l.before = l.last.at
	l.last.set(e)
	if e.mark {
		l.milestone.set(e)
	}
	l.others, l.breath, l.guest.at = 0, 0, 0
}

// giveWay moves the end of the last gap to a milestone that follows immediately.
func (l *lane) giveWay(b *Builder, s *sandbox, e *edge) {
	if l.open.Ended == 0 || !e.mark {
		return
	}
	if e.at-l.open.Ended <= breath {
		for _, list := range [][]kept{s.kept, s.tail} {
			for i := range list {
				if g := &list[i]; g.Began == l.open.Began && g.Ended == l.open.Ended && g.In == l.open.In {
					g.Ended, g.Before = e.at, b.words.keep(e.text)
				}
			}
		}
	}
	l.open.Ended = 0
}

// silent reports whether a lane has no line in the middle of an interval. Lines in the
// first and last tenth do not count.
func (l *lane) silent(from, to int64) bool {
	tenth := (to - from) / 10
	return l.last.at <= from+tenth || l.last.at >= to-tenth && l.before <= from+tenth
}

// gap records the gap between the last line of the lane and e.
func (s *sandbox) gap(b *Builder, l *lane, e *edge) {
	from := &l.last
	if !from.mark && l.milestone.at != 0 && from.at-l.milestone.at <= breath && from.at >= l.milestone.at {
		from = &l.milestone
	}
	l.open.Ended = 0
	if g, ok := s.keep(b, from, e, l.others); ok && !e.mark {
		l.open.Began, l.open.Ended, l.open.In = g.Began, g.Ended, g.In
	}
	whole, rest := e.at-from.at, e.at-l.guest.at
	if !s.has(agentAnswers) && l.guest.at > from.at && rest >= whole/10 && rest <= whole/10*9 && rest >= breath {
		s.keep(b, &l.guest, e, 0)
	}
}

// keep retains a gap if it is one of the longest. Gaps after the current end are stored
// separately, since they count only if the start continues.
func (s *sandbox) keep(b *Builder, from, to *edge, others int64) (record.Gap, bool) {
	list := &s.kept
	if s.ended != 0 {
		list = &s.tail
	}
	if n := len(*list); n == b.maxGaps && (*list)[n-1].took() >= to.at-from.at {
		return record.Gap{}, false
	}
	g := record.Gap{
		Began: from.at, Ended: to.at, After: b.words.keep(from.text), Before: b.words.keep(to.text), In: b.words.keep(from.in),
		CPU: -1, Others: others,
	}
	*list = addGap(*list, kept{g, from.place}, b.maxGaps)
	return g, true
}

// kept is a gap and the position at which it begins. The position is formatted when
// the start is emitted.
type kept struct {
	record.Gap
	from place
}

func (k *kept) took() int64 { return k.Ended - k.Began }

// addGap adds a gap to a list of the longest gaps, longest first, and limits its
// length.
func addGap(list []kept, g kept, most int) []kept {
	at := slices.IndexFunc(list, func(x kept) bool { return x.took() < g.took() })
	if at < 0 {
		at = len(list)
	}
	list = slices.Insert(list, at, g)
	return list[:min(len(list), most)]
}

// join adds the gaps after the provisional end to the other gaps, since the start
// continues.
func (s *sandbox) join(most int) {
	for _, g := range s.tail {
		s.kept = addGap(s.kept, g, most)
	}
	s.tail = s.tail[:0]
}

// gaps returns the gaps of the start, longest first.
func (s *sandbox) gaps(b *Builder, until int64) (out []record.Gap) {
	for _, k := range s.kept {
		if k.Began >= s.began && k.Ended <= until {
			k.Source = b.source(k.from)
			out = append(out, k.Gap)
		}
	}
	slices.SortStableFunc(out, func(x, y record.Gap) int {
		return cmp.Or(cmp.Compare(y.Ended-y.Began, x.Ended-x.Began), cmp.Compare(x.Began, y.Began))
	})
	return out
}

// laneOf returns the lane of a runtime line.
func laneOf(program []byte, isProxy bool) int {
	switch {
	case isProxy || string(program) == "kata-proxy":
		return proxy
	case string(program) == "kata-shim":
		return beside
	}
	return host
}
