package starts

import (
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// call is one that has begun.
type call struct {
	name, kind, container string
	point                 point // that is reached with its begin
	at                    int64
	text                  string
	place                 place
	form                  logs.Form
	wrong                 bool     // an error was logged since
	pod, label, stage     string   // its pod's name, its container's in the pod, and at which stage it stands
	key                   string   // see [fact]
	s                     *sandbox // nil: not known yet
	over                  bool
	lines                 int64 // of the call, before its start was known
	older                 int   // how many with its key had not returned when it began
	oldest                bool  // see [fact]
	end                   *call // of a create whose start was not known when it ended: time, line and place of the end
	first                 *call // of which it is a retry, or that runs at the same time
}

// line is the line that a call began with.
func (c *call) line() logs.Event {
	return logs.Event{Form: c.form, Time: c.at, Message: []byte(c.text), File: c.place.file, Line: c.place.line}
}

// doubt is a call after whose begin an error was logged. Its end is logged either
// way, so whether it did what it was to do shows in what followed only.
type doubt struct{ call, container, text string }

// holds reports whether what followed shows that a call did what it was to do.
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
func (s *sandbox) begin(c *call) {
	if len(s.calls) < maxCalls {
		s.calls = append(s.calls, c)
	}
}

// head is the first line of the runtime since the start began or since the last of
// its calls ended: a call whose begin is not logged had begun by then.
type head struct {
	at    int64
	place place
}

// headless are the calls of which only the end was logged, the first of them by name.
type headless struct {
	count int64
	name  string
	from  place
}

// endsKata ends a call of Kata's. The log that has its begin may be missing:
// the shim says so before it knows where to log to, and only containerd takes
// that down.
func (s *sandbox) endsKata(b *Builder, name, container string, at int64) {
	if !s.end(b, name, container, at) && s.head.at != 0 && s.head.at < at && !s.isCalled() {
		if s.beginless.count++; s.beginless.count == 1 {
			s.beginless.name, s.beginless.from = name, s.head.place
		}
		s.span(b, &call{name: name, kind: record.KindCall, container: container, at: s.head.at, place: s.head.place}, at)
	}
	s.head = head{}
}

// knows reports whether a call of a name is known, for a container.
func (s *sandbox) knows(name, container string) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.name == name && c.container == container }) ||
		slices.ContainsFunc(s.spans, func(x record.Span) bool { return x.Name == name && x.Container == container })
}

// unended are the calls of the runtime within a start of which no end was logged, or
// neither end nor begin: what they took is not known.
func (s *sandbox) unended(until int64) (out []*call) {
	out = append(out, s.unseen...)
	for _, c := range s.calls {
		if c.kind == record.KindCall && c.at < until {
			out = append(out, c)
		}
	}
	return out
}

// isCalled reports whether a call of the runtime is under way.
func (s *sandbox) isCalled() bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.kind == record.KindCall })
}

// end ends the last call of a name, for a container, and makes it a span; false
// where none of that name has begun.
func (s *sandbox) end(b *Builder, name, container string, at int64) bool {
	for _, c := range slices.Backward(s.calls) {
		if c.name == name && c.container == container {
			s.endCall(b, c, at)
			return true
		}
	}
	return false
}

// endCall ends a call, and makes it a span.
func (s *sandbox) endCall(b *Builder, c *call, at int64) {
	s.calls = slices.DeleteFunc(s.calls, func(x *call) bool { return x == c })
	s.busy = max(s.busy, at)
	s.span(b, c, at)
}

func (s *sandbox) span(b *Builder, c *call, at int64) {
	if at < c.at || len(s.spans) == maxSpans {
		return
	}
	if c.wrong && len(s.doubts) < maxCalls {
		s.doubts = append(s.doubts, doubt{c.name, c.container, s.error})
	}
	s.spans = append(s.spans, record.Span{Name: c.name, Kind: c.kind, Container: c.container, Began: c.at, Ended: at, Source: b.source(c.place)})
}
