package logs

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted returns the unescaped text up to the closing quote, and the offset of that
// quote, or -1 without one. The opening quote is before b. The escapes are Go's
// (logrus quotes with %q) and JSON's. They differ only in JSON's surrogate pairs (\u).
// Invalid and truncated escapes are left unchanged.
func (f *fields) quoted(b []byte) (text []byte, end int, escaped bool) {
	text, end = b, bytes.IndexByte(b, '"')
	if end >= 0 {
		text = b[:end]
	}
	at := bytes.IndexByte(text, '\\')
	if at < 0 {
		return text, end, false
	}
	from := len(*f.arena)
	out := slices.Grow(*f.arena, len(b))[:from+len(b)] // unescaping never makes a text longer
	to := from + copy(out[from:], b[:at])
	for ; at < len(b) && b[at] != '"'; at++ {
		c := b[at]
		if c == '\\' && at+1 < len(b) {
			if c = b[at+1]; c != '"' && c != '\\' { // the two most common escapes
				more, n := escape(out[:to], b[at:])
				to, at = len(more), at+n-1
				continue
			}
			at++
		}
		out[to] = c
		to++
	}
	if *f.arena = out[:to]; at == len(b) {
		at = -1
	}
	return out[from:to:to], at, true
}

// escape appends the character of the escape at the beginning of src and returns the
// length of the escape. src is a backslash and at least one byte.
func escape(dst, src []byte) ([]byte, int) {
	if strings.IndexByte(`"\/'`, src[1]) >= 0 {
		return append(dst, src[1]), 2
	}
	s := string(src[:min(len(src), 12)])
	if high := surrogate(s); high != 0 {
		if pair := utf16.DecodeRune(high, surrogate(s[6:])); pair != utf8.RuneError {
			return utf8.AppendRune(dst, pair), 12
		}
		return utf8.AppendRune(dst, utf8.RuneError), 6
	}
	r, multibyte, rest, err := strconv.UnquoteChar(s, 0)
	switch {
	case err != nil:
		return append(dst, '\\', src[1]), 2
	case multibyte:
		return utf8.AppendRune(dst, r), len(s) - len(rest)
	}
	return append(dst, byte(r)), len(s) - len(rest)
}

// surrogate parses half of a surrogate pair, "\ud83d". It returns 0 if there is none.
func surrogate(s string) rune {
	if len(s) < 6 || s[:2] != `\u` {
		return 0
	}
	if r, err := strconv.ParseUint(s[2:6], 16, 16); err == nil && utf16.IsSurrogate(rune(r)) {
		return rune(r)
	}
	return 0
}
