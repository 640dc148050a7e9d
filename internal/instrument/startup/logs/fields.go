package logs

import "slices"

// text is an unescaped value of a line. nil means missing; a value may be empty.
type text struct {
	b    []byte
	rank uint8 // rank of its key; a higher rank replaces a lower one
}

// key identifies a field of a record. Formats have different names for the same key.
type key uint8

const (
	keyTime key = iota
	keyTS       // the time in Rust's slog
	keyLevel
	keyMessage
	keyName
	keySource
	keySubsystem
	keyModule
	keySandbox
	keyContainer
	keyID
	keyError
	keyPid
	keyConsole
	keyCommand
	keyPath
	keyLog     // the line that docker's json-file wraps, or the message of runsc's JSON for Kubernetes
	keyArrived // from here on keys of the journal only: receive time, send time, …
	keySent
	keyKept
	keyIdent
	keyFile
	keys
)

// names maps field names to keys. Lower-case names are from logfmt and JSON.
// Upper-case names are the journal's, or runtime-rs keys as renamed by slog-journald.
var names = []known{
	{"time", keyTime, 1}, {"ts", keyTS, 1}, {"level", keyLevel, 1}, {"msg", keyMessage, 1}, {"name", keyName, 1}, {"source", keySource, 1},
	{"subsystem", keySubsystem, 1}, {"module", keyModule, 1}, {"id", keyID, 1}, {"error", keyError, 1}, {"pid", keyPid, 1},
	{"command", keyCommand, 1}, {"args", keyCommand, 1}, {"vmconsole", keyConsole, 1}, {"topic", keySubsystem, 1}, {"request-url", keyCommand, 1}, {"log", keyLog, 1}, {"path", keyPath, 2}, {"key", keyPath, 1},
	{"sandbox", keySandbox, 3}, {"podsandboxid", keySandbox, 2}, {"sandboxID", keySandbox, 1}, {"sandbox_id", keySandbox, 1}, {"sandbox-id", keySandbox, 1},
	{"container", keyContainer, 1}, {"containerID", keyContainer, 1}, {"container_id", keyContainer, 1}, {"container-id", keyContainer, 1},

	{"MESSAGE", keyMessage, 1}, {"PRIORITY", keyLevel, 1}, {"__REALTIME_TIMESTAMP", keyArrived, 1}, {"_SOURCE_REALTIME_TIMESTAMP", keySent, 1},
	{"_PID", keyKept, 1}, {"SYSLOG_IDENTIFIER", keyIdent, 1}, {"CODE_FILE", keyFile, 1}, {"NAME", keyName, 1}, {"SOURCE", keySource, 1},
	{"SUBSYSTEM", keySubsystem, 1}, {"SANDBOX", keySandbox, 3}, {"SANDBOX_ID", keySandbox, 3}, {"CONTAINER", keyContainer, 1},
	{"CONTAINER_ID", keyContainer, 1}, {"ERROR", keyError, 1}, {"PID", keyPid, 1},
}

// known is a known name with its key.
type known struct {
	name string
	key  key
	rank uint8 // 0: the name is unknown
}

// knownOf returns the key of a name. It uses a table indexed by length and last
// letter. A map lookup for each of about ten names per line would dominate the read
// time.
func knownOf(name []byte) known {
	if len(name) > 0 {
		for _, k := range table[place(name)] {
			if k.name == string(name) {
				return k
			}
		}
	}
	return known{}
}

func place[T string | []byte](name T) byte { return name[len(name)-1] ^ byte(len(name)<<4) }

var table = func() (t [256][]known) {
	for _, k := range names {
		t[place(k.name)] = append(t[place(k.name)], k)
	}
	return t
}()

// isLower reports whether a name is from logfmt or JSON, not from the journal.
func isLower(name []byte) bool { return len(name) > 0 && name[0] >= 'a' }

// fields are the known fields of a record. The first of several values of a key
// counts.
type fields struct {
	at      [keys]text
	arena   *[]byte // buffer for unescaped values
	tail    []byte  // key of an unquoted value at the end of the line
	bytes   bool    // the message is a list of numbers
	journal bool    // a journal entry: upper-case keys belong to the journal, PID is not a container's
	cut     bool
	endless bool // no later quote on the line can end a value with unescaped quotes
}

// has reports whether one of the keys is present.
func (f *fields) has(any ...key) bool {
	return slices.ContainsFunc(any, func(k key) bool { return f.at[k].b != nil })
}

// put stores the value of a known key. From a truncated line it accepts only texts,
// since a truncated id could match another one.
func (f *fields) put(name, value []byte) {
	k := knownOf(name)
	if k.rank == 0 || !f.journal && !isLower(name) || f.cut && k.key != keyMessage && k.key != keyError && k.key != keyConsole {
		return
	}
	if t := &f.at[k.key]; k.rank > t.rank {
		*t = text{value, k.rank}
	}
}

// text returns the value of a key, truncated to maxMessage bytes.
func (f *fields) text(k key) []byte { return f.upTo(k, maxMessage) }

// upTo returns the value of a key, truncated to limit bytes.
func (f *fields) upTo(k key, limit int) []byte {
	n := min(len(f.at[k].b), limit)
	return f.at[k].b[:n:n]
}

// lacks reports whether a journal field is known and still missing. The caller then
// copies its value.
func (f *fields) lacks(name []byte) bool {
	k := knownOf(name)
	return k.rank > 0 && !isLower(name) && f.at[k.key].b == nil
}

// dropTail removes the last value of a truncated Kata line. Kata logs its keys in a
// fixed order with source at the end. Without source the line was truncated in this
// value or after it.
func (f *fields) dropTail() {
	if f.has(keySource) {
		return
	}
	switch string(f.tail) {
	case "name", "pid", "container", "sandbox":
		f.at[knownOf(f.tail).key] = text{}
		f.cut = true
	}
}
