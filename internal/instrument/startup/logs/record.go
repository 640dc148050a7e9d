package logs

import (
	"bytes"
	"math"
	"strings"
)

// records makes the events of the logfmt records that b holds one after the other.
func (s *source) records(b []byte, c carrier, long bool) {
	endless := false
	for b != nil {
		f := fields{arena: &s.arena, endless: endless}
		b = f.logfmt(b)
		endless = f.endless
		f.cut = f.cut || long && b == nil
		s.record(&f, &c)
	}
}

// objects is records for JSON.
func (s *source) objects(b []byte, c carrier, long bool) {
	entries := math.MaxInt // from where to its end the line has one
	if bytes.Contains(b, entryKey) {
		entries = len(b) - bytes.LastIndex(b, entryKey)
	}
	for b != nil {
		f := fields{arena: &s.arena, journal: len(b) >= entries}
		rest, ok := f.object(b)
		if !ok {
			return
		}
		one := b[:len(b)-len(rest)]
		b = rest
		f.cut = f.cut || long && b == nil
		if f.journal {
			s.journalEntry(&f)
			continue
		}
		if before := len(s.events); !s.klogJSON(&f, one) {
			if s.record(&f, &c); len(s.events) == before {
				s.envelope(one)
			}
		}
	}
}

// record makes the event of a record, and those of the records inside it. One
// without a time, or with neither a level nor a message, is none.
func (s *source) record(f *fields, c *carrier) {
	stamp := f.at[keyTime].b
	if stamp == nil {
		stamp = f.at[keyTS].b
	}
	ns, _, ok := parseStamp(stamp)
	if f.has(keyLog) && !f.has(keyMessage) {
		if !f.has(keyLevel) {
			s.wrapped(f.upTo(keyLog, maxLine), ns, f.cut)
			return
		}
		f.at[keyMessage] = f.at[keyLog]
	}
	if !ok || ns == 0 || !f.has(keyLevel, keyMessage) {
		return
	}
	if len(stamp) >= len("2006-01-02T15:04:05") && len(stamp) > 19 && stamp[19] != '.' && stamp[19] != ',' {
		s.stats.Whole++
	}
	form := s.form(f, c)
	if message := f.at[keyMessage].b; form != KataProxy && !c.guest && s.depth == 0 && findRecord(message) == 0 {
		s.depth++
		s.records(message, *c, f.cut) // an envelope has a level, too
		s.depth--
		return
	}
	if form == Kata || form == KataProxy {
		f.dropTail()
	}
	if !c.guest {
		s.own.anchor = ns
	}
	if f.has(keyConsole) && !c.guest {
		inner := carrier{time: ns, sandbox: f.text(keySandbox), guest: true}
		s.guestText(f.upTo(keyConsole, maxLine), inner, f.cut)
		return
	}
	e := s.event(form)
	e.Time, e.Cut = ns, f.cut
	s.describe(e, f, c)
	if form == KataProxy && !c.guest && carries(f.at[keyMessage].b) {
		inner := carrier{time: ns, sandbox: e.Sandbox, guest: true}
		s.guestText(f.upTo(keyMessage, maxLine), inner, f.cut)
	}
}

// wrapped makes the events of a line that stands in another's object, as docker keeps
// what containers write.
func (s *source) wrapped(line []byte, ns int64, cut bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '{' && bytes.Contains(line[:min(len(line), 16)], []byte(`"log"`)) {
		return // one of one of one
	}
	s.last = max(s.last, ns)
	s.line(line, cut)
}

// carries says whether a proxy's message is the agent's record: logfmt, or the JSON
// of the agent in Rust.
func carries(message []byte) bool {
	return bytes.Contains(message, timeKey) || bytes.HasPrefix(message, []byte(`{"`))
}

// event appends an empty event.
func (s *source) event(form Form) *Event {
	line := s.number
	if n := int(line) - 1; n >= 0 && n < len(s.numbers) {
		line = s.numbers[n]
	}
	s.events = append(s.events, Event{Form: form, File: s.file, Line: line})
	return &s.events[len(s.events)-1]
}

// describe sets the texts of an event.
func (s *source) describe(e *Event, f *fields, c *carrier) {
	e.Level, e.Message = level(f.at[keyLevel].b), f.text(keyMessage)
	e.Program = f.text(keyName)
	if !f.has(keyName) {
		e.Program = c.ident
	}
	e.Source, e.Subsystem = f.text(keySource), f.text(keySubsystem)
	e.Sandbox, e.Container = f.text(keySandbox), f.text(keyContainer)
	e.Error, e.Command = f.text(keyError), f.text(keyCommand)
	if e.Pid = pidOf(f.at[keyPid].b); e.Pid == 0 {
		e.Pid = c.pid
	}
	switch e.Form {
	case CRIO:
		e.Request = f.text(keyID)
	case Containerd, Docker:
		e.Path = f.text(keyPath)
		if f.has(keyID) && len(e.Container) == 0 && !bytes.HasPrefix(f.at[keyID].b, pluginID) {
			e.Container = f.text(keyID)
		}
	case Runsc: // its JSON has where in the source before the text, as its glog lines
		if at, text, ok := bytes.Cut(e.Message, []byte("] ")); ok && bytes.Contains(at, []byte(".go:")) && bytes.IndexByte(at, ' ') < 0 {
			e.Source, e.Message = at, text
		}
	case KataRS:
		// The shim's logger has the sandbox's id as its source, other programs
		// their name.
		if !f.has(keySandbox) && string(e.Source) != "runtime-rs" && !bytes.HasPrefix(e.Source, kataName) {
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

// form says who wrote a record: what it says itself counts most, then who sent it
// to the syslog, then whose file it is.
func (s *source) form(f *fields, c *carrier) Form {
	name, from := f.at[keyName].b, f.at[keySource].b
	switch {
	case c.guest || string(name) == "kata-agent":
		return KataAgent
	case string(name) == "kata-proxy":
		return KataProxy
	case f.has(keyTS):
		return KataRS
	case bytes.HasPrefix(name, kataName), string(name) == "containerd-shim-v2",
		bytes.HasPrefix(from, virtcontainers), string(from) == "katautils",
		string(from) == "containerd-kata-shim-v2", string(from) == "agent-client":
		return Kata
	case bytes.HasPrefix(name, criName):
		return CRIO
	case string(f.at[keyModule].b) == "libcontainerd":
		return Docker
	}
	if form, ok := programOf(c.ident); ok {
		return form
	}
	switch message := f.at[keyMessage].b; {
	case s.engine == Containerd && (bytes.HasPrefix(message, []byte("Calling ")) || bytes.HasPrefix(message, []byte("container mounted via layerStore")) || string(f.at[keyModule].b) == "api"):
		s.engine = Docker
	case s.engine == Kubelet || s.engine == Isulad: // which write no logfmt
		return Containerd
	}
	return s.engine
}

// programOf is the form of what a program writes.
func programOf(ident []byte) (Form, bool) {
	form, ok := programs[string(ident)]
	if !ok && (bytes.Contains(ident, []byte("kubelet")) || bytes.Contains(ident, []byte("kubelite"))) {
		return Kubelet, true
	}
	return form, ok
}

// programs are those that a syslog or the journal names.
var programs = map[string]Form{
	"kata": Kata, "kata-runtime": Kata, "kata-shim": Kata, "containerd-shim-kata-v2": Kata, "kata-proxy": KataProxy,
	"containerd": Containerd, "crio": CRIO, "dockerd": Docker, "docker": Docker, "podman": Podman, "crun": Crun, "isulad": Isulad,
	"kubelet": Kubelet, "kubenswrapper": Kubelet, "hyperkube": Kubelet, "kubelite": Kubelet, "k3s": Kubelet, "k3s-agent": Kubelet, "rke2": Kubelet, "k0s": Kubelet,
}

var (
	kataName       = []byte("kata-")
	virtcontainers = []byte("virtcontainers")
	criName        = []byte("/runtime.v1")
)

// level returns one name for each level, whoever writes it.
func level(b []byte) []byte {
	if name, ok := levels[string(b)]; ok {
		return name
	}
	return b[:min(len(b), 32)]
}

// levels are those of logrus, slog, Rust's slog, glog, and syslog's by number.
var levels = map[string][]byte{}

func init() {
	for name, like := range map[string]string{
		"trace": "TRCE TRAC TRACE", "debug": "DEBG DEBU DEBUG D 7", "info": "INFO I 5 6", "warning": "warn WARN WARNING W 4", "error": "ERRO ERROR ERR err Err E 3",
		"fatal": "panic PANI PANIC FATA FATAL Fatal crit critical Crit CRIT F 0 1 2",
	} {
		for _, l := range append(strings.Fields(like), name) {
			levels[l] = []byte(name)
		}
	}
}
