package logs

import "bytes"

// logfmt parses one record of key=value pairs as written by logrus. It returns the
// rest of the line from the next record, or nil. A second time= with a date begins
// another record.
//
// A key is all text before the "=". Kata's own lines have keys with blanks ("default
// cpu=1 default mem=512").
func (f *fields) logfmt(b []byte) (rest []byte) {
	for i := 0; i < len(b); {
		if b[i] == ' ' {
			i++
			continue
		}
		e := bytes.IndexByte(b[i:], '=')
		if e < 0 {
			f.cut = true
			return nil
		}
		start, key := i, b[i:i+e]
		i += e + 1
		if n := len(key); n >= 4 && string(key[n-4:]) == "time" && (n == 4 || key[n-5] == ' ') && isDate(b[i:]) {
			if f.has(keyTime) {
				return b[start+n-4:]
			}
			key = key[n-4:]
		}
		value, escaped, n := f.value(b[i:])
		i += n
		if isLower(key) {
			f.put(key, value)
		}
		if i == len(b) && !escaped {
			f.tail = key
		}
	}
	return nil
}

// value parses the value after a "=". n is its length.
func (f *fields) value(b []byte) (value []byte, escaped bool, n int) {
	if len(b) > 0 && b[0] == '"' {
		value, end, escaped := f.quoted(b[1:])
		if end < 0 {
			f.cut = true
			return value, escaped, len(b)
		}
		if !escaped {
			end = f.unescaped(b[1:], end)
			value = b[1 : 1+end]
		}
		return value, escaped, end + 2
	}
	n = bytes.IndexByte(b, ' ')
	if n < 0 {
		n = len(b)
	}
	return b[:n:n], false, n
}

// unescaped returns the end of a quoted value with unescaped quotes inside. The
// closing quote is the first one followed by a pair or by the end of the line. If
// there is none, there is none for later values of the line.
func (f *fields) unescaped(b []byte, end int) int {
	for at := end; !f.endless; {
		rest := b[at+1:]
		key, _, pair := bytes.Cut(rest[:min(len(rest), 64)], []byte("="))
		if len(bytes.TrimLeft(rest, " ")) == 0 || pair && rest[0] == ' ' && bytes.IndexByte(key, '"') < 0 {
			return at
		}
		next := bytes.IndexByte(rest, '"')
		f.endless = next < 0
		at += 1 + next
	}
	return end
}

// isDate reports whether a value begins like a date, quoted or not: 2006-.
func isDate(b []byte) bool {
	if len(b) > 0 && b[0] == '"' {
		b = b[1:]
	}
	return len(b) >= 10 && isDigit(b[0]) && isDigit(b[3]) && b[4] == '-' && b[7] == '-'
}

// findRecord returns the offset of the first logfmt record in a line, or -1. Any text
// may precede it.
func findRecord(b []byte) int {
	for at := 0; ; {
		i := bytes.Index(b[at:], timeKey)
		if i < 0 {
			return -1
		}
		at += i
		if (at == 0 || b[at-1] == ' ' || b[at-1] == '\t' || b[at-1] == '\n') && isDate(b[at+len(timeKey):]) {
			return at
		}
		at += len(timeKey)
	}
}

var timeKey = []byte("time=")
