package logs

// text is a piece of a line. Its bytes are as they stand there; escaped says that
// they have to be unescaped first. No bytes (nil) are no text; an empty one is.
type text struct {
	b       []byte
	escaped bool
}

// fields are what is looked for in a record, whatever its form. Where a key is
// there twice the first counts.
type fields struct {
	time, ts            text // ts is what Rust's slog calls it
	level, msg          text
	name, source        text
	subsystem, module   text
	sandbox             text
	container           text
	id, err, pid        text
	console, command    text
	arrived, sent, kept text   // the journal's: __REALTIME_TIMESTAMP, _SOURCE_…, and _PID
	ident, file         text   // the journal's: SYSLOG_IDENTIFIER, CODE_FILE
	tail                []byte // the key of a value without quotes that ends the line
	sandboxRank         uint8
	bytes               bool // msg is a list of numbers
	journal             bool
	cut                 bool
}

func (t *text) set(b []byte, escaped bool) {
	if t.b == nil {
		t.b, t.escaped = b, escaped
	}
}

// put keeps the value of a key that is looked for. Of a value that is cut only a
// text counts: half an id would be another's.
func (f *fields) put(key, value []byte, escaped bool) {
	if f.cut && string(key) != "msg" && string(key) != "error" && string(key) != "vmconsole" {
		return
	}
	switch string(key) {
	case "time":
		f.time.set(value, escaped)
	case "ts":
		f.ts.set(value, escaped)
	case "level":
		f.level.set(value, escaped)
	case "msg":
		f.msg.set(value, escaped)
	case "name":
		f.name.set(value, escaped)
	case "source":
		f.source.set(value, escaped)
	case "subsystem":
		f.subsystem.set(value, escaped)
	case "module":
		f.module.set(value, escaped)
	case "sandbox":
		f.box(value, escaped, 3)
	case "podsandboxid":
		f.box(value, escaped, 2)
	case "sandboxID", "sandbox_id", "sandbox-id":
		f.box(value, escaped, 1)
	case "container", "containerID", "container_id", "container-id":
		f.container.set(value, escaped)
	case "id":
		f.id.set(value, escaped)
	case "error":
		f.err.set(value, escaped)
	case "pid":
		f.pid.set(value, escaped)
	case "command":
		f.command.set(value, escaped)
	case "vmconsole":
		f.console.set(value, escaped)
	}
}

// dropTail forgets the value that ends a line of Kata's without a source: its keys
// are in order and source comes behind these, so that the line was cut in the
// middle of the value or behind it.
func (f *fields) dropTail() {
	if f.source.b != nil {
		return
	}
	switch string(f.tail) {
	case "name":
		f.name = text{}
	case "pid":
		f.pid = text{}
	case "container":
		f.container = text{}
	case "sandbox":
		f.sandbox = text{}
	default:
		return
	}
	f.cut = true
}

// box keeps the sandbox of the key that says it best.
func (f *fields) box(value []byte, escaped bool, rank uint8) {
	if rank > f.sandboxRank {
		f.sandbox, f.sandboxRank = text{value, escaped}, rank
	}
}

// lacks says whether a field of the journal's is one that is looked for and not
// there yet, before its value is copied: where it is sent more than once the first
// counts.
func (f *fields) lacks(key []byte) bool {
	at := f.journalField(key)
	return at != nil && at.b == nil
}

// putJournal is put for the journal's own fields, and for those that runtime-rs
// sends there (slog-journald writes its keys in capitals). It says whether the key
// is one of them.
func (f *fields) putJournal(key, value []byte, escaped bool) bool {
	if f.cut && string(key) != "MESSAGE" {
		return true
	}
	at := f.journalField(key)
	if at == nil {
		return false
	}
	f.journal = true
	if at == &f.sandbox {
		f.box(value, escaped, 3)
	} else {
		at.set(value, escaped)
	}
	return true
}

// journalField is where a field of the journal's belongs, nil where it is none that
// is looked for.
func (f *fields) journalField(key []byte) *text {
	switch string(key) {
	case "MESSAGE":
		return &f.msg
	case "PRIORITY":
		return &f.level
	case "__REALTIME_TIMESTAMP":
		return &f.arrived
	case "_SOURCE_REALTIME_TIMESTAMP":
		return &f.sent
	case "_PID":
		return &f.kept
	case "SYSLOG_IDENTIFIER":
		return &f.ident
	case "CODE_FILE":
		return &f.file
	case "NAME":
		return &f.name
	case "SOURCE":
		return &f.source
	case "SUBSYSTEM":
		return &f.subsystem
	case "SANDBOX", "SANDBOX_ID":
		return &f.sandbox
	case "CONTAINER", "CONTAINER_ID":
		return &f.container
	case "ERROR":
		return &f.err
	case "PID":
		return &f.pid
	}
	return nil
}
