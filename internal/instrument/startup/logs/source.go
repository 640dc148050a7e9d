package logs

import (
	"bytes"
	"fmt"
)

// source is one file on its way through the reader: its lines, the events of the
// line that is next, and what earlier lines told about the later ones.
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
	arena  []byte // what was unescaped of this line
	number int64  // of the line
	// numbers are those that lines have which were put in order
	numbers   []int64
	key       int64  // the time that this line has in the stream
	last      int64  // that of the line before
	engine    Form   // whose logfmt it is where the line itself does not say
	glog      int    // how many lines may go on the message of runsc's last line
	entry     fields // of a journal's export: what was read of the entry so far
	began     int64  // the number of its first line
	inside    bool   // an entry
	pretty    bool   // that is an object over several lines
	depth     int    // of JSON in JSON
	described []byte // the pod that `kubectl describe` named

	fieldCount int    // of the entry
	held       []byte // a line that ended an entry, and is the next; nil: none
	heldLong   bool
}

// maxContinued is how many lines runsc's messages have at most: it writes down the
// container's whole config, a line for each of its values.
const maxContinued = 10_000

// carrier is what is known of a record from around it.
type carrier struct {
	ident   []byte
	pid     int
	time    int64 // when the carrier was written, on the host's clock; 0 not known
	sandbox []byte
	guest   bool // it is a guest's record, inside the carrier's
}

// advance reads up to the next line that has events; false at the end.
func (s *source) advance() bool {
	s.events = s.events[:0]
	for {
		b, long := s.held, s.heldLong
		if b != nil {
			s.held = nil
		} else {
			var ok bool
			if b, long, ok = s.next(); !ok {
				return s.inside && s.finish()
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

// count says where a line went.
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

// deliver closes the line whose events there are.
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

// line makes the events of a line; false where it is of no known form.
func (s *source) line(b []byte, long bool) bool {
	if s.inside || isEntry(b) || s.journal && isField(b) || len(b) == 1 && b[0] == '{' && s.glog == 0 || verboseTime(b) != nil {
		return s.export(b)
	}
	if b = s.plainly(b); len(b) > 0 && (b[0] <= ' ' || b[0] == '[' || b[0] == ',') {
		rest := bytes.TrimLeft(b, " \t\x1e[,") // the third is journalctl -o json-seq's, the last are an array's
		if b[0] <= ' ' || len(rest) > 1 && rest[0] == '{' && rest[1] == '"' {
			b = rest
		}
	}
	if len(b) < 2 {
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

// anywhere looks for a record behind whatever precedes it: a syslog's prefix, or
// somebody's prose.
func (s *source) anywhere(b []byte, long bool) {
	i := findRecord(b)
	switch {
	case i < 0 && isStamped(b):
		s.syslog(b, long)
	case i < 0 && suppressed(b) > 0: // journalctl -o cat
		s.plain(b, &carrier{time: s.last}, nil, long)
	case i < 0:
	case i > 0 && isStamped(b):
		c := carrier{}
		c.ident, c.pid = identAtEnd(b[:i])
		s.records(b[i:], c, long)
	case i > 0 && isPair(b):
		s.records(b, carrier{}, long)
	default:
		s.records(b[i:], carrier{}, long)
	}
}

// isPair says whether a line begins with a key and its value: the time need not be
// the first.
func isPair(b []byte) bool {
	i := bytes.IndexAny(b[:min(len(b), 64)], "= \"")
	return i > 0 && b[i] == '='
}
