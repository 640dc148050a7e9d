package storage

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
)

// fioUnits are the units of sizes in job files. k, kB and Ki are 1024, and KiB is 1000: the
// reverse of SI and IEC, for old scripts (fio(1), "kb_base"; fio 3.33 does so). Job files
// of tare cannot set kb_base. Units are case-insensitive.
var fioUnits = map[string]int64{
	"": 1, "b": 1,
	"k": 1 << 10, "kb": 1 << 10, "ki": 1 << 10, "kib": 1e3,
	"m": 1 << 20, "mb": 1 << 20, "mi": 1 << 20, "mib": 1e6,
	"g": 1 << 30, "gb": 1 << 30, "gi": 1 << 30, "gib": 1e9,
	"t": 1 << 40, "tb": 1 << 40, "ti": 1 << 40, "tib": 1e12,
}

// ParseFioSize parses a size of a job file in bytes, from 0 to 16T. It rejects percentages and
// ranges, since tare has to know how much space a job needs.
func ParseFioSize(s string) (int64, error) {
	n, unit, err := united(s, fioUnits)
	switch {
	case strings.HasSuffix(s, "%"):
		return 0, errors.New("the size of a percentage is unknown in advance: write a size such as 400M")
	case err == nil && n > MaxFile/unit:
		return 0, errors.New("it is above 16T")
	case err != nil:
		return 0, fmt.Errorf("%s is not one size: write digits and a unit, such as 400M, in powers of 1024; a plain number is bytes", option.Quote(s))
	}
	return n * unit, nil
}

// fioTimes are the units of fio's times; the default is seconds.
var fioTimes = map[string]time.Duration{
	"": time.Second, "s": time.Second, "ms": time.Millisecond, "msec": time.Millisecond, "us": time.Microsecond, "usec": time.Microsecond,
	"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// ParseFioTime parses a time of a job file, from 0 to [MaxRuntime].
func ParseFioTime(s string) (time.Duration, error) {
	n, unit, err := united(s, fioTimes)
	if err != nil || n > int64(MaxRuntime/unit) {
		return 0, fmt.Errorf("%s is not a time such as 60, 60s or 1500ms, up to %s", option.Quote(s), option.FormatDuration(MaxRuntime))
	}
	return time.Duration(n) * unit, nil
}

// united parses a whole number without a sign, followed by a unit.
func united[U int64 | time.Duration](s string, units map[string]U) (n int64, unit U, err error) {
	number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit, known := units[strings.ToLower(s[len(number):])]
	if !known || strings.Trim(number, "0123456789") != "" {
		return 0, 0, errors.New("it is not a number")
	}
	n, err = strconv.ParseInt(number, 10, 64)
	return n, unit, err
}
