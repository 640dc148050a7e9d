package logs

import "bytes"

// object parses one JSON object at the beginning of b. It returns the rest of the line if
// that is another object. It skips nested values. ok is false if b is not an object; a
// truncated object is valid. f.journal must be set for a journal entry before the
// call.
func (f *fields) object(b []byte) (rest []byte, ok bool) {
	for b = b[1:]; ; {
		b = bytes.TrimLeft(b, " \t,")
		switch {
		case len(b) == 0:
		case b[0] == '}':
			if rest = bytes.TrimLeft(b[1:], " \t,"); len(rest) > 0 && rest[0] == '{' {
				return rest, true
			}
			return nil, true
		case b[0] != '"':
			return nil, false
		}
		key, end, _ := f.quoted(b[min(1, len(b)):])
		if end >= 0 {
			b = bytes.TrimLeft(b[end+2:], " :")
		}
		if end < 0 || len(b) == 0 {
			f.cut = true
			return nil, true
		}
		n, ok := f.member(key, b)
		if !ok {
			return nil, false
		}
		b = b[n:]
	}
}

// entryKey is the end of the time keys that only journal entries have.
var entryKey = []byte("_REALTIME_TIMESTAMP\"")

// member parses a value and returns its length.
func (f *fields) member(key, b []byte) (n int, ok bool) {
	switch b[0] {
	case '"':
		value, end, _ := f.quoted(b[1:])
		if end < 0 {
			f.cut = true
			f.put(key, value)
			return len(b), true
		}
		f.put(key, value)
		return end + 2, true
	case '[', '{':
		n = f.nested(b)
		if n < 0 {
			f.cut = true
			return len(b), true
		}
		f.list(key, b[:n])
		return n, true
	}
	if n = bytes.IndexAny(b, ",} "); n < 0 {
		n = len(b)
	}
	if n > 0 && string(b[:n]) != "null" {
		f.put(key, b[:n])
	}
	return n, n > 0
}

// list stores a list by the journal's rules. A list of numbers is the bytes of a text
// that is not UTF-8. Other lists are the values of a repeated field, and the first
// value counts.
func (f *fields) list(key, b []byte) {
	inside := bytes.TrimLeft(b[1:len(b)-1], " ")
	switch {
	case b[0] != '[' || len(inside) == 0:
	case inside[0] == '"':
		if first, end, _ := f.quoted(inside[1:]); end >= 0 {
			f.put(key, first)
		}
	case isDigit(inside[0]) && string(key) == "MESSAGE" && !f.has(keyMessage):
		f.put(key, inside)
		f.bytes = true
	}
}

// nested returns the length of a list or an object, or -1 if it does not end.
func (f *fields) nested(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			_, end, _ := f.quoted(b[i+1:])
			if end < 0 {
				return -1
			}
			i += end + 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// appendBytes appends the bytes of a list of numbers.
func appendBytes(dst, list []byte) []byte {
	for item := range bytes.SplitSeq(list, []byte(",")) {
		if n, ok := number(bytes.TrimLeft(item, " ")); ok && n < 256 {
			dst = append(dst, byte(n))
		}
	}
	return dst
}
