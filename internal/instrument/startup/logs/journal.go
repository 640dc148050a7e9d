package logs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"strconv"
)

// journalEntry adds the events of a journal entry. These are the records in its
// message, or one event for plain text. runtime-rs sends its record as fields of the
// entry. An entry without a time has no event.
func (s *source) journalEntry(f *fields) {
	at := cmp.Or(micros(f.at[keySent].b), micros(f.at[keyArrived].b))
	if at == 0 {
		return
	}
	c := carrier{ident: f.upTo(keyIdent, 64), time: at, pid: pidOf(f.at[keyKept].b)}
	message := s.message(f)
	s.own.anchor = c.time
	if bytes.HasPrefix(c.ident, kataIdent) && f.has(keyName, keySubsystem, keySource, keyFile) {
		s.native(f, &c, message)
		return
	}
	s.plain(message, &c, level(f.at[keyLevel].b), f.cut)
}

var kataIdent = []byte("kata")

// message returns the text of an entry. The journal writes text that is not UTF-8 as a
// list of bytes.
func (s *source) message(f *fields) []byte {
	if !f.bytes {
		return f.upTo(keyMessage, maxLine)
	}
	from := len(s.arena)
	s.arena = appendBytes(s.arena, f.at[keyMessage].b)
	return s.arena[from:len(s.arena):len(s.arena)]
}

// native adds the event of a runtime-rs entry, which has the record in its fields.
func (s *source) native(f *fields, c *carrier, message []byte) {
	form := KataRS
	if string(f.at[keyName].b) == "kata-agent" || string(f.at[keySource].b) == "agent" {
		form = KataAgent
	}
	e := s.event(form)
	e.Time, e.Cut = c.time, f.cut
	s.describe(e, f, c)
	e.Message = message[:min(len(message), maxMessage)]
}

// entryBegins reports whether a line begins an entry of journalctl -o export,
// json-pretty or verbose.
func (s *source) entryBegins(b []byte) bool {
	return bytes.HasPrefix(b, cursorKey) || bytes.HasPrefix(b, arrivedKey) || s.journal && isField(b) ||
		string(b) == "{" && s.glog == 0 || verboseTime(b) != nil
}

var (
	cursorKey  = []byte("__CURSOR=")
	arrivedKey = []byte("__REALTIME_TIMESTAMP=")
)

// isField reports whether a line is a field of an entry: KEY=…, or only KEY before
// binary data.
func isField(b []byte) bool {
	for i, c := range b {
		if c == '=' {
			return i > 0
		}
		if c != '_' && c-'A' >= 26 && !isDigit(c) || i == 64 {
			return false
		}
	}
	return len(b) > 0
}

// maxBinary is the maximum length of a value in systemd-journald (DATA_SIZE_MAX).
const maxBinary = 768 << 20

// The limits of an entry. journald allows 1024 fields (ENTRY_FIELD_COUNT_MAX). The
// bytes of the fields that are read are limited to a few long lines. A longer entry is
// truncated.
const (
	maxFields = 1024 + 16 // journald's own fields, such as the cursor, are not in its limit
	maxEntry  = 4 * maxLine
)

// goesOn reports whether a line continues the current entry. A line that begins
// another entry does not. A line that is not a field does not either, and marks the
// entry as truncated.
func (s *source) goesOn(b []byte) bool {
	b = bytes.TrimLeft(b, "\t ") // indentation by journalctl
	switch {
	case s.pretty:
		s.entry.cut = len(b) > 0 && b[0] != '"' && b[0] != '}' || s.fieldCount >= maxFields || len(s.arena) > maxEntry
		return !s.entry.cut
	case verboseTime(b) != nil:
		return false
	case len(b) == 0:
		return true
	case !isField(b), s.fieldCount >= maxFields, len(s.arena) > maxEntry:
		s.entry.cut = true
		return false
	case bytes.HasPrefix(b, cursorKey):
		return s.fieldCount == 0
	}
	return !s.entry.has(keyArrived) || !bytes.HasPrefix(b, arrivedKey)
}

// export reads a line of `journalctl -o export`: a field of an entry, or the empty
// line at its end. The values read are stored in the arena.
func (s *source) export(b []byte) bool {
	if len(b) == 0 || s.pretty && b[0] == '}' {
		s.endEntry()
		return true
	}
	if !s.inside {
		s.inside, s.entry, s.began, s.fieldCount = true, fields{arena: &s.arena, journal: true}, s.number, 0
		s.arena = s.arena[:0]
		if s.pretty = len(b) == 1; s.pretty {
			return true
		}
		if t := verboseTime(b); t != nil {
			s.entry.put(arrivedKey[:len(arrivedKey)-1], t)
			return true
		}
	}
	if s.fieldCount++; s.pretty {
		return s.member(b)
	}
	b = bytes.TrimLeft(b, " ") // journalctl -o verbose
	key, value, inline := bytes.Cut(b, []byte("="))
	if !s.entry.lacks(key) {
		if !inline {
			s.binary(nil)
		}
		return true
	}
	from := len(s.arena)
	s.arena = append(s.arena, key...)
	middle := len(s.arena)
	if inline {
		s.arena = append(s.arena, value...)
	} else {
		s.arena = s.binary(s.arena)
	}
	s.entry.put(s.arena[from:middle:middle], s.arena[middle:len(s.arena):len(s.arena)])
	return true
}

// member reads a line of `journalctl -o json-pretty`: "KEY" : "value",
func (s *source) member(b []byte) bool {
	from := len(s.arena)
	s.arena = append(s.arena, bytes.Trim(b, "\t ,")...)
	b = s.arena[from:len(s.arena):len(s.arena)]
	if len(b) == 0 || b[0] != '"' {
		return true
	}
	if key, end, _ := s.entry.quoted(b[1:]); end >= 0 {
		if value := bytes.TrimLeft(b[end+2:], " :"); len(value) > 0 {
			s.entry.member(key, value)
		}
		if !s.entry.has(keyArrived) {
			s.inside = false
			s.envelope(b[end+2:])
			s.inside = true
		}
	}
	return true
}

// verboseTime returns the time in the first line of a `journalctl -o verbose` entry,
// or nil for any other line. The result is µs since 1970, as decimal text. In the line
// it is hexadecimal: "Sat 2026-11-21 02:45:27.500123 UTC
// [s=…;i=…;b=…;m=…;t=644e1cdb5b4cb;x=…]".
func verboseTime(b []byte) []byte {
	if len(b) == 0 || b[len(b)-1] != ']' {
		return nil
	}
	at := bytes.Index(b[:min(len(b), 64)], []byte(" [s="))
	if at < 0 || !isStamped(b) {
		return nil
	}
	_, t, _ := bytes.Cut(b[at:], []byte(";t="))
	t, _, _ = bytes.Cut(t, []byte(";"))
	if us, err := strconv.ParseInt(string(t), 16, 64); err == nil && us > 0 {
		return strconv.AppendInt(nil, us, 10)
	}
	return nil
}

// binary appends a binary value to dst. An 8-byte little-endian length precedes the
// value, and a newline follows it.
func (s *source) binary(dst []byte) []byte {
	var room [8]byte
	head := s.raw(room[:0], 8)
	if len(head) < 8 || binary.LittleEndian.Uint64(head) > maxBinary {
		return dst
	}
	dst = s.raw(dst, int64(binary.LittleEndian.Uint64(head)))
	s.raw(room[:0], 1)
	return dst
}

// endEntry adds the events of the current entry.
func (s *source) endEntry() {
	before := len(s.events)
	if s.inside = false; s.pretty && !s.entry.has(keySent, keyArrived) {
		s.record(&s.entry, &carrier{}) // an object that is not an entry, as printed by jq
	} else {
		s.journalEntry(&s.entry)
	}
	s.pretty = false
	for i := range s.events[before:] {
		s.events[before+i].Line = s.began
		s.glog = 0
	}
}
