package plan

import (
	"strings"
	"testing"
	"time"
)

// What each is to fio 3.33 was seen from the files that it made.
func TestSizesAreToTareWhatTheyAreToFio(t *testing.T) {
	for s, want := range map[string]int64{
		"4096": 4096, "4096b": 4096, "4096B": 4096, "400k": 409600, "400K": 409600, "400kb": 409600, "400KB": 409600, "400KiB": 400000, "400kib": 400000,
		"1m": 1 << 20, "1mb": 1 << 20, "1Mi": 1 << 20, "400MiB": 400e6, "8kIb": 8000, "2G": 2 << 30, "1gib": 1e9, "3t": 3 << 40, "1TiB": 1e12, "010k": 10 << 10, "0": 0,
	} {
		if got, err := ParseFioSize(s); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", s, got, err, want)
		}
	}
	for s, why := range map[string]string{
		"80%": "a percentage", "4k-8k": "not one size", "1m,2m": "not one size", "": "not one size", "k": "not one size", "1.5M": "not one size", "-1": "not one size",
		"0x1000": "not one size", "1z": "not one size", "1e6": "not one size", "1bk": "not one size", "+4k": "not one size", "17T": "above 16T",
		"99999999999999999999": "not one size",
	} {
		if got, err := ParseFioSize(s); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s is %d, %v; want %q", s, got, err, why)
		}
	}
}

func TestTimesAreToTareWhatTheyAreToFio(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"60": time.Minute, "60s": time.Minute, "1500ms": 1500 * time.Millisecond, "300msec": 300 * time.Millisecond, "5m": 5 * time.Minute, "5M": 5 * time.Minute,
		"7us": 7 * time.Microsecond, "7usec": 7 * time.Microsecond, "2h": 2 * time.Hour, "1d": 24 * time.Hour, "010": 10 * time.Second, "0": 0,
	} {
		if got, err := ParseFioTime(s); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "s", "1:30", "1h30m", "forever", "-1", "1.5", "1000d", "60%"} {
		if got, err := ParseFioTime(s); err == nil || !strings.Contains(err.Error(), "is no time such as 60") {
			t.Errorf("%s is %v, %v", s, got, err)
		}
	}
}
