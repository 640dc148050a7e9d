package logs

import (
	"bytes"
	"math"
	"slices"
	"time"
)

// isStamped reports whether a line begins like a syslog or journalctl line: with a
// priority, month, weekday, date or number of seconds.
func isStamped(b []byte) bool {
	if len(b) < 16 {
		return false
	}
	switch c := b[0]; {
	case c == '<', c == '[':
		return true
	case isDigit(c):
		return b[4] == '-' || b[10] == '.'
	}
	return b[3] == ' ' && (isMonth(b) || isDigit(b[4]) && b[8] == '-')
}

// isMonth reports whether b begins with the name of a month.
func isMonth(b []byte) bool {
	return len(b) > 3 && bytes.Index(months, b[:3])%3 == 0
}

var (
	months   = []byte("JanFebMarAprMayJunJulAugSepOctNovDec")
	weekdays = []byte("MonTueWedThuFriSatSun")
)

// identAtEnd returns the program and pid at the end of a prefix: "… kata[30905]: ", "…
// containerd: ", or RFC 5424's "… kata 30905 - - ".
func identAtEnd(b []byte) (ident []byte, pid int) {
	b = bytes.TrimSpace(b)
	if n := len(b); n > 0 && b[n-1] == ':' {
		return identOf(b[:n-1])
	}
	if _, at := priority(b); isFive(b, at) {
		ident, pid, _ = five(b[at:])
	}
	return ident, pid
}

// identOf splits "… kata[30905]" into program and pid.
func identOf(b []byte) (ident []byte, pid int) {
	b = b[bytes.LastIndexByte(b, ' ')+1:]
	if n := len(b); n > 0 && b[n-1] == ']' {
		if i := bytes.LastIndexByte(b, '['); i >= 0 {
			b, pid = b[:i], pidOf(b[i+1:])
		}
	}
	return b[:min(len(b), 64)], pid
}

// priority parses "<30>". It returns the severity as level, and the length.
func priority(b []byte) (severity []byte, n int) {
	if len(b) < 3 || b[0] != '<' {
		return nil, 0
	}
	p, ok := number(b[1:])
	end := bytes.IndexByte(b[:min(len(b), 5)], '>')
	if !ok || end < 0 || p > 191 {
		return nil, 0
	}
	return level([]byte{'0' + byte(p%8)}), end + 1
}

// isFive reports whether the version of RFC 5424 is at the given offset.
func isFive(b []byte, at int) bool {
	return at > 0 && len(b) > at+2 && b[at] == '1' && b[at+1] == ' '
}

// five parses RFC 5424's "1 TIME HOST APP PROCID MSGID SD " and returns the message.
func five(b []byte) (ident []byte, pid int, message []byte) {
	var words [6][]byte
	for i := range words {
		words[i], b, _ = bytes.Cut(b, blank)
	}
	if end := bytes.Index(b, []byte("] ")); end >= 0 && b[0] == '[' {
		b = b[end+2:]
	} else if len(b) > 0 && b[0] != '[' {
		_, b, _ = bytes.Cut(b, blank)
	}
	return words[3][:min(len(words[3]), 64)], pidOf(words[4]), bytes.TrimPrefix(b, bom)
}

var (
	blank = []byte(" ")
	bom   = []byte("\xef\xbb\xbf")
)

// stamp is the time in a prefix: ns since 1970, or a local time without a year.
type stamp struct {
	ns     int64
	local  time.Time // in the year 0; the zero value means none
	coarse bool      // without a fraction
}

// stampOf parses the time at the beginning of a line. n is its length, or 0 without a
// time.
func stampOf(b []byte) (t stamp, n int) {
	switch {
	case len(b) < 15:
	case isDigit(b[0]) && b[4] == '-':
		if n = bytes.IndexByte(b, ' '); n > 0 {
			if ns, _, ok := parseStamp(b[:n]); ok {
				return stamp{ns: ns, coarse: b[19] != '.'}, n
			}
		}
	case isDigit(b[0]): // journalctl -o short-unix
		s, ok := number(b)
		if ok && len(b) > 17 && b[10] == '.' && s < 1<<33 && bytes.IndexByte(b, ' ') == 17 {
			us, _ := number(b[11:])
			return stamp{ns: s*second + us*1000}, 17
		}
	case b[0] == '[': // journalctl -o short-monotonic
		_, n = kernelStamp(b)
		return stamp{}, n
	case isMonth(b): // "Nov 21 02:46:31" and "Nov  1 02:46:31.123456"
		return local("Jan _2 15:04:05", b, len("Nov 21 "))
	case bytes.Index(weekdays, b[:3])%3 == 0 && b[3] == ' ' && b[14] == ' ': // journalctl -o short-full
		t, n = local("Mon 2006-01-02 15:04:05", b, len("Mon 2006-01-02 "))
		if zone := bytes.IndexByte(b[min(n+1, len(b)):], ' '); n > 0 && zone >= 0 { // zones other than UTC have only a name here
			return t, n + 1 + zone
		}
	}
	return stamp{}, 0
}

// local parses a time without a zone at the beginning of b, and drops its year. The
// time of day begins at offset at and ends at a blank. n is the length, or 0 without a
// time.
func local(layout string, b []byte, at int) (t stamp, n int) {
	n = bytes.IndexByte(b[at:min(len(b), at+32)], ' ')
	if n < 0 {
		return stamp{}, 0
	}
	day, err := time.Parse(layout, string(b[:at+n]))
	if err != nil {
		return stamp{}, 0
	}
	return stamp{local: day.AddDate(-day.Year(), 0, 0), coarse: n == len(time.TimeOnly)}, at + n
}

// syslog adds the event of a line with a syslog or journalctl prefix and a text that
// is not logfmt.
func (s *source) syslog(b []byte, long bool) {
	c := carrier{}
	severity, at := priority(b)
	isFive := isFive(b, at)
	if isFive {
		at += len("1 ")
	}
	when, n := stampOf(b[at:])
	if n == 0 {
		s.crun(b, long)
		return
	}
	if inner := behindStamp(b[at+n:]); inner != nil {
		s.line(inner, long)
		return
	}
	if s.dockerEvent(when.ns, b[at+n:]) {
		return
	}
	var message []byte
	if isFive {
		c.ident, c.pid, message = five(b[at-len("1 "):])
	} else {
		rest := b[at+n:]
		i := bytes.Index(rest[:min(len(rest), 512)], []byte(": "))
		if i < 0 {
			return
		}
		c.ident, c.pid = identOf(rest[:i])
		message = rest[i+2:]
	}
	c.time = s.when(when)
	s.plain(message, &c, severity, long)
}

// plain adds the events of a message from a syslog or the journal: one per record in
// it, or one for its text.
func (s *source) plain(message []byte, c *carrier, severity []byte, cut bool) {
	before := len(s.events)
	message = bytes.Trim(message, " \t\r\n")
	for line, rest, more := message, []byte(nil), true; more; line = rest {
		line, rest, more = bytes.Cut(line, newline)
		switch i := findRecord(line); {
		case i >= 0:
			s.records(line[i:], *c, cut && !more)
		case len(line) > 0 && line[0] == '{':
			s.objects(line, *c, cut && !more)
		case isGlog(line) && (bytes.Contains(c.ident, runscName) || programOf(c.ident) == Kubelet):
			s.glogLine(line, *c, cut && !more)
		}
	}
	if len(s.events) > before {
		return
	}
	lost := suppressed(message)
	s.stats.Suppressed += min(lost, math.MaxInt64-s.stats.Suppressed)
	if c.time == 0 {
		return
	}
	form := programOf(c.ident)
	if !slices.Contains([]Form{Crun, Isulad, Podman, Kubelet}, form) {
		form = Journal
	}
	e := s.event(form)
	e.Suppressed = lost
	e.Time, e.Program, e.Pid, e.Cut, e.Level = c.time, c.ident, c.pid, cut, severity
	e.Message = message[:min(len(message), maxMessage)]
}

var runscName = []byte("runsc")

// suppressed returns the number of lost messages reported by journald or by rsyslog's
// journal input. Implausibly large numbers count as 0.
func suppressed(b []byte) (n int64) {
	if len(b) > 512 {
		return 0
	}
	if rest, ok := bytes.CutPrefix(b, []byte("Suppressed ")); ok && bytes.Contains(rest, []byte(" messages from ")) {
		n, _ = number(rest)
	} else if i := bytes.Index(b, []byte(" messages lost due to rate-limiting")); i >= 0 {
		n, _ = number(b[bytes.LastIndexByte(b[:i], ' ')+1 : i])
	}
	if n >= 1e12 {
		return 0
	}
	return n
}
