package logs

import "bytes"

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
func (s *source) record(f *fields, c *carrier) {
	stamp := f.time.b
	if stamp == nil {
		stamp = f.ts.b
	}
	ns, zone, ok := parseStamp(stamp)
	if !ok || ns == 0 || f.level.b == nil && f.msg.b == nil {
		return
	}
	form := s.form(f, c)
	if form == Kata || form == KataProxy {
		f.dropTail()
	}
	if !c.guest {
		s.learn(ns, zone)
	}
	if f.console.b != nil && !c.guest {
		inner := carrier{time: ns, sandbox: s.text(f.sandbox, MaxMessage), guest: true}
		s.guestText(s.text(f.console, MaxLine), inner, f.cut)
		return
	}
	e := s.event(form)
	e.Time, e.Cut = ns, f.cut
	s.describe(e, f, c)
	if form == KataProxy && !c.guest && carries(f.msg.b) {
		inner := carrier{time: ns, sandbox: e.Sandbox, guest: true}
		s.guestText(s.text(f.msg, MaxLine), inner, f.cut)
	}
}

// carries says whether a proxy's message is the agent's record: logfmt, or the JSON
// of the agent in Rust.
func carries(message []byte) bool {
	return bytes.Contains(message, timeKey) || bytes.HasPrefix(message, []byte("{\\\""))
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
	e.Command = s.text(f.command, MaxMessage)
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
		// The shim's logger has the sandbox's id as its source, other programs
		// their name.
		if f.sandbox.b == nil && string(e.Source) != "runtime-rs" && !bytes.HasPrefix(e.Source, kataName) {
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
		string(from) == "containerd-kata-shim-v2", string(from) == "agent-client":
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
