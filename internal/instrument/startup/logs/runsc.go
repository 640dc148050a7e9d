package logs

import "bytes"

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
	for {
		i, kind := milestone(b)
		if i < 0 {
			return
		}
		b = b[i:]
		cell := b
		if end := bytes.IndexByte(b, '\t'); end >= 0 {
			cell = b[:end]
		} else if end, _ := milestone(b); end >= 0 {
			cell = b[:end]
		}
		b = b[len(cell):]
		e := s.event(Runsc)
		e.Time, e.Level, e.Program, e.Cut = when, levels["info"], timingName, long
		e.Message, e.Took = took(bytes.TrimSpace(cell), kind)
	}
}

var timingName = []byte("boot timing")

// milestone returns the offset after the first milestone glyph, and its kind: the last
// byte of ╭ (U+256D), ├ (U+251C) or ╰ (U+2570).
func milestone(b []byte) (at int, kind byte) {
	for i := range b {
		for _, glyph := range []string{"\u256d\u2500 ", "\u251c\u2500 ", "\u2570\u2500 "} {
			if bytes.HasPrefix(b[i:], []byte(glyph)) {
				return i + len(glyph), glyph[2]
			}
		}
	}
	return -1, 0
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

// grouped parses a number of µs with separators between digit groups: "28 179µs".
func grouped(b []byte) (us int64, ok bool) {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case isDigit(c):
			if us > 1<<50 {
				return 0, false
			}
			us, ok = us*10+int64(c-'0'), true
		case c == ' ', c == ',', c == '\'':
			continue
		case c == 0xc2 && i+1 < len(b) && b[i+1] == 0xa0: // no-break space
			i++
		case c == 0xe2 && i+2 < len(b) && b[i+1] == 0x80: // thin spaces, U+2000 to U+202F
			i += 2
		default:
			return us, ok && (bytes.HasPrefix(b[i:], []byte("\u00b5s")) || bytes.HasPrefix(b[i:], []byte("\u03bcs")))
		}
	}
	return 0, false
}
