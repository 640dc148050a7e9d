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

// ParseTime reads an RFC 3339 time with up to nine digits of fraction (those after
// the ninth are dropped) and returns it as ns since 1970. A zone may be written
// without its colon, as journalctl does. Times before 1970 or after 2261 are
// refused: no log is that old, and ns since 1970 end there.
func ParseTime(b []byte) (int64, bool) {
	ns, _, ok := parseStamp(b)
	return ns, ok
}

// parseStamp is ParseTime, and says how far east of UTC the writer's clock is.
func parseStamp(b []byte) (ns, zone int64, ok bool) {
	if len(b) < len("2006-01-02T15:04:05Z") || b[4] != '-' || b[7] != '-' || b[10] != 'T' {
		return 0, 0, false
	}
	year := digits2(b, 0)*100 + digits2(b, 2)
	month, dom := digits2(b, 5), digits2(b, 8)
	tod, n := timeOfDay(b[11:])
	if n == 0 || digits2(b, 0) < 0 || digits2(b, 2) < 0 ||
		year < 1970 || year > 2261 || month < 1 || month > 12 || dom < 1 || dom > daysIn(year, month) {
		return 0, 0, false
	}
	zone, ok = parseZone(b[11+n:])
	if !ok {
		return 0, 0, false
	}
	ns = daysSince1970(year, month, dom)*day + tod - zone
	return ns, zone, ns >= 0
}

// timeOfDay reads 15:04:05 and a fraction, and says how many bytes these are; 0
// where they are none.
func timeOfDay(b []byte) (ns int64, n int) {
	if len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0, 0
	}
	h, m, s := digits2(b, 0), digits2(b, 3), digits2(b, 6)
	if h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 59 {
		return 0, 0
	}
	ns = h*hour + m*minute + s*second
	if len(b) < 10 || b[8] != '.' || !isDigit(b[9]) {
		return ns, 8
	}
	unit := second / 10
	for n = 9; n < len(b) && isDigit(b[n]); n++ {
		ns += int64(b[n]-'0') * unit
		unit /= 10
	}
	return ns, n
}

// parseZone reads Z, ±15:04 or ±1504, and nothing behind it.
func parseZone(b []byte) (int64, bool) {
	if len(b) == 1 && b[0] == 'Z' {
		return 0, true
	}
	var h, m int64
	switch {
	case len(b) == 6 && b[3] == ':':
		h, m = digits2(b, 1), digits2(b, 4)
	case len(b) == 5:
		h, m = digits2(b, 1), digits2(b, 3)
	default:
		return 0, false
	}
	if h < 0 || h > 23 || m < 0 || m > 59 {
		return 0, false
	}
	zone := h*hour + m*minute
	switch b[0] {
	case '+':
		return zone, true
	case '-':
		return -zone, true
	}
	return 0, false
}

// digits2 returns the number of two digits, or less than -99 where there are none.
func digits2(b []byte, at int) int64 {
	if !isDigit(b[at]) || !isDigit(b[at+1]) {
		return -1 << 16
	}
	return int64(b[at]-'0')*10 + int64(b[at+1]-'0')
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

// daysSince1970 counts days in the proleptic Gregorian calendar, from the year
// that begins in March (H. Hinnant, "chrono-compatible low-level date algorithms").
func daysSince1970(year, month, dom int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := year / 400
	yoe := year - era*400
	doy := (153*(month-3)+2)/5 + dom - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
