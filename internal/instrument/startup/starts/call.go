package starts

import (
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// doubt is a call after whose begin an error was logged. Its end is logged either
// way, so whether it did what it was to do shows in what followed only.
type doubt struct{ call, container, text string }

// call is one that has begun.
type call struct {
	name, kind, container string
	at                    int64
	text                  string
	place                 place
	wrong                 bool // an error was logged since
	pod                   string
	form                  logs.Form
	key                   string // of containerd's call of RunPodSandbox, see podKey
}

// holds says whether what followed shows that a call did what it was to do.
func (s *sandbox) holds(d doubt) bool {
	for _, m := range s.points {
		switch {
		case m.container != d.container:
		case m.point == startReturned, d.call == kataCreate && (m.point == begun || m.point == started), m.point == started && (m.told || m.weak):
			return true
		}
	}
	return d.call != kataCreate && d.call != kataStart
}

// begin begins a call.
func (s *sandbox) begin(c call) {
	if len(s.calls) < maxCalls {
		s.calls = append(s.calls, c)
	}
}

// head is the first line of the runtime since the start began or since the last of
// its calls ended: a call whose begin is not told had begun by then.
type head struct {
	at    int64
	place place
}

// headless are the calls of which only the end was told, the first of them by name.
type headless struct {
	count int64
	name  string
	from  place
}

// endsKata ends a call of Kata's. The log that tells of its begin may not be there:
// the shim says so before it knows where to log to, and only containerd takes
// that down.
func (s *sandbox) endsKata(b *Builder, name, container string, at int64) {
	if !s.end(b, name, container, at) && s.head.at != 0 && s.head.at < at && !s.isCalled() {
		if s.beginless.count++; s.beginless.count == 1 {
			s.beginless.name, s.beginless.from = name, s.head.place
		}
		s.span(b, call{name: name, kind: record.KindCall, container: container, at: s.head.at, place: s.head.place}, at)
	}
	s.head = head{}
}

// knows says whether a call of a name is known, for a container.
func (s *sandbox) knows(name, container string) bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.name == name && c.container == container }) ||
		slices.ContainsFunc(s.spans, func(x record.Span) bool { return x.Name == name && x.Container == container })
}

// unended are the calls of the runtime within a start of which no end was told, or
// neither end nor begin: what they took is not known.
func (s *sandbox) unended(until int64) (out []call) {
	out = append(out, s.unseen...)
	for _, c := range s.calls {
		if c.kind == record.KindCall && c.at < until {
			out = append(out, c)
		}
	}
	return out
}

// isCalled says whether a call of the runtime is under way: what was said
// meanwhile is that one's.
func (s *sandbox) isCalled() bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.kind == record.KindCall })
}

// end ends the last call of a name, for a container, and makes it a span; false
// where none of that name has begun.
func (s *sandbox) end(b *Builder, name, container string, at int64) bool {
	for i, c := range slices.Backward(s.calls) {
		if c.name == name && c.container == container {
			s.calls = slices.Delete(s.calls, i, i+1)
			s.span(b, c, at)
			return true
		}
	}
	return false
}

func (s *sandbox) span(b *Builder, c call, at int64) {
	if at < c.at || len(s.spans) == maxSpans {
		return
	}
	if c.wrong && len(s.doubts) < maxCalls {
		s.doubts = append(s.doubts, doubt{c.name, c.container, s.error})
	}
	s.spans = append(s.spans, record.Span{Name: c.name, Kind: c.kind, Container: c.container, Began: c.at, Ended: at, Source: b.source(c.place)})
}
