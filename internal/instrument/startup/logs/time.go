package logs

import (
	"math"
	"time"
)

const (
	second = int64(time.Second)
	minute = int64(time.Minute)
	hour   = int64(time.Hour)
	day    = 24 * hour
)

// maxSeconds is the year 2262, where ns since 1970 end: what lies behind is no time.
const maxSeconds = 9_214_646_400

// ParseTime reads an RFC 3339 time with up to nine digits of fraction (those after
// the ninth are dropped) and returns it as ns since 1970. A zone may be written
// without its colon, as journalctl does, and a blank may stand for the T, as CRI-O up to
// 1.31 writes it. Times before 1970 or after 2261 are
// refused.
func ParseTime(b []byte) (int64, bool) {
	ns, _, ok := parseStamp(b)
	return ns, ok
}

// parseStamp is ParseTime, and says how far east of UTC the writer's clock is.
func parseStamp(b []byte) (ns, zone int64, ok bool) {
	if len(b) < len("2006-01-02T15:04:05Z") || len(b) > 64 || b[10] != 'T' && b[10] != ' ' {
		return 0, 0, false
	}
	if b[10] == ' ' {
		var room [64]byte
		b = room[:copy(room[:], b)]
		b[10] = 'T'
	}
	var t time.Time
	if n := len(b); b[n-1] == 'Z' || b[n-3] == ':' {
		if t.UnmarshalText(b) != nil {
			return 0, 0, false
		}
	} else if t, ok = parse("2006-01-02T15:04:05Z0700", b); !ok {
		return 0, 0, false
	}
	_, east := t.Zone()
	return t.UnixNano(), int64(east) * second, t.Unix() >= 0 && t.Unix() < maxSeconds
}

// parse reads a time, which may have a fraction, by one of time's layouts.
func parse(layout string, b []byte) (time.Time, bool) {
	if len(b) > 64 {
		return time.Time{}, false
	}
	t, err := time.Parse(layout, string(b))
	return t, err == nil
}

// timeOfDay reads 15:04:05 and a fraction as ns since midnight.
func timeOfDay(b []byte) (ns int64, ok bool) {
	t, ok := parse(time.TimeOnly, b)
	return sinceMidnight(t), ok
}

func sinceMidnight(t time.Time) int64 {
	return int64(t.Hour())*hour + int64(t.Minute())*minute + int64(t.Second())*second + int64(t.Nanosecond())
}

func isDigit(c byte) bool { return c-'0' < 10 }

// number reads digits up to the first byte that is none; ok where there is one
// and they fit.
func number(b []byte) (n int64, ok bool) {
	for i, c := range b {
		if !isDigit(c) {
			return n, i > 0
		}
		d := int64(c - '0')
		if n > (math.MaxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(b) > 0
}

// pidOf reads the number of a process, 0 where it is none.
func pidOf(b []byte) int {
	if n, ok := number(b); ok && n < 1<<31 {
		return int(n)
	}
	return 0
}

// micros reads µs since 1970 as ns, 0 where they are none.
func micros(b []byte) int64 {
	if us, ok := number(b); ok && us < maxSeconds*1_000_000 {
		return us * 1000
	}
	return 0
}
