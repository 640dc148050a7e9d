package logs

import "bytes"

// isStamped says whether a line begins as those of a syslog or of journalctl do:
// with a priority, a month, a weekday, a date or a number of seconds.
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
	return b[3] == ' ' && (month(b) > 0 || isDigit(b[4]) && b[8] == '-')
}

// month returns the number of the month that b begins with; 0 where it does not.
func month(b []byte) int64 {
	if len(b) < 3 {
		return 0
	}
	i := bytes.Index(months, b[:3])
	if i < 0 || i%3 != 0 {
		return 0
	}
	return int64(i/3) + 1
}

var months = []byte("JanFebMarAprMayJunJulAugSepOctNovDec")

// identAtEnd returns the program and its process of a prefix that ends before the
// message: "… kata[30905]: ", "… containerd: ", or RFC 5424's "… kata 30905 - - ".
func identAtEnd(b []byte) (ident []byte, pid int) {
	b = bytes.TrimRight(b, " \t")
	if n := len(b); n > 0 && b[n-1] == ':' {
		return identOf(b[bytes.LastIndexByte(b, ' ')+1 : n-1])
	}
	if len(b) > 0 && b[0] == '<' {
		if _, at := priority(b); isFive(b, at) {
			ident, pid, _ = five(b[at:])
		}
	}
	return ident, pid
}

// identOf takes "kata[30905]" apart.
func identOf(b []byte) (ident []byte, pid int) {
	if n := len(b); n > 0 && b[n-1] == ']' {
		if i := bytes.LastIndexByte(b, '['); i >= 0 {
			if p, ok := number(b[i+1:]); ok && p < 1<<31 {
				pid = int(p)
			}
			b = b[:i]
		}
	}
	return b[:min(len(b), 64)], pid
}

// priority reads "<30>" and says how long it is; its severity is the level.
func priority(b []byte) (severity int64, n int) {
	if len(b) < 3 || b[0] != '<' {
		return -1, 0
	}
	p, ok := number(b[1:])
	end := bytes.IndexByte(b[:min(len(b), 5)], '>')
	if !ok || end < 0 || p > 191 {
		return -1, 0
	}
	return p % 8, end + 1
}

// isFive says whether RFC 5424's version stands at at.
func isFive(b []byte, at int) bool {
	return at > 0 && len(b) > at+2 && b[at] == '1' && b[at+1] == ' '
}

// five reads RFC 5424's "1 TIME HOST APP PROCID MSGID SD " and returns the message.
func five(b []byte) (ident []byte, pid int, message []byte) {
	var words [6][]byte
	for i := range words {
		words[i], b, _ = bytes.Cut(b, blank)
	}
	if p, ok := number(words[4]); ok && p < 1<<31 {
		pid = int(p)
	}
	if len(b) > 0 && b[0] == '[' {
		if end := bytes.Index(b, []byte("] ")); end >= 0 {
			b = b[end+2:]
		}
	} else {
		_, b, _ = bytes.Cut(b, blank)
	}
	return words[3][:min(len(words[3]), 64)], pid, bytes.TrimPrefix(b, bom)
}

var (
	blank = []byte(" ")
	bom   = []byte("\xef\xbb\xbf")
)

// stampOf reads the time in front of a line; n is how long it is, 0 where there is
// none. exact says that it has a year and a zone; the zone of another is the
// host's, and its resolution may be a second.
func stampOf(b []byte) (t stamp, n int) {
	switch {
	case len(b) < 15:
		return stamp{}, 0
	case isDigit(b[0]) && b[4] == '-':
		n = bytes.IndexByte(b, ' ')
		if n < 0 {
			return stamp{}, 0
		}
		ns, ok := ParseTime(b[:n])
		if !ok {
			return stamp{}, 0
		}
		return stamp{ns: ns, exact: true, coarse: b[19] != '.'}, n
	case isDigit(b[0]): // journalctl -o short-unix
		s, ok := number(b)
		if !ok || b[10] != '.' || s >= 1<<33 {
			return stamp{}, 0
		}
		us, _ := number(b[11:])
		n = bytes.IndexByte(b, ' ')
		if n != 17 {
			return stamp{}, 0
		}
		return stamp{ns: s*second + us*1000, exact: true}, n
	case b[0] == '[': // journalctl -o short-monotonic
		_, n = kernelStamp(b)
		return stamp{}, n
	case month(b) > 0 && b[3] == ' ':
		return classic(b)
	}
	return full(b)
}

// stamp is a time as a prefix has it: ns since 1970, or a day of a year that is
// not written.
type stamp struct {
	ns         int64
	exact      bool
	month, dom int64
	tod        int64
	coarse     bool // without a fraction
}

// classic reads "Nov 21 02:46:31" and "Nov  1 02:46:31.123456".
func classic(b []byte) (t stamp, n int) {
	t.month = month(b)
	day := b[4:6]
	if day[0] == ' ' {
		day = day[1:]
	}
	dom, ok := number(day)
	if !ok || dom < 1 || dom > 31 || b[6] != ' ' {
		return stamp{}, 0
	}
	t.dom = dom
	tod, n := timeOfDay(b[7:])
	if n == 0 {
		return stamp{}, 0
	}
	t.tod, t.coarse = tod, n == 8
	return t, 7 + n
}

// full reads journalctl -o short-full's "Sat 2026-11-21 02:46:31 UTC". Of other
// zones than UTC there is but a name: the day and the time are the host's.
func full(b []byte) (t stamp, n int) {
	if len(b) < len("Sat 2026-11-21 02:46:31 UTC ") || b[3] != ' ' || b[14] != ' ' {
		return stamp{}, 0
	}
	tod, n := timeOfDay(b[15:])
	if n == 0 || digits2(b, 9) < 1 || digits2(b, 9) > 12 || digits2(b, 12) < 1 || digits2(b, 12) > 31 {
		return stamp{}, 0
	}
	t = stamp{month: digits2(b, 9), dom: digits2(b, 12), tod: tod, coarse: n == 8}
	zone := bytes.IndexByte(b[15+n+1:], ' ')
	if zone < 0 {
		return stamp{}, 0
	}
	return t, 15 + n + 1 + zone
}

// syslog makes the event of a line with a syslog's or journalctl's prefix and a
// text that is no logfmt.
func (s *source) syslog(b []byte, long bool) {
	c := carrier{}
	severity, at := priority(b)
	var when stamp
	var message []byte
	if isFive(b, at) {
		t, n := stampOf(b[at+2:])
		if n == 0 {
			return
		}
		when = t
		c.ident, c.pid, message = five(b[at:])
	} else {
		t, n := stampOf(b[at:])
		if n == 0 {
			return
		}
		when = t
		rest := b[at+n:]
		i := bytes.Index(rest[:min(len(rest), 512)], []byte(": "))
		if i < 0 {
			return
		}
		c.ident, c.pid = identOf(rest[bytes.LastIndexByte(rest[:i], ' ')+1 : i])
		message = rest[i+2:]
	}
	c.time = s.when(when)
	s.plain(message, &c, severity, long)
}

// plain makes the events of a message that came by a syslog or the journal: those
// of the records in it, or one of its text.
func (s *source) plain(message []byte, c *carrier, severity int64, cut bool) {
	before := len(s.events)
	message = bytes.Trim(message, " \t\r\n")
	for line, rest := message, []byte(nil); line != nil; line = rest {
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, rest = line[:i], line[i+1:]
		} else {
			rest = nil
		}
		switch i := findRecord(line); {
		case i >= 0:
			s.records(line[i:], *c, cut && rest == nil)
		case len(line) > 0 && line[0] == '{':
			s.objects(line, *c, cut && rest == nil)
		case isGlog(line) && bytes.Contains(c.ident, runscName):
			s.glogLine(line, *c, cut && rest == nil)
		}
	}
	if len(s.events) > before {
		return
	}
	s.stats.Suppressed += suppressed(message)
	if c.time == 0 {
		return
	}
	e := s.event(Journal)
	e.Time, e.Program, e.Pid, e.Cut = c.time, c.ident, c.pid, cut
	e.Message = message[:min(len(message), MaxMessage)]
	if severity >= 0 {
		e.Level = severities[severity]
	}
}

// severities are syslog's, from emergency to debug.
var severities = [8][]byte{levels[5], levels[5], levels[5], levels[4], levels[3], levels[2], levels[2], levels[1]}

var runscName = []byte("runsc")

// suppressed returns how many messages a line of the journal's daemon, or of
// rsyslog's journal input, says are missing.
func suppressed(b []byte) int64 {
	if len(b) > 512 {
		return 0
	}
	if rest, ok := bytes.CutPrefix(b, []byte("Suppressed ")); ok && bytes.Contains(rest, []byte(" messages from ")) {
		n, _ := number(rest)
		return n
	}
	if i := bytes.Index(b, []byte(" messages lost due to rate-limiting")); i >= 0 {
		n, _ := number(b[bytes.LastIndexByte(b[:i], ' ')+1 : i])
		return n
	}
	return 0
}
