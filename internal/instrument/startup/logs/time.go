package logs

import (
	"math"
	"time"
)

const (
	second = int64(time.Second)
	hour   = int64(time.Hour)
	day    = 24 * hour
)

// maxSeconds is in the year 2262, the end of ns since 1970. Later times are invalid.
const maxSeconds = 9_214_646_400

// parseStamp parses an RFC 3339 time. It returns ns since 1970 and the writer's offset
// east of UTC. The zone may lack its colon, as in journalctl's output. A blank may
// replace the T, as in CRI-O up to 1.31. Times before 1970 or after 2261 are rejected.
func parseStamp(b []byte) (ns, zone int64, ok bool) {
	if len(b) < len("2006-01-02T15:04:05Z") || len(b) > 63 || b[10] != 'T' && b[10] != ' ' {
		return 0, 0, false
	}
	var room [64]byte
	text := append(room[:0], b...)
	text[10] = 'T'
	if n := len(b) - 5; b[n] == '+' || b[n] == '-' {
		text = append(append(text[:n+3], ':'), b[n+3:]...)
	}
	var t time.Time
	if t.UnmarshalText(text) != nil || t.Year() < 1969 || t.Unix() < 0 || t.Unix() >= maxSeconds {
		return 0, 0, false
	}
	_, east := t.Zone()
	return t.UnixNano(), int64(east) * second, true
}

// timeOfDay parses 15:04:05 with a fraction as ns since midnight.
func timeOfDay(b []byte) (ns int64, ok bool) {
	t, err := time.Parse(time.TimeOnly, string(b))
	return sinceMidnight(t), err == nil
}

func sinceMidnight(t time.Time) int64 { return int64(t.Sub(t.Truncate(24 * time.Hour))) }

func isDigit(c byte) bool { return c-'0' < 10 }

// number parses leading digits. ok is false if there are none or the number is too
// large.
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

// pidOf parses a pid. It returns 0 for invalid input.
func pidOf(b []byte) int {
	if n, ok := number(b); ok && n < 1<<31 {
		return int(n)
	}
	return 0
}

// micros converts µs since 1970 to ns. It returns 0 for invalid input.
func micros(b []byte) int64 {
	if us, ok := number(b); ok && us < maxSeconds*1_000_000 {
		return us * 1000
	}
	return 0
}
