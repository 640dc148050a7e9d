package storage

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
)

// MaxFile is the largest file of ext4, in bytes.
const MaxFile = 16 << 40

// fileUnits are those of fio with its default kb_base=1024.
var fileUnits = map[string]int64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// parseSize reads bytes as fio does: "512k", "1G", "4096". The units are powers
// of 1024, in either case. fio's KiB and MiB are powers of 1000, which nobody
// expects, so those are refused.
func parseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "kKmMgGtT")
	unit, known := fileUnits[strings.ToUpper(s[len(number):])]
	if len(number) == len(s) {
		unit, known = 1, true
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !known || strings.Trim(number, "0123456789") != "" || n < 1 || n > MaxFile/unit {
		return 0, fmt.Errorf("%s is not a size: write it as fio does, in powers of 1024, such as 4k, 512k or 1G, up to 16T; a number alone is bytes", option.Quote(s))
	}
	return n * unit, nil
}

// Size is the kind of sizes.
var Size = option.Written(parseSize, FormatSize, option.Schema{
	"anyOf": []option.Schema{{"type": "integer", "minimum": 1, "maximum": MaxFile}, {"type": "string", "pattern": "^[0-9]+[kKmMgGtT]?$"}},
})

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
