package logs

import (
	"bytes"
)

// isTerminal reports whether a line begins like logrus output for terminals:
// "INFO[0001] ", "DEBU[2026-11-21T02:45:27.5Z] ".
func isTerminal(b []byte) bool {
	if len(b) < 7 || b[4] != '[' {
		return false
	}
	_, known := levels[string(b[:4])]
	return known && isDigit(b[5])
}

// began is the assumed start of a program that logs only the seconds since its start.
const began = day

// terminal adds the event of such a line: level, time, message padded with blanks, and
// key=value pairs. Most lines have only whole seconds since the program's start as
// their time.
func (s *source) terminal(b []byte, long bool) {
	at, rest, ok := bytes.Cut(b[5:], []byte("]"))
	ns, _, isDate := parseStamp(at)
	if n, isNumber := number(at); isNumber && !isDate && len(bytes.Trim(at, "0123456789")) == 0 {
		ns = began + min(n, 1<<31)*second
		s.stats.Coarse++
	} else if isDate {
		s.own.anchor = ns
	}
	if !ok || ns == 0 {
		return
	}
	message, pairs := apart(bytes.TrimLeft(rest, " "))
	f := fields{arena: &s.arena, cut: long}
	f.logfmt(pairs)
	e := s.event(s.form(&f, &carrier{}))
	s.describe(e, &f, &carrier{})
	e.Time, e.Cut, e.Level, e.Message = ns, long, level(b[:4]), message[:min(len(message), maxMessage)]
}

// apart splits such a line into message and pairs. The pairs begin after two blanks.
// After a long message they begin at the first known key.
func apart(b []byte) (message, pairs []byte) {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], ' ')
		if i < 0 {
			return bytes.TrimRight(b, " "), nil
		}
		at += i
		rest := bytes.TrimLeft(b[at:], " ")
		key, _, pair := bytes.Cut(rest[:min(len(rest), 64)], []byte("="))
		if pair && !bytes.ContainsAny(key, " \"") && (knownOf(key).rank > 0 || len(b[at:])-len(rest) > 1) {
			return b[:at], rest
		}
		at += max(len(b[at:])-len(rest), 1)
	}
}

// plainly returns a line without terminal color codes, and without the bytes that
// precede an object in a JSON sequence or array.
func (s *source) plainly(b []byte) []byte {
	if bytes.IndexByte(b, 0x1b) >= 0 {
		b = s.uncolored(b)
	}
	rest := bytes.TrimLeft(b, " \t\x1e[,") // \x1e: journalctl -o json-seq
	if len(b) > 0 && b[0] <= ' ' || bytes.HasPrefix(rest, []byte(`{"`)) {
		return rest
	}
	return b
}

func (s *source) uncolored(b []byte) []byte {
	from := len(s.arena)
	for {
		text, rest, more := bytes.Cut(b, []byte("\x1b["))
		s.arena = append(s.arena, text...)
		if !more {
			return s.arena[from:len(s.arena):len(s.arena)]
		}
		end := bytes.IndexByte(rest[:min(len(rest), 16)], 'm')
		b = rest[end+1:]
	}
}

// behindPrefix returns the line after a prefix, or nil if there is none. Prefixes are
// grep's "kata.log:12:", a pod name, a node address, or a column of docker compose.
func behindPrefix(b []byte) []byte {
	for at := 0; at < min(len(b), 160); at++ {
		if c := b[at]; c != ':' && c != ' ' && c != '\t' && c != '[' && c != '|' {
			continue
		}
		rest := bytes.TrimLeft(b[at+1:], " \t")
		if Begins(rest) {
			return rest
		}
	}
	return nil
}

// behindStamp returns the line after the time added by a container engine or by
// kubectl logs, or nil if there is none: "2006-01-02T15:04:05.5Z stderr F I0102 …".
func behindStamp(b []byte) []byte {
	b = bytes.TrimLeft(b, " ")
	for _, stream := range []string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
		b = bytes.TrimPrefix(b, []byte(stream))
	}
	if Begins(b) {
		return b
	}
	return nil
}

// Begins reports whether a line begins like one of a known form.
func Begins(b []byte) bool {
	if len(b) < 16 {
		return false
	}
	_, n := priority(b)
	stamped := 0
	if isStamped(b[n:]) {
		_, stamped = stampOf(b[n:])
	}
	return stamped > 0 || b[0] == '{' && b[1] == '"' || bytes.HasPrefix(b, timeKey) || isGlog(b) || isTiming(b) || isTerminal(b)
}
