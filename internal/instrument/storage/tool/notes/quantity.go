package notes

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// most is beyond every byte count and rate there is, and fits an int64.
const most = 1e18

// quantity is a number with a prefix such as "M" or "Mi", in units of one. An
// "i" means powers of 1024, whatever base says for the others.
func quantity(number, prefix string, base float64) (float64, bool) {
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	if strings.HasSuffix(prefix, "i") {
		base, prefix = 1024, prefix[:len(prefix)-1]
	}
	if prefix != "" {
		power := strings.Index("KMGTP", strings.ToUpper(prefix))
		if power < 0 || len(prefix) != 1 {
			return 0, false
		}
		v *= math.Pow(base, float64(power+1))
	}
	return v, v >= 0 && v < most
}

// sizeWord is how tools take sizes: "512k", "1G", "4KiB", "5GB", "4096".
var sizeWord = regexp.MustCompile(`^(\d{1,15}(?:\.\d{1,6})?)([KkMmGgTtPp]?)(i?)([Bb]?)$`)

// size reads one as the tool does: dd's "MB" is of 1000, all others of 1024.
func size(text string, tool string) (int64, bool) {
	m := sizeWord.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	base := 1024.0
	if tool == "dd" && m[2] != "" && m[3] == "" && m[4] == "B" {
		base = 1000
	}
	v, ok := quantity(m[1], m[2], base)
	return int64(v), ok
}

// whole reads a count.
func whole(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0
	}
	return n
}
