package logs

import (
	"bytes"
	"strconv"
	"strings"
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

// surrogate reads half a pair, "\ud83d"; 0 where there is none.
func surrogate(s string) rune {
	if len(s) < 6 || s[:2] != `\u` {
		return 0
	}
	if r, err := strconv.ParseUint(s[2:6], 16, 16); err == nil && utf16.IsSurrogate(rune(r)) {
		return rune(r)
	}
	return 0
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
