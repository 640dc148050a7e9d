package logs

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends what src, the inside of a quoted text, stands for: with Go's
// escapes (logrus quotes with %q) and with JSON's, which are the same but for the
// pairs of \u that make one character. An escape that is none, or that is cut,
// stays as it is. It stops at most a character after limit bytes.
func unescape(dst, src []byte, limit int) []byte {
	end := len(dst) + limit
	for len(src) > 0 && len(dst) < end {
		i := bytes.IndexByte(src, '\\')
		if i != 0 {
			if i < 0 {
				i = len(src)
			}
			dst = append(dst, src[:min(i, end-len(dst))]...)
			src = src[i:]
			continue
		}
		if len(src) == 1 {
			return append(dst, '\\')
		}
		var n int
		dst, n = escape(dst, src)
		src = src[n:]
	}
	return dst
}

// escape appends what the escape at the beginning of src stands for and returns
// how long it is. src is a backslash and at least a byte.
func escape(dst, src []byte) ([]byte, int) {
	switch c := src[1]; c {
	case '"', '\\', '/', '\'':
		return append(dst, c), 2
	case 'n':
		return append(dst, '\n'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 'a':
		return append(dst, '\a'), 2
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'v':
		return append(dst, '\v'), 2
	case 'x':
		if r, ok := hex(src, 2, 2); ok {
			return append(dst, byte(r)), 4
		}
	case 'u':
		if r, ok := hex(src, 2, 4); ok {
			if utf16.IsSurrogate(r) {
				low, ok := hex(src, 8, 4)
				if pair := utf16.DecodeRune(r, low); ok && src[6] == '\\' && src[7] == 'u' && pair != utf8.RuneError {
					return utf8.AppendRune(dst, pair), 12
				}
			}
			return utf8.AppendRune(dst, r), 6
		}
	case 'U':
		if r, ok := hex(src, 2, 8); ok {
			return utf8.AppendRune(dst, r), 10
		}
	case '0', '1', '2', '3':
		if len(src) > 3 && src[2]-'0' < 8 && src[3]-'0' < 8 {
			return append(dst, (c-'0')<<6|(src[2]-'0')<<3|(src[3]-'0')), 4
		}
	}
	return append(dst, '\\', src[1]), 2
}

// hex reads n hexadecimal digits.
func hex(b []byte, at, n int) (rune, bool) {
	if len(b) < at+n {
		return 0, false
	}
	var r rune
	for _, c := range b[at : at+n] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// quoted returns where the text whose opening quote is before b ends; -1 where it
// does not.
func quoted(b []byte) (end int, escaped bool) {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '"')
		if i < 0 {
			return -1, escaped || bytes.IndexByte(b[at:], '\\') >= 0
		}
		end = at + i
		back := end
		for back > 0 && b[back-1] == '\\' {
			back--
		}
		if (end-back)%2 == 0 {
			return end, escaped || bytes.IndexByte(b[at:end], '\\') >= 0
		}
		escaped = true
		at = end + 1
	}
}
