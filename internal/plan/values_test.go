package plan

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPrecisionIsReadAsPeopleWriteIt(t *testing.T) {
	for text, want := range map[string]float64{"5%": 0.05, " 5 % ": 0.05, "0.05": 0.05, "0.5%": 0.005, "99.9%": 0.999, "1e-3": 0.001} {
		if got, err := ParsePrecision(text); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "%", "0", "0%", "1", "100%", "5", "-5%", "NaN", "Inf", "NaN%", "five", "5%%"} {
		if got, err := ParsePrecision(text); err == nil || !strings.Contains(err.Error(), "5% or 0.05") {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

func TestLanesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string][]int{"1": {1}, "1,10,100": {1, 10, 100}, " 1000 , 1 ": {1000, 1}} {
		if got, err := ParseLanes(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":      "is not a list of lanes: write whole numbers",
		"1,":    "is not a list of lanes",
		"1;2":   "is not a list of lanes",
		"1.5":   "is not a list of lanes",
		"0":     "0 is not a number of lanes: from 1 to 1000",
		"1,-1":  "-1 is not a number of lanes",
		"1001":  "1001 is not a number of lanes",
		"5,1,5": "5 is there twice",
	} {
		if got, err := ParseLanes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

func TestMemoryIsReadAsKubernetesWritesIt(t *testing.T) {
	for text, want := range map[string]int64{
		"536870912": 512 << 20, "512Mi": 512 << 20, "512MiB": 512 << 20, "512 MiB": 512 << 20, "512M": 512e6, "512MB": 512e6,
		"1Ki": 1 << 10, "1k": 1e3, "1K": 1e3, "2GiB": 2 << 30, "2G": 2e9, "1Ti": 1 << 40, "7B": 7, "9223372036854775807": math.MaxInt64,
	} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Mi", "-1", "1.5Gi", "512mi", "512 Mi B", "9223372036854775808", "8388608Ti", "many"} {
		if got, err := ParseMemory(text); err == nil || !strings.Contains(err.Error(), "512Mi") {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

func TestDurationsAreWrittenWithoutZeroParts(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "60ms": 60 * time.Millisecond, "30s": 30 * time.Second, "1m": time.Minute, "1m30s": 90 * time.Second,
		"10m": 10 * time.Minute, "1h": time.Hour, "10h": 10 * time.Hour, "1h30m": 90 * time.Minute, "1h0m5s": time.Hour + 5*time.Second, "20m10s": 1210 * time.Second,
	} {
		got := formatDuration(d)
		if back, err := parseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%v is written %q and read back as %v, %v", d, got, back, err)
		}
	}
}
