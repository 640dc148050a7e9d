package logs

import "bytes"

// logfmt reads one record of key=value pairs as logrus writes them and returns
// where the next one on the same line begins, nil where none does: a second time=
// with a date begins another.
//
// A key is whatever stands before the "=", because Kata's own lines have keys with
// blanks in them ("default cpu=1 default mem=512").
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

// value reads what follows a "=" and says how long it is.
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

// unescaped returns where a text ends whose quotes somebody wrote without their
// backslashes: a quote ends it that has a pair or nothing behind it. Where none does,
// none does for what comes later on the line.
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

// isDate says whether a value begins like a date: 2006-, or that in quotes.
func isDate(b []byte) bool {
	if len(b) > 0 && b[0] == '"' {
		b = b[1:]
	}
	return len(b) >= 10 && isDigit(b[0]) && isDigit(b[3]) && b[4] == '-' && b[7] == '-'
}

// findRecord returns where in a line a logfmt record begins, behind whatever
// somebody wrote before it; -1 where none does.
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
