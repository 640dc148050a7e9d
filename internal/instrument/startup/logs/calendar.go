package logs

import (
	"bytes"
	"cmp"
	"math"
	"time"
)

// now returns the year if neither the lines nor the file have one.
var now = time.Now

// calendar supplies the year and the zone of times that lack them. They come from the
// file and from the caller.
type calendar struct {
	anchor int64 // a time with a year, ns since 1970; 0: unknown
	zone   int64 // offset of the local clock east of UTC, ns
}

// learn records a time with a year and its zone.
func (s *source) learn(ns, zone int64) {
	if s.own.anchor == 0 && zone != 0 {
		s.own.zone = zone
	}
	s.own.anchor = ns
}

// near returns the time to which a time without a year is assumed to be close.
func (s *source) near() int64 { return cmp.Or(s.last, s.own.anchor) }

// foresee searches the first block of a source for a year and a zone. The first lines
// may have neither.
func (s *source) foresee(b []byte) {
	for _, timer := range []string{" (unix nanos: ", " boot: time "} {
		if i := bytes.Index(b, []byte(timer)); i >= 0 {
			s.learnTimer(lineAround(b, i))
			break
		}
	}
	for at := 0; at < len(b); {
		i := findRecord(b[at:])
		if i < 0 {
			break
		}
		at += i
		if ns, zone, ok := stampIn(b[at+len(timeKey):]); ok {
			s.learn(ns, zone)
			line := lineAround(b, at)
			_, from := priority(line)
			if t, n := stampOf(line[from:]); n > 0 && !t.local.IsZero() { // the line has its time twice
				s.setZone(sinceMidnight(t.local), ns)
			}
			break
		}
		at += len(timeKey)
	}
	for _, key := range []string{`"ts":"`, `"time":"`} {
		if i := bytes.Index(b, []byte(key)); i >= 0 {
			if ns, zone, ok := stampIn(b[i+len(key):]); ok {
				s.learn(ns, zone)
			}
		}
	}
	if _, us, _ := bytes.Cut(b, []byte("__REALTIME_TIMESTAMP")); micros(bytes.TrimLeft(us, "\" :=")) > 0 {
		s.learn(micros(bytes.TrimLeft(us, "\" :=")), 0)
	}
}

// lineAround returns the line of a block that contains offset at.
func lineAround(b []byte, at int) []byte {
	from := bytes.LastIndexByte(b[:at], '\n') + 1
	line, _, _ := bytes.Cut(b[from:], newline)
	return line
}

// stampIn parses a time at the beginning of b, quoted or not.
func stampIn(b []byte) (ns, zone int64, ok bool) {
	isQuoted := len(b) > 0 && b[0] == '"'
	if isQuoted {
		b = b[1:]
	}
	for end, c := range b[:min(len(b), 40)] {
		if c == '"' || c == '\\' || c == '\n' || c == ' ' && !isQuoted {
			return parseStamp(b[:end])
		}
	}
	return 0, 0, false
}

// learnTimer takes the year and the zone from a timer line of runsc: "Timer for runsc
// boot: … reached midpoint … at 02:27:17.291776717 (unix nanos: 1795228037291776717)"
// or "Timer for runsc boot: time 1795228037285925060 02:27:17.285925060 …".
func (s *source) learnTimer(b []byte) {
	var nanos, clock []byte
	if before, after, ok := bytes.Cut(b, []byte(" (unix nanos: ")); ok {
		nanos, clock = after, before[bytes.LastIndexByte(before, ' ')+1:]
	} else {
		_, after, _ := bytes.Cut(b, []byte(": time "))
		nanos, clock, _ = bytes.Cut(after, blank)
		clock, _, _ = bytes.Cut(clock, blank)
	}
	tod, isTime := timeOfDay(clock)
	if ns, ok := number(nanos); ok && isTime {
		s.own.anchor = ns
		s.setZone(tod, ns)
	}
}

// setZone sets the zone to the difference between a local time of day and UTC at the
// same moment. It rounds to quarters of an hour, from -12:00 to +14:00.
func (s *source) setZone(tod, ns int64) {
	zone := tod - ns%day
	if zone > 14*hour {
		zone -= day
	}
	if zone < -12*hour {
		zone += day
	}
	s.own.zone = int64(time.Duration(zone).Round(15 * time.Minute))
}

// when returns the moment of a prefix. A missing year is the one closest to the last
// line or to another known time. A time in whole seconds within a second of the last
// line becomes the time of the last line. This keeps the order of lines from a syslog
// that truncates times to seconds.
func (s *source) when(t stamp) int64 {
	ns := t.ns
	if !t.local.IsZero() {
		ns = s.closest(t.local)
	} else if ns == 0 {
		return s.last
	}
	if t.coarse && s.last-ns >= 0 && s.last-ns < second {
		return s.last
	}
	return ns
}

func (s *source) closest(t time.Time) int64 {
	near, latest := s.near(), int64(math.MaxInt64)
	if near == 0 {
		near = s.date
		latest = near + day // lines have no time in the future
	}
	year, best := time.Unix(0, near+s.own.zone).UTC().Year(), int64(0)
	for y := year - 1; y <= year+1; y++ {
		day := t.AddDate(y, 0, 0)
		ns := day.UnixNano() - s.own.zone
		if y < 1971 || y > 2260 || ns > latest || day.Day() != t.Day() { // no 29 February
			continue
		}
		if best == 0 || distance(ns, near) < distance(best, near) {
			best = ns
		}
	}
	return cmp.Or(best, s.last)
}

// sameDay returns the moment with this time of day that is closest to the last line.
func (s *source) sameDay(tod int64) int64 {
	near, zone := cmp.Or(s.near(), s.date), s.own.zone
	local := near + zone
	ns := local - local%day + tod - zone
	switch {
	case ns-near > day/2:
		return ns - day
	case near-ns > day/2:
		return ns + day
	}
	return ns
}

func distance(a, b int64) int64 { return max(a-b, b-a) }
