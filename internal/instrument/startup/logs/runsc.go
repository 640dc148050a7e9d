package logs

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// isTiming reports whether a line is part of runsc's boot table: "[02:27:17.291776]\t
// +5 851µs ▉▉ \t├─ Go code running: 5 851µs".
func isTiming(b []byte) bool {
	return len(b) > 18 && b[0] == '[' && b[3] == ':' && b[6] == ':' && isDigit(b[1])
}

// timing adds the events of a table line, one for each timeline that reaches a
// milestone. "╭─ name" begins a timeline. "├─ name: 851µs" is a milestone with the
// time since the previous one. "╰─ END 12µs, total 1 385µs" ends a timeline. "│ ...
// 89µs ..." is a timeline without a milestone here.
func (s *source) timing(b []byte, long bool) {
	clock, b, _ := bytes.Cut(b[1:], []byte("]"))
	tod, ok := timeOfDay(clock)
	if !ok {
		return
	}
	when := s.sameDay(tod)
	_, b, kind := milestone(b)
	for kind != 0 {
		cell, rest, next := milestone(b)
		cell, _, _ = bytes.Cut(cell, []byte("\t"))
		e := s.event(Runsc)
		e.Time, e.Level, e.Program, e.Cut = when, levels["info"], timingName, long
		e.Message, e.Took = took(bytes.TrimSpace(cell), kind)
		b, kind = rest, next
	}
}

var timingName = []byte("boot timing")

// milestone splits a line at the first milestone glyph. kind is the last byte of ╭
// (U+256D), ├ (U+251C) or ╰ (U+2570), or 0 without a glyph.
func milestone(b []byte) (before, after []byte, kind byte) {
	for i := range b {
		for _, glyph := range []string{"\u256d\u2500 ", "\u251c\u2500 ", "\u2570\u2500 "} {
			if rest, ok := bytes.CutPrefix(b[i:], []byte(glyph)); ok {
				return b[:i], rest, glyph[2]
			}
		}
	}
	return b, nil, 0
}

// took splits a milestone into name and time.
func took(cell []byte, kind byte) (name []byte, ns int64) {
	switch kind {
	case 0x9c: // ├
		if i := bytes.LastIndex(cell, []byte(": ")); i >= 0 {
			if us, ok := grouped(cell[i+2:]); ok {
				return cell[:min(i, maxMessage)], us * 1000
			}
		}
	case 0xb0: // ╰
		if rest, ok := bytes.CutPrefix(cell, []byte("END ")); ok {
			if us, ok := grouped(rest); ok {
				return cell[:3], us * 1000
			}
		}
	}
	return cell[:min(len(cell), maxMessage)], 0
}

// grouped parses a number of µs with separators between digit groups: "28 179µs". The
// separators are blanks of any width, commas and apostrophes.
func grouped(b []byte) (us int64, ok bool) {
	for len(b) > 0 && us <= 1<<50 {
		c, size := utf8.DecodeRune(b)
		switch {
		case '0' <= c && c <= '9':
			us, ok = us*10+int64(c-'0'), true
		case c != ',' && c != '\'' && !unicode.IsSpace(c):
			return us, ok && (c == '\u00b5' || c == '\u03bc') && len(b) > size && b[size] == 's'
		}
		b = b[size:]
	}
	return 0, false
}
