package starts

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// take processes a fact of a line.
func (b *Builder) take(e *logs.Event, f *fact, at int64) {
	f.sandbox, f.container = idOr(f.sandbox, e.Sandbox), idOr(f.container, e.Container)
	if e.Cut && f.step == asks { // the truncated part may make it a response
		f.step, f.mark = says, mark{}
	}
	c := b.calls.m[string(f.key)]
	if f.oldest && f.step != asks {
		c = c.oldestOf()
	}
	switch {
	case f.step == exits || f.step == stops:
		b.gone(e, f, at)
	case f.step == asks && (c == nil || c.over || !f.request):
		b.asks(e, f, c, at)
	case c != nil && (f.step == says || f.step == asks || f.step == answers && c.over && f.point != startReturned): // the end may be logged twice
		b.lineOf(c, e, f, at)
	case f.step == says:
		b.says(e, f, at)
	default:
		b.ends(e, f, c, at)
	}
}

func idOr(id, other []byte) []byte {
	if id == nil {
		id = other
	}
	if !isID(id) {
		return nil
	}
	return id
}

// says processes a line that neither begins nor ends a call. The line may reach a
// milestone.
func (b *Builder) says(e *logs.Event, f *fact, at int64) {
	s, named := b.find(e, f, at)
	if s == nil {
		return
	}
	if i := slices.IndexFunc(b.creates, func(c *call) bool { return c.place.file == e.File }); f.made && i >= 0 && s.began == 0 {
		s.guessed = len(b.creates) > 1
		b.adopt(s, b.creates[i])
		b.creates = slices.Delete(b.creates, i, i+1)
	}
	if f.stage != nil {
		s.stage = b.words.keep(f.stage)
	}
	if f.took > 0 {
		s.span(b, &call{name: f.call, kind: f.kind, container: s.id, at: at - f.took, place: placeOf(e)}, at)
	}
	if f.at == 0 || f.point == observed {
		s.said(b, e, e.Time, host, f.mark, named)
	} else if s.edges++; s.began == 0 || at < s.began {
		s.began, s.at = at, placeOf(e)
	}
	p, container := f.point, ""
	switch {
	case p == none:
		return
	case f.member != nil:
		container = b.words.keep(f.member)
	case f.container != nil:
		container = b.words.keep(f.container)
	case p.is(ofContainer) || p == shimStarted:
		container = s.id
	}
	if f.ends {
		s.end(b, f.call, container, at)
	}
	s.reached(b, f.mark, at, container, placeOf(e))
}

// find returns the start that a fact belongs to. named reports whether the line has an
// id, even if the start with this id is over. A line without an id and without a start
// is counted as unplaced.
func (b *Builder) find(e *logs.Event, f *fact, at int64) (s *sandbox, named bool) {
	switch {
	case f.hint != nil && f.sandbox == nil && f.container == nil && b.known(f.hint) != nil:
		s, named = b.known(f.hint), true
	case f.sandbox != nil || f.container != nil:
		s, named = b.named(f.sandbox, f.container, f.opens, at)
	case f.pod != nil:
		s, named = b.ofPod(f, at), true
	case f.step == says && f.first != nil:
		s = b.oldest(f.first)
		named = s != nil
	}
	if s == nil && !named {
		s = b.unnamed(e)
	}
	switch {
	case s == nil && (!named || f.pod != nil):
		b.Unplaced++
	case s != nil && b.settles(s, at):
		return b.find(e, f, at)
	}
	return s, named
}

// oldest returns the start in progress that satisfies a condition. If there are
// several, it returns the one that began first, and marks it as guessed.
func (b *Builder) oldest(is func(s *sandbox) bool) (first *sandbox) {
	guess := false
	for s := range b.underWay {
		if is(s) {
			guess = first != nil
			if first == nil || s.began < first.began {
				first = s
			}
		}
	}
	if first != nil && guess {
		first.guessed = true
	}
	return first
}

// podName joins a namespace and a name.
func podName(space, name []byte) []byte {
	if len(space) == 0 {
		return name
	}
	return fmt.Appendf(nil, "%s/%s", space, name)
}
