package starts

import (
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// call is a call that has begun.
type call struct {
	name, kind, container string
	point                 point // milestone reached when the call begins
	at                    int64
	text                  string
	place                 place
	form                  logs.Form
	wrong                 bool     // an error was logged since it began
	pod, label, stage     string   // pod name, container name in the pod, and logged stage
	key                   string   // see [fact]
	s                     *sandbox // nil: unknown
	over                  bool
	lines                 int64 // lines of the call before its start was known
	older                 int   // number of pending calls with the same key when it began
	oldest                bool  // see [fact]
	end                   *call // end of a create call (time, line and place) if its start was unknown by then
	first                 *call // the call that this one retries or runs in parallel with
}

// line returns the line with which the call began.
func (c *call) line() logs.Event {
	return logs.Event{Form: c.form, Time: c.at, Message: []byte(c.text), File: c.place.file, Line: c.place.line}
}

// doubt is a call with an error logged after its begin. The end is logged after
// success and after failure, so only later lines show the outcome.
type doubt struct{ call, container, text string }

// holds reports whether later lines show that the call succeeded.
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

func (s *sandbox) begin(c *call) {
	if len(s.calls) < maxCalls {
		s.calls = append(s.calls, c)
	}
}

// head is the first runtime line since the start began or since its last call ended. A
// call without a logged begin had begun by then.
type head struct {
	at    int64
	place place
}

// headless counts the calls without a logged begin, with the name and place of the
// first.
type headless struct {
	count int64
	name  string
	from  place
}

// endsKata ends a Kata call. The begin may be missing: the shim logs it before it
// knows its log destination, and then only containerd records it.
func (s *sandbox) endsKata(b *Builder, name, container string, at int64) {
	if !s.end(b, name, container, at) && s.head.at != 0 && s.head.at < at && !s.isCalled() {
		if s.beginless.count++; s.beginless.count == 1 {
			s.beginless.name, s.beginless.from = name, s.head.place
		}
		s.span(b, &call{name: name, kind: record.KindCall, container: container, at: s.head.at, place: s.head.place}, at)
	}
	s.head = head{}
}

// knows reports whether a call with this name and container is known.
func (s *sandbox) knows(name, container string) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.name == name && c.container == container }) ||
		slices.ContainsFunc(s.spans, func(x record.Span) bool { return x.Name == name && x.Container == container })
}

// unended returns the runtime calls of a start without a logged end. Their duration is
// unknown.
func (s *sandbox) unended(until int64) (out []*call) {
	out = append(out, s.unseen...)
	for _, c := range s.calls {
		if c.kind == record.KindCall && c.at < until {
			out = append(out, c)
		}
	}
	return out
}

// isCalled reports whether a runtime call is under way.
func (s *sandbox) isCalled() bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.kind == record.KindCall })
}

// end ends the last call with this name and container and adds its span. It returns
// false if there is none.
func (s *sandbox) end(b *Builder, name, container string, at int64) bool {
	for _, c := range slices.Backward(s.calls) {
		if c.name == name && c.container == container {
			s.endCall(b, c, at)
			return true
		}
	}
	return false
}

// endCall ends a call and adds its span.
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
