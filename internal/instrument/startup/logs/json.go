package logs

import "bytes"

// object reads one JSON object, which b begins with, and returns what follows it
// on the line if that is another one. Nested values are stepped over. ok is false
// where it is no object; a cut one is one. f.journal says beforehand whether it is an
// entry of the journal's.
func (f *fields) object(b []byte) (rest []byte, ok bool) {
	i := 1
	for {
		for i < len(b) && (b[i] == ' ' || b[i] == ',' || b[i] == '\t') {
			i++
		}
		if i >= len(b) {
			f.cut = true
			return nil, true
		}
		if b[i] == '}' {
			rest = bytes.TrimLeft(b[i+1:], " \t,")
			if len(rest) > 0 && rest[0] == '{' {
				return rest, true
			}
			return nil, true
		}
		if b[i] != '"' {
			return nil, false
		}
		key, end, _ := f.quoted(b[i+1:])
		if end < 0 {
			f.cut = true
			return nil, true
		}
		i += end + 2
		for i < len(b) && (b[i] == ' ' || b[i] == ':') {
			i++
		}
		if i >= len(b) {
			f.cut = true
			return nil, true
		}
		n, ok := f.member(key, b[i:])
		if !ok {
			return nil, false
		}
		i += n
	}
}

// entryKey ends the key of the times that only entries of the journal have.
var entryKey = []byte("_REALTIME_TIMESTAMP\"")

// member reads a value and says how long it is.
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
	for n < len(b) && b[n] != ',' && b[n] != '}' && b[n] != ' ' {
		n++
	}
	if n == 0 {
		return 0, false
	}
	if string(b[:n]) != "null" {
		f.put(key, b[:n])
	}
	return n, true
}

// list keeps of a list what the journal means by it: the bytes of a text that is
// not UTF-8, or the values of a field that was sent more than once, of which the
// first counts.
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

// nested says how long a list or an object is; -1 where it does not end.
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

// appendBytes appends the bytes that a list of numbers stands for.
func appendBytes(dst, list []byte) []byte {
	for len(list) > 0 {
		if n, ok := number(list); ok && n < 256 {
			dst = append(dst, byte(n))
		}
		i := bytes.IndexByte(list, ',')
		if i < 0 {
			break
		}
		list = bytes.TrimLeft(list[i+1:], " ")
	}
	return dst
}
