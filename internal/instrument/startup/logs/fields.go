package logs

import "slices"

// text is a piece of a line, unescaped. No bytes (nil) are no text; an empty one is.
type text struct {
	b    []byte
	rank uint8 // of the key that it came by: the higher says it better
}

// key is what is looked for in a record, whatever its form calls it.
type key uint8

const (
	keyTime key = iota
	keyTS       // what Rust's slog calls the time
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
	keyArrived // the journal's own: when it took the entry, when that was sent, …
	keySent
	keyKept
	keyIdent
	keyFile
	keys
)

// names are those of the keys: logfmt's and JSON's, and in capitals the journal's and
// those that slog-journald makes of runtime-rs's.
var names = map[string]known{
	"time": {keyTime, 1}, "ts": {keyTS, 1}, "level": {keyLevel, 1}, "msg": {keyMessage, 1}, "name": {keyName, 1}, "source": {keySource, 1},
	"subsystem": {keySubsystem, 1}, "module": {keyModule, 1}, "id": {keyID, 1}, "error": {keyError, 1}, "pid": {keyPid, 1},
	"command": {keyCommand, 1}, "args": {keyCommand, 1}, "vmconsole": {keyConsole, 1}, "topic": {keySubsystem, 1}, "request-url": {keyCommand, 1}, "log": {keyLog, 1}, "path": {keyPath, 2}, "key": {keyPath, 1},
	"sandbox": {keySandbox, 3}, "podsandboxid": {keySandbox, 2}, "sandboxID": {keySandbox, 1}, "sandbox_id": {keySandbox, 1}, "sandbox-id": {keySandbox, 1},
	"container": {keyContainer, 1}, "containerID": {keyContainer, 1}, "container_id": {keyContainer, 1}, "container-id": {keyContainer, 1},

	"MESSAGE": {keyMessage, 1}, "PRIORITY": {keyLevel, 1}, "__REALTIME_TIMESTAMP": {keyArrived, 1}, "_SOURCE_REALTIME_TIMESTAMP": {keySent, 1},
	"_PID": {keyKept, 1}, "SYSLOG_IDENTIFIER": {keyIdent, 1}, "CODE_FILE": {keyFile, 1}, "NAME": {keyName, 1}, "SOURCE": {keySource, 1},
	"SUBSYSTEM": {keySubsystem, 1}, "SANDBOX": {keySandbox, 3}, "SANDBOX_ID": {keySandbox, 3}, "CONTAINER": {keyContainer, 1},
	"CONTAINER_ID": {keyContainer, 1}, "ERROR": {keyError, 1}, "PID": {keyPid, 1},
}

// known is a key that is looked for by one of its names.
type known struct {
	key  key
	rank uint8 // 0: by none
}

// knownOf is what a name stands for. A line has ten names, so a map would be most of what
// reading it takes: they lie in table by their length and their last letter.
func knownOf(name []byte) known {
	if len(name) > 0 {
		for _, k := range table[place(name)] {
			if k.name == string(name) {
				return k.known
			}
		}
	}
	return known{}
}

func place[T string | []byte](name T) byte { return name[len(name)-1] ^ byte(len(name)<<4) }

var table = func() (t [256][]struct {
	name string
	known
}) {
	for name, k := range names {
		t[place(name)] = append(t[place(name)], struct {
			name string
			known
		}{name, k})
	}
	return t
}()

// isLower says whether a name is one of logfmt's and JSON's, not of the journal's.
func isLower(name []byte) bool { return len(name) > 0 && name[0] >= 'a' }

// fields are what was found of a record. Where a key is there twice the first
// counts.
type fields struct {
	at      [keys]text
	arena   *[]byte // where texts are unescaped
	tail    []byte  // the key of a value without quotes that ends the line
	bytes   bool    // the message is a list of numbers
	journal bool    // it is an entry of the journal's: keys in capitals are its, and no container's PID
	cut     bool
	endless bool // no quote of what is left of the line ends a text that has quotes inside
}

// has says whether one of some keys is there.
func (f *fields) has(any ...key) bool {
	return slices.ContainsFunc(any, func(k key) bool { return f.at[k].b != nil })
}

// put keeps the value of a key that is looked for. Of a value that is cut only a
// text counts: half an id would be another's.
func (f *fields) put(name, value []byte) {
	k := knownOf(name)
	if k.rank == 0 || !f.journal && !isLower(name) || f.cut && k.key != keyMessage && k.key != keyError && k.key != keyConsole {
		return
	}
	if t := &f.at[k.key]; k.rank > t.rank {
		*t = text{value, k.rank}
	}
}

// text returns a key's value, cut to maxMessage bytes.
func (f *fields) text(k key) []byte { return f.upTo(k, maxMessage) }

// upTo is text for another limit.
func (f *fields) upTo(k key, limit int) []byte {
	n := min(len(f.at[k].b), limit)
	return f.at[k].b[:n:n]
}

// lacks says whether a field of the journal's is one that is looked for and not
// there yet, before its value is copied.
func (f *fields) lacks(name []byte) bool {
	k := knownOf(name)
	return k.rank > 0 && !isLower(name) && f.at[k.key].b == nil
}

// dropTail forgets the value that ends a line of Kata's without a source: its keys
// are in order and source comes behind these, so that the line was cut in the
// middle of the value or behind it.
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
