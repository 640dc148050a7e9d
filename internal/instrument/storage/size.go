package storage

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
)

// MaxFile is the size of the largest file of ext4, in bytes.
const MaxFile = 16 << 40

// parseSize parses bytes as fio does: "512k", "1G", "4096". Units are powers of 1024 and
// case-insensitive. KiB and MiB are powers of 1000 in fio, which is unexpected, so these
// and kB are rejected.
func parseSize(s string) (int64, error) {
	n, err := ParseFioSize(s)
	if err != nil || n < 1 || strings.Trim(s, "0123456789kKmMgGtT") != "" {
		return 0, fmt.Errorf("%s is not a size: write it as fio does, in powers of 1024, such as 4k, 512k or 1G, up to 16T; a plain number is bytes", option.Quote(s))
	}
	return n, nil
}

// Size is the option kind of sizes.
var Size = option.Written(parseSize, FormatSize, option.Schema{
	"anyOf": []option.Schema{{"type": "integer", "minimum": 1, "maximum": MaxFile}, {"type": "string", "pattern": "^[0-9]+[kKmMgGtT]?$"}},
})

// FormatSize formats bytes as fio does, in the largest unit that divides them: "512k", "1G",
// "1000".
func FormatSize(bytes int64) string {
	units := "kMGT"
	n, unit := bytes, ""
	for len(units) > 0 && n != 0 && n%1024 == 0 {
		n, unit, units = n/1024, units[:1], units[1:]
	}
	return strconv.FormatInt(n, 10) + unit
}
