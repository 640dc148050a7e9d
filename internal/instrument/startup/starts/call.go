package starts

import (
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// call is a call with a known beginning.
type call struct {
	name, kind, container string
	point                 point // milestone reached when the call begins
	at                    int64
	text                  string
	place                 place
	form                  logs.Form
	wrong                 bool     // an error was logged since the beginning
	pod, label, stage     string   // pod name, container name in the pod, and stage as logged
	key                   string   // see [fact]
	s                     *sandbox // nil: not known yet
	over                  bool
	lines                 int64 // lines of the call before its start was known
	older                 int   // pending calls with the same key when it began
	oldest                bool  // see [fact]
	end                   *call // time, text and place of the end of a create call, if its start was still unknown
	first                 *call // earlier pending call that this one repeats or runs in parallel with
}

// oldestOf returns the oldest of the pending calls with the same key, which is assumed to
// end first.
func (c *call) oldestOf() *call {
	for c != nil && c.first != nil && !c.first.over {
		c = c.first
		if c.s != nil && c.s.extra != execSync {
			c.s.guessed = true
		}
	}
	return c
}

// line returns the line that began the call.
func (c *call) line() logs.Event {
	return logs.Event{Form: c.form, Time: c.at, Message: []byte(c.text), File: c.place.file, Line: c.place.line}
}

// doubt is a call during which an error was logged. The end of a call is logged after
// success and after failure, so only later lines show whether it succeeded.
type doubt struct{ call, container, text string }

// holds reports whether later lines show that the call succeeded.
func (s *sandbox) holds(d doubt) bool {
	for _, m := range s.points {
		switch {
		case m.container != d.container:
		case m.point == startReturned, d.call == kataCreate && (m.point == begun || m.point == started), m.point == started && (m.corrected || m.weak):
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
// call without a logged beginning is assumed to begin at this line.
type head struct {
	at    int64
	place place
}

// endsKata ends a Kata call, whose beginning may be missing from the log. The shim logs
// the beginning before it knows where to log, and then only containerd's log has it.
func (s *sandbox) endsKata(b *Builder, name, container string, at int64) {
	if !s.end(b, name, container, at) && s.head.at != 0 && s.head.at < at && !s.isCalled() {
		if s.beginless.Count++; s.beginless.Count == 1 {
			s.beginless.Detail = "of " + name + ", assumed to begin at " + b.source(s.head.place)
		}
		s.span(b, &call{name: name, kind: record.KindCall, container: container, at: s.head.at, place: s.head.place}, at)
	}
	s.head = head{}
}

// knows reports whether the start has a call with this name and container.
func (s *sandbox) knows(name, container string) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.name == name && c.container == container }) ||
		slices.ContainsFunc(s.spans, func(x record.Span) bool { return x.Name == name && x.Container == container })
}

// unended returns the runtime calls of a start without a logged end. Their durations
// are unknown.
func (s *sandbox) unended(until int64) (out []*call) {
	out = append(out, s.unseen...)
	for _, c := range s.calls {
		if c.kind == record.KindCall && c.at < until {
			out = append(out, c)
		}
	}
	return out
}

// isCalled reports whether a runtime call is in progress.
func (s *sandbox) isCalled() bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.kind == record.KindCall })
}

// end ends the last call with this name and container, and adds its span. It reports
// whether there was one.
func (s *sandbox) end(b *Builder, name, container string, at int64) bool {
	for _, c := range slices.Backward(s.calls) {
		if c.name == name && c.container == container {
			s.endCall(b, c, at)
			return true
		}
	}
	return false
}

// endCall ends a call and adds its span to the start.
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
