package starts

import (
	"bytes"
	"slices"
	"time"

	"github.com/tare-bench/tare/record"
)

const (
	// breath is how far from a milestone a line is said with the same breath, and
	// the shortest gap that is kept.
	breath = int64(time.Millisecond)
	// jitter is how much older than the one before a line may be: programs write
	// from several threads. More is a clock that was set.
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

// set copies an edge whose texts are another's.
func (d *edge) set(s *edge) {
	d.at, d.place, d.mark = s.at, s.place, s.mark
	d.text = append(d.text[:0], cut(s.text)...)
	d.in = append(d.in[:0], cut(s.in)...)
}

// lane is what one program, or several that call each other, said last.
type lane struct {
	last, milestone, guest edge // guest: the last line out of the guest since last
	before                 int64
	others                 int64      // lines since last that are no edges here
	open                   record.Gap // the last gap, whose end may still give way to a milestone; Ended 0: none
}

// The lanes of a start.
const (
	host  = iota // the engine and the runtime
	proxy        // Kata 1.x's proxy
	beside
	lanes
)

// pass takes notice of a line that ends no gap.
func (l *lane) pass() { l.others++ }

// passGuest takes notice of a guest's line.
func (l *lane) passGuest(g *edge) {
	l.others++
	if l.last.at != 0 {
		l.guest.set(g)
	}
}

// edge ends a gap in one of the lanes and begins the next.
func (s *sandbox) edge(b *Builder, which int, e *edge) {
	l := &s.lanes[which]
	took := e.at - l.last.at
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
	l.others, l.guest.at = 0, 0
}

// giveWay moves the end of the last gap to a milestone that follows it at once.
func (l *lane) giveWay(b *Builder, s *sandbox, e *edge) {
	if l.open.Ended == 0 || !e.mark {
		return
	}
	if e.at-l.open.Ended <= breath {
		for _, kept := range [][]record.Gap{s.kept, s.tail} {
			for i := range kept {
				if g := &kept[i]; g.Began == l.open.Began && g.Ended == l.open.Ended && g.In == l.open.In {
					g.Ended, g.Before = e.at, b.words.keep(e.text)
				}
			}
		}
	}
	l.open.Ended = 0
}

// silent says whether a lane says nothing in the middle of an interval: what it
// says in the first or last tenth begins or ends the same wait.
func (l *lane) silent(from, to int64) bool {
	tenth := (to - from) / 10
	return l.last.at <= from+tenth || l.last.at >= to-tenth && l.before <= from+tenth
}

// gap keeps the time between the lane's last line and e.
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

// keep keeps a gap if it is one of the longest. Those after the end of the start
// are kept apart, since it may turn out to go on.
func (s *sandbox) keep(b *Builder, from, to *edge, others int64) (record.Gap, bool) {
	list := &s.kept
	if s.ended != 0 {
		list = &s.tail
	}
	at, ok := roomFor(*list, to.at-from.at, b.o.Gaps)
	if !ok {
		return record.Gap{}, false
	}
	g := record.Gap{
		Began: from.at, Ended: to.at, After: b.words.keep(from.text), Before: b.words.keep(to.text), In: b.words.keep(from.in),
		CPU: -1, Others: others,
	}
	if at == len(*list) {
		*list = append(*list, g)
		s.places(list).add(from.place)
	} else {
		(*list)[at] = g
		s.places(list).set(at, from.place)
	}
	return g, true
}

// roomFor is where a gap of a length can be put: at the end, or in place of the
// shortest.
func roomFor(list []record.Gap, took int64, most int) (int, bool) {
	if len(list) < most {
		return len(list), true
	}
	shortest := 0
	for i := range list {
		if list[i].Ended-list[i].Began < list[shortest].Ended-list[shortest].Began {
			shortest = i
		}
	}
	return shortest, list[shortest].Ended-list[shortest].Began < took
}

// placesOf holds where gaps begin, so that it becomes text only for those that
// are given out.
type placesOf []place

func (p *placesOf) add(x place)        { *p = append(*p, x) }
func (p *placesOf) set(i int, x place) { (*p)[i] = x }

func (s *sandbox) places(list *[]record.Gap) *placesOf {
	if list == &s.kept {
		return &s.keptAt
	}
	return &s.tailAt
}

// join moves the gaps after the end, which turned out not to be it, to the others.
func (s *sandbox) join(most int) {
	for i, g := range s.tail {
		at, ok := roomFor(s.kept, g.Ended-g.Began, most)
		switch {
		case !ok:
		case at == len(s.kept):
			s.kept, s.keptAt = append(s.kept, g), append(s.keptAt, s.tailAt[i])
		default:
			s.kept[at], s.keptAt[at] = g, s.tailAt[i]
		}
	}
	s.tail, s.tailAt = s.tail[:0], s.tailAt[:0]
}

// gaps are those of the start, the longest first.
func (s *sandbox) gaps(b *Builder, until int64) []record.Gap {
	for i := range s.kept {
		s.kept[i].Source = b.source(s.keptAt[i])
	}
	out := slices.DeleteFunc(slices.Clone(s.kept), func(g record.Gap) bool { return g.Began < s.began || g.Ended > until })
	slices.SortStableFunc(out, func(x, y record.Gap) int {
		if d := (y.Ended - y.Began) - (x.Ended - x.Began); d != 0 {
			return sign(d)
		}
		return sign(x.Began - y.Began)
	})
	return out
}

func sign(d int64) int {
	switch {
	case d < 0:
		return -1
	case d > 0:
		return 1
	}
	return 0
}

// laneOf is the lane of a runtime's line.
func laneOf(program []byte, isProxy bool) int {
	switch {
	case isProxy || bytes.Equal(program, []byte("kata-proxy")):
		return proxy
	case bytes.Equal(program, []byte("kata-shim")):
		return beside
	}
	return host
}
