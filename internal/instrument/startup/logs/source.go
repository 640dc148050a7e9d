package logs

import (
	"bytes"
	"fmt"
)

// source is a file being read: its lines, the events of the current line, and the
// state from earlier lines.
type source struct {
	lines
	file    int
	name    string
	journal bool
	stats   *Stats
	counts  *[forms]int64
	own     calendar
	date    int64 // of the file

	events []Event
	arena  []byte // unescaped text of the current line
	number int64  // of the line
	// numbers has the original line numbers if the lines were sorted.
	numbers   []int64
	key       int64  // time of this line in the stream
	last      int64  // time of the previous line
	engine    Form   // writer of logfmt lines without a program name
	glog      int    // number of lines that may still continue the last runsc message
	entry     fields // fields of the current journal export entry
	began     int64  // line number of the entry's first line
	inside    bool   // inside an entry
	pretty    bool   // the entry is a JSON object over several lines
	depth     int    // nesting level of JSON
	described []byte // pod named by `kubectl describe`

	fieldCount int    // number of fields in the entry
	held       []byte // line after the end of an entry, still to be read; nil: none
	heldLong   bool
}

// maxContinued is the maximum number of lines in a runsc message. runsc logs a
// container's config with one value per line.
const maxContinued = 10_000

// carrier has the context of a nested record.
type carrier struct {
	ident   []byte
	pid     int
	time    int64 // when the host logged the carrier; 0: unknown
	sandbox []byte
	guest   bool // the nested record is from a guest
}

// advance reads up to the next line with events. It returns false at the end of the
// source.
func (s *source) advance() bool {
	s.events = s.events[:0]
	for {
		b, long := s.held, s.heldLong
		if b != nil {
			s.held = nil
		} else {
			var ok bool
			if b, long, ok = s.next(); !ok {
				if s.inside {
					s.endEntry()
				}
				return len(s.events) > 0 && s.deliver()
			}
			s.number++
			b = bytes.TrimPrefix(b, bom)
			if s.inside && !s.goesOn(b) {
				s.endEntry()
				if len(s.events) > 0 {
					s.held, s.heldLong = b, long
					return s.deliver()
				}
			}
		}
		s.stats.Lines++
		if !s.inside {
			s.arena = s.arena[:0]
		}
		s.count(b, s.line(b, long), long)
		if len(s.events) > 0 {
			return s.deliver()
		}
	}
}

// count updates the counters for a line.
func (s *source) count(b []byte, known, long bool) {
	if long {
		s.stats.Long++
	}
	if len(b) > s.stats.Width {
		s.stats.Width, s.stats.AtWidth = len(b), 0
	}
	if len(b) == s.stats.Width {
		s.stats.AtWidth++
	}
	switch {
	case known:
		s.stats.Read++
	case len(bytes.TrimSpace(b)) == 0:
		s.stats.Empty++
	case s.glog > 0:
		s.glog--
		s.stats.Read++
	default:
		s.stats.Unreadable++
		if s.stats.First == "" {
			s.stats.First = fmt.Sprintf("%s:%d", s.name, s.number)
		}
	}
}

// deliver completes the events of a line and updates the counters.
func (s *source) deliver() bool {
	first := &s.events[0]
	s.key = first.Time
	if first.Arrived != 0 {
		s.key = first.Arrived
	}
	if s.key == 0 {
		s.key = s.last
	}
	if s.key < s.last {
		s.stats.Backward++
	}
	s.last = s.key
	cut := false
	for i := range s.events {
		e := &s.events[i]
		s.counts[e.Form]++
		cut = cut || e.Cut
	}
	if cut {
		s.stats.Cut++
	}
	s.stats.Events += int64(len(s.events))
	return true
}

// line adds the events of a line. It returns false if the form is unknown.
func (s *source) line(b []byte, long bool) bool {
	if s.inside || s.entryBegins(b) {
		return s.export(b)
	}
	if b = s.plainly(b); len(b) < 2 {
		return false
	}
	before := len(s.events)
	switch {
	case b[0] == '{':
		s.objects(b, carrier{}, long)
	case isGlog(b):
		s.glogLine(b, carrier{}, long)
	case isTiming(b):
		s.timing(b, long)
	case isTerminal(b):
		s.terminal(b, long)
	case b[0] == '"':
		s.envelope(b)
	default:
		if s.anywhere(b, long); len(s.events) == before && findRecord(b) < 0 && !s.isula(b, long) && !s.kube(b) && s.depth < 2 {
			if rest := behindPrefix(b); rest != nil {
				s.depth++
				s.line(rest, long)
				s.depth--
			}
		}
	}
	if len(s.events) == before {
		return false
	}
	s.glog = 0
	if s.events[before].Form == Runsc {
		s.glog = maxContinued
	}
	return true
}

// anywhere finds a record after any prefix, such as a syslog's.
func (s *source) anywhere(b []byte, long bool) {
	i := findRecord(b)
	switch {
	case i < 0 && isStamped(b):
		s.syslog(b, long)
	case i < 0 && suppressed(b) > 0: // journalctl -o cat
		s.plain(b, &carrier{time: s.last}, nil, long)
	case i >= 0:
		c := carrier{}
		if i > 0 && isStamped(b) {
			c.ident, c.pid = identAtEnd(b[:i])
		} else if i > 0 && isPair(b) {
			i = 0
		}
		s.records(b[i:], c, long)
	}
}

// isPair reports whether a line begins with a key and a value. Time need not be the
// first key.
func isPair(b []byte) bool {
	i := bytes.IndexAny(b[:min(len(b), 64)], "= \"")
	return i > 0 && b[i] == '='
}
