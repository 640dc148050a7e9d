package logs

import (
	"bytes"
	"math"
	"strings"
)

// records adds the events of the logfmt records in b.
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

// objects adds the events of the JSON objects in b.
func (s *source) objects(b []byte, c carrier, long bool) {
	entries := math.MaxInt // journal entries begin at least this far from the end
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

// record adds the events of a record and of the records nested in it. A record needs a
// time, and a level or a message.
func (s *source) record(f *fields, c *carrier) {
	ns, isWhole := f.time()
	if f.has(keyLog) && !f.has(keyMessage) {
		if !f.has(keyLevel) {
			s.wrapped(f.upTo(keyLog, maxLine), ns, f.cut)
			return
		}
		f.at[keyMessage] = f.at[keyLog]
	}
	if ns == 0 || !f.has(keyLevel, keyMessage) {
		return
	}
	if isWhole {
		s.stats.Whole++
	}
	form := s.form(f, c)
	if message := f.at[keyMessage].b; form != KataProxy && !c.guest && s.depth == 0 && findRecord(message) == 0 {
		s.depth++
		s.records(message, *c, f.cut) // an envelope has a level as well
		s.depth--
		return
	}
	if form == Kata || form == KataProxy {
		f.dropTail()
	}
	if !c.guest {
		s.own.anchor = ns
	}
	carried := keyConsole
	if c.guest || !f.has(keyConsole) {
		e := s.event(form)
		e.Time, e.Cut = ns, f.cut
		s.describe(e, f, c)
		carried = keyMessage
	}
	if carried == keyConsole || form == KataProxy && carries(f.at[keyMessage].b) {
		s.guestText(f.upTo(carried, maxLine), carrier{time: ns, sandbox: f.text(keySandbox), guest: true}, f.cut)
	}
}

// time returns the time of a record, or 0, and reports whether it is in whole seconds.
func (f *fields) time() (ns int64, isWhole bool) {
	stamp := f.at[keyTime].b
	if stamp == nil {
		stamp = f.at[keyTS].b
	}
	ns, _, _ = parseStamp(stamp)
	return ns, len(stamp) > 19 && stamp[19] != '.' && stamp[19] != ','
}

// wrapped adds the events of a line nested in another object, as in docker's logs of
// containers.
func (s *source) wrapped(line []byte, ns int64, cut bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '{' && bytes.Contains(line[:min(len(line), 16)], []byte(`"log"`)) {
		return // nested twice
	}
	s.last = max(s.last, ns)
	s.line(line, cut)
}

// carries reports whether a message of kata-proxy is a record of the agent: logfmt, or
// JSON from the Rust agent.
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
	case Runsc: // its JSON has the source position before the text, like its glog lines
		if at, text, ok := bytes.Cut(e.Message, []byte("] ")); ok && bytes.Contains(at, []byte(".go:")) && bytes.IndexByte(at, ' ') < 0 {
			e.Source, e.Message = at, text
		}
	case KataRS:
		// The shim logs the sandbox id as source; other programs log their name.
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

// form returns the writer of a record. It uses the record, then the program name in
// the syslog, then the file.
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
	if form := programOf(c.ident); form != Unknown {
		return form
	}
	switch message := f.at[keyMessage].b; {
	case s.engine == Containerd && (bytes.HasPrefix(message, []byte("Calling ")) || bytes.HasPrefix(message, []byte("container mounted via layerStore")) || string(f.at[keyModule].b) == "api"):
		s.engine = Docker
	case s.engine == Kubelet || s.engine == Isulad: // these write no logfmt
		return Containerd
	}
	return s.engine
}

// programOf returns the form of a program's lines.
func programOf(ident []byte) Form {
	form := programs[string(ident)]
	if form == Unknown && (bytes.Contains(ident, []byte("kubelet")) || bytes.Contains(ident, []byte("kubelite"))) {
		return Kubelet
	}
	return form
}

// programs maps the program names in a syslog or the journal to forms.
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

// level normalizes the name of a level.
func level(b []byte) []byte {
	if name, ok := levels[string(b)]; ok {
		return name
	}
	return b[:min(len(b), 32)]
}

// levels maps level names of logrus, slog, Rust's slog and glog, and syslog's numbers,
// to normalized names.
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
