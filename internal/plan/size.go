package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseSize reads bytes as fio does: "512k", "1G", "4096". The units are powers
// of 1024, in either case. fio's KiB and MiB are powers of 1000, which nobody
// expects, so those are refused.
func ParseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "kKmMgGtT")
	unit, known := fileUnits[strings.ToUpper(s[len(number):])]
	if len(number) == len(s) {
		unit, known = 1, true
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !known || strings.Trim(number, "0123456789") != "" || n < 1 || n > MaxFile/unit {
		return 0, fmt.Errorf("%s is not a size: write it as fio does, in powers of 1024, such as 4k, 512k or 1G, up to 16T; a number alone is bytes", quote(s))
	}
	return n * unit, nil
}

// ParseBlockSizes reads sizes of a job's blocks such as "512k,4k".
func ParseBlockSizes(s string) ([]int64, error) {
	var all []int64
	for word := range strings.SplitSeq(s, ",") {
		bs, err := ParseSize(strings.TrimSpace(word))
		if err == nil {
			err = blockError(bs)
		}
		if err != nil {
			return nil, err
		}
		for _, before := range all {
			if before == bs {
				return nil, fmt.Errorf("%s is there twice: each size of block is measured once", FormatSize(bs))
			}
		}
		all = append(all, bs)
	}
	return all, nil
}

// FormatSize writes bytes as fio does, in the largest unit that divides them:
// "512k", "1G", "1000".
func FormatSize(bytes int64) string {
	units := "kMGT"
	n, unit := bytes, ""
	for len(units) > 0 && n != 0 && n%1024 == 0 {
		n, unit, units = n/1024, units[:1], units[1:]
	}
	return strconv.FormatInt(n, 10) + unit
}

// ParseScale reads "0.01" or "1%": what sizes, counts and times are multiplied by.
func ParseScale(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	scale, ok := parseCPUs(strings.TrimSpace(number))
	if percent {
		scale /= 100
	}
	if !ok || !validScale(scale) {
		return 0, fmt.Errorf("%s is not a scale: write one from %s to %d, such as 0.01 or 1%%", quote(s), minScaleText, MaxScale)
	}
	return scale, nil
}

// validScale takes 0, which is as 1. NaN is none.
func validScale(scale float64) bool {
	return scale == 0 || (scale >= MinScale && scale <= MaxScale)
}
