package logs

import (
	"bytes"
	"time"
)

// isGlog says whether a line begins as glog's do: "I1121 02:27:17.292309 ".
func isGlog(b []byte) bool {
	if len(b) < 22 || b[5] != ' ' || b[8] != ':' || b[11] != ':' || b[14] != '.' {
		return false
	}
	switch b[0] {
	case 'I', 'W', 'E', 'D', 'F', 'V':
		return isDigit(b[1]) && isDigit(b[2]) && isDigit(b[3]) && isDigit(b[4]) && isDigit(b[6])
	}
	return false
}

// glogLine makes the event of runsc's "I1121 02:27:17.292309       1 cli.go:275] …":
// level, month and day, time of day, process, where in its source, text.
func (s *source) glogLine(b []byte, c carrier, long bool) {
	at, message, complete := bytes.Cut(b[len("I1121 02:27:17.292309"):], []byte("] "))
	t, ok := glogTime(b)
	when := s.when(stamp{local: t})
	if !ok || when == 0 {
		return
	}
	e := s.event(Runsc)
	e.Time, e.Level, e.Program, e.Pid, e.Cut = when, level(b[:1]), c.ident, c.pid, long || !complete
	at = bytes.TrimLeft(at, " ")
	if pid := pidOf(at); pid > 0 {
		e.Pid = pid
	}
	if complete {
		e.Source = at[bytes.LastIndexByte(at, ' ')+1:]
	} else {
		message = at
	}
	e.Message = message[:min(len(message), maxMessage)]
}

// glogTime reads the month, the day and the time of a line of glog's.
func glogTime(b []byte) (yearless, bool) {
	month, _ := two(b[1:])
	date, _ := two(b[3:])
	tod, n := clockOf(b[6:])
	return yearless{time.Month(month), date, tod}, isDay(month, date) && n > 0 && len(b) > 6+n && b[6+n] == ' '
}

// isTiming says whether a line is of the table that runsc prints of its boot:
// "[02:27:17.291776]\t +5 851µs ▉▉ \t├─ Go code running: 5 851µs".
func isTiming(b []byte) bool {
	return len(b) > 18 && b[0] == '[' && b[3] == ':' && b[6] == ':' && isDigit(b[1])
}

// timing makes the events of a line of that table, one for each of its timelines
// that has a milestone there: "╭─ name" begins a timeline, "├─ name: 851µs" is a
// milestone and the time since the one before it, "╰─ END 12µs, total 1 385µs" ends
// one. "│ ... 89µs ..." is a timeline in which nothing happened.
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

// milestone returns what follows the first glyph of a milestone, and its kind: the
// last byte of ╭ (U+256D), ├ (U+251C) or ╰ (U+2570).
func milestone(b []byte) (at int, kind byte) {
	for i := 0; ; {
		n := bytes.Index(b[i:], []byte("\u2500 "))
		if n < 0 {
			return -1, 0
		}
		i += n
		if i >= 3 {
			switch string(b[i-3 : i]) {
			case "\u256d", "\u251c", "\u2570":
				return i + len("\u2500 "), b[i-1]
			}
		}
		i += len("\u2500 ")
	}
}

// took takes the name and the time of a milestone apart.
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

// grouped reads a number of µs whose digits stand in groups between which there is
// a space of whatever kind: "28 179µs".
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
