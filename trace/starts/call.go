package starts

import "github.com/tare-bench/tare/record"

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
}

// holds says whether what followed shows that a call did what it was to do.
func (s *sandbox) holds(d doubt) bool {
	for _, m := range s.points {
		switch {
		case m.container != d.container:
		case m.point == startReturned, d.call == "kata create" && (m.point == begun || m.point == started), m.point == started && (m.told || m.weak):
			return true
		}
	}
	return d.call != "kata create" && d.call != "kata start"
}

// begin begins a call.
func (s *sandbox) begin(c call) {
	if len(s.calls) < maxCalls {
		s.calls = append(s.calls, c)
	}
}

// end ends the last call of a name, for a container, and makes it a span.
func (s *sandbox) end(b *Builder, name, container string, at int64, as string) {
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := s.calls[i]
		if c.name != name || c.container != container {
			continue
		}
		s.calls = append(s.calls[:i], s.calls[i+1:]...)
		if as != "" {
			c.container = as
		}
		s.span(b, c, at)
		return
	}
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
