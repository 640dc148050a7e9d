package logs

import (
	"bytes"
	"time"
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
	shared  *calendar
	own     calendar

	events []Event
	arena  []byte // what was unescaped of this line
	number int64  // of the line
	key    int64  // the time that this line has in the stream
	last   int64  // that of the line before
	engine Form   // whose logfmt it is where the line itself does not say
	glog   bool   // the last line of a known form was runsc's: others go on its message
	entry  fields // of a journal's export: what was read of the entry so far
	began  int64  // the number of its first line
	inside bool   // an entry
}

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
		b, long, ok := s.next()
		if !ok {
			return s.inside && s.finish()
		}
		s.number++
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
	switch {
	case known:
		s.stats.Read++
	case len(bytes.TrimSpace(b)) == 0:
		s.stats.Empty++
	case s.glog:
		s.stats.Read++
	default:
		s.stats.Unreadable++
		if s.stats.First == 0 {
			s.stats.First, s.stats.FirstFile = s.number, s.file
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
	if s.inside || isEntry(b) || s.journal && isField(b) {
		return s.export(b)
	}
	b = bytes.TrimLeft(b, " \t")
	if len(b) < 2 {
		return false
	}
	before := len(s.events)
	switch {
	case b[0] == '{':
		s.objects(b, carrier{}, long)
	case isGlog(b):
		s.glogLine(b, carrier{}, long)
		return true
	case isTiming(b):
		s.timing(b, long)
	default:
		s.anywhere(b, long)
	}
	if len(s.events) == before {
		return false
	}
	s.glog = s.events[before].Form == Runsc
	return true
}

// anywhere looks for a record behind whatever precedes it: a syslog's prefix, or
// somebody's prose.
func (s *source) anywhere(b []byte, long bool) {
	if i := findRecord(b); i >= 0 {
		c := carrier{}
		if i > 0 && isStamped(b) {
			c.ident, c.pid = identAtEnd(b[:i])
		}
		s.records(b[i:], c, long)
		return
	}
	if bytes.HasPrefix(b, levelKey) {
		s.records(b, carrier{}, long)
		return
	}
	if isStamped(b) {
		s.syslog(b, long)
	}
}

var levelKey = []byte("level=")

// records makes the events of the logfmt records that b holds one after the other.
func (s *source) records(b []byte, c carrier, long bool) {
	for b != nil {
		var f fields
		b = f.logfmt(b)
		f.cut = f.cut || long && b == nil
		s.record(&f, &c)
	}
}

// objects is records for JSON.
func (s *source) objects(b []byte, c carrier, long bool) {
	for b != nil {
		var f fields
		rest, ok := f.object(b)
		if !ok {
			return
		}
		b = rest
		f.cut = f.cut || long && b == nil
		if f.journal {
			s.journalEntry(&f)
			continue
		}
		s.record(&f, &c)
	}
}

// record makes the event of a record, and those of the records inside it. One
// without a time, or with neither a level nor a message, is none.
func (s *source) record(f *fields, c *carrier) bool {
	stamp := f.time.b
	if stamp == nil {
		stamp = f.ts.b
	}
	ns, zone, ok := parseStamp(stamp)
	if !ok || f.level.b == nil && f.msg.b == nil {
		return false
	}
	form := s.form(f, c)
	if !c.guest {
		s.learn(ns, zone)
	}
	if f.console.b != nil && !c.guest {
		inner := carrier{time: ns, sandbox: s.text(f.sandbox, MaxMessage), guest: true}
		s.guestText(s.text(f.console, MaxLine), inner, f.cut)
		return true
	}
	e := s.event(form)
	e.Time, e.Cut = ns, f.cut
	s.describe(e, f, c)
	if form == KataProxy && !c.guest && bytes.Contains(f.msg.b, timeKey) {
		inner := carrier{time: ns, sandbox: e.Sandbox, guest: true}
		s.guestText(s.text(f.msg, MaxLine), inner, f.cut)
	}
	return true
}

// event appends an empty event.
func (s *source) event(form Form) *Event {
	s.events = append(s.events, Event{Form: form, File: s.file, Line: s.number})
	return &s.events[len(s.events)-1]
}

// describe sets the texts of an event.
func (s *source) describe(e *Event, f *fields, c *carrier) {
	e.Level = level(f.level.b)
	e.Message = s.text(f.msg, MaxMessage)
	e.Program = s.text(f.name, MaxMessage)
	if f.name.b == nil {
		e.Program = c.ident
	}
	e.Source = s.text(f.source, MaxMessage)
	e.Subsystem = s.text(f.subsystem, MaxMessage)
	e.Sandbox = s.text(f.sandbox, MaxMessage)
	e.Container = s.text(f.container, MaxMessage)
	e.Error = s.text(f.err, MaxMessage)
	e.Pid = c.pid
	if pid, ok := number(f.pid.b); ok && pid < 1<<31 {
		e.Pid = int(pid)
	}
	switch e.Form {
	case CRIO:
		e.Request = s.text(f.id, MaxMessage)
	case Containerd, Docker:
		if f.id.b != nil && len(e.Container) == 0 && !bytes.HasPrefix(f.id.b, pluginID) {
			e.Container = s.text(f.id, MaxMessage)
		}
	case KataRS:
		// The shim's logger has the sandbox's id as its source.
		if f.sandbox.b == nil && string(e.Program) == "kata-runtime" {
			e.Sandbox = e.Source
		}
	case KataAgent:
		e.Guest, e.Arrived = true, c.time
		if len(e.Sandbox) == 0 {
			e.Sandbox = c.sandbox
		}
	}
}

var pluginID = []byte("io.containerd.")

// text returns what a text stands for, cut to limit bytes.
func (s *source) text(t text, limit int) []byte {
	if !t.escaped {
		return t.b[:min(len(t.b), limit):min(len(t.b), limit)]
	}
	from := len(s.arena)
	s.arena = unescape(s.arena, t.b, limit)
	return s.arena[from:len(s.arena):len(s.arena)]
}

// form says who wrote a record: what it says itself counts most, then who sent it
// to the syslog, then whose file it is.
func (s *source) form(f *fields, c *carrier) Form {
	name, from := f.name.b, f.source.b
	switch {
	case c.guest || string(name) == "kata-agent":
		return KataAgent
	case string(name) == "kata-proxy":
		return KataProxy
	case f.ts.b != nil:
		return KataRS
	case bytes.HasPrefix(name, kataName), string(name) == "containerd-shim-v2",
		bytes.HasPrefix(from, virtcontainers), string(from) == "katautils",
		string(from) == "containerd-kata-shim-v2":
		return Kata
	case bytes.HasPrefix(name, criName):
		return CRIO
	case string(f.module.b) == "libcontainerd":
		return Docker
	}
	switch string(c.ident) {
	case "kata", "kata-runtime", "kata-shim", "containerd-shim-kata-v2":
		return Kata
	case "kata-proxy":
		return KataProxy
	case "containerd":
		return Containerd
	case "crio":
		return CRIO
	case "dockerd", "docker":
		return Docker
	}
	return s.engine
}

var (
	kataName       = []byte("kata-")
	virtcontainers = []byte("virtcontainers")
	criName        = []byte("/runtime.v1")
)

// level returns one name for each level, whoever writes it.
func level(b []byte) []byte {
	switch string(b) {
	case "info", "INFO", "I", "5", "6":
		return levels[2]
	case "debug", "DEBG", "DEBUG", "D", "7":
		return levels[1]
	case "warning", "warn", "WARN", "WARNING", "W", "4":
		return levels[3]
	case "error", "ERRO", "ERROR", "E", "3":
		return levels[4]
	case "trace", "TRCE", "TRACE":
		return levels[0]
	case "fatal", "panic", "CRIT", "F", "0", "1", "2":
		return levels[5]
	}
	return b[:min(len(b), 32)]
}

var levels = [...][]byte{
	[]byte("trace"), []byte("debug"), []byte("info"), []byte("warning"), []byte("error"), []byte("fatal"),
}

var now = time.Now
