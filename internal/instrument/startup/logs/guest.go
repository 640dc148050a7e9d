package logs

import "bytes"

// guestText adds the events of guest output that a host program logged: records of the
// agent, or console lines.
//
// A proxy logs one or a few lines at once. All lines after the first maxCarried count
// as one line.
func (s *source) guestText(b []byte, c carrier, cut bool) {
	for range maxCarried {
		line, rest, _ := bytes.Cut(b, newline)
		rest = bytes.TrimLeft(rest, " \t\r\n")
		s.guestLine(bytes.TrimSpace(line), c, cut && len(rest) == 0)
		if len(rest) == 0 {
			return
		}
		b = rest
	}
	s.guestLine(b, c, cut)
}

const maxCarried = 64

var newline = []byte("\n")

func (s *source) guestLine(b []byte, c carrier, cut bool) {
	before := len(s.events)
	if len(b) > 0 && b[0] == '{' {
		f := fields{arena: &s.arena, journal: bytes.Contains(b, entryKey)}
		if _, ok := f.object(b); ok && !f.journal {
			f.cut = f.cut || cut
			s.record(&f, &c)
		}
	} else if i := findRecord(b); i >= 0 {
		s.records(b[i:], c, cut)
	}
	if len(s.events) > before {
		return
	}
	e := s.event(Console)
	e.Guest, e.Arrived, e.Sandbox, e.Cut = true, c.time, c.sandbox, cut
	if uptime, n := kernelStamp(b); n > 0 {
		e.Uptime, e.Program = uptime, kernelName
		b = b[n:]
	}
	e.Message = b[:min(len(b), maxMessage)]
}

var kernelName = []byte("kernel")

// kernelStamp parses a kernel time such as "[    3.065807] ". It returns the length,
// or 0 if there is none.
func kernelStamp(b []byte) (ns int64, n int) {
	end := bytes.IndexByte(b[:min(len(b), 32)], ']')
	if end < 0 || b[0] != '[' {
		return 0, 0
	}
	digits := bytes.TrimLeft(b[1:end], " ")
	seconds, fraction, ok := bytes.Cut(digits, []byte("."))
	up, whole := number(seconds)
	if !ok || !whole || up > 1<<31 || len(bytes.Trim(digits, "0123456789.")) > 0 {
		return 0, 0
	}
	nanos := [9]byte([]byte("000000000"))
	copy(nanos[:], fraction)
	below, _ := number(nanos[:])
	return up*second + below, len(b) - len(bytes.TrimLeft(b[end+1:], " "))
}
