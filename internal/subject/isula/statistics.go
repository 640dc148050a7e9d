package isula

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// parseUsage parses the output of `isula stats`. It has memory to a hundredth of its unit. Its
// CPU is in percent and always 0 with --no-stream, so it is ignored.
func parseUsage(out []byte, of []engine.State, used map[string]engine.Usage) {
	shown := parseStats(string(out))
	for _, s := range of {
		if memory, is := shown[s.ID[:min(len(s.ID), shortID)]]; is {
			used[s.ID] = engine.Usage{Memory: memory, CPU: -1}
		}
	}
}

// shortID is the length of ids that isula prints.
const shortID = 12

var (
	// escape matches a terminal's control sequences, which isula prints whatever its output is.
	escape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`) })
	// row is "2e66b5e77a95     0.00       1.67 MiB / 23.58 GiB       0.01 …".
	row = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([0-9a-f]{12}) +\d+\.\d\d +(\d+\.\d\d) (B|KiB|MiB|GiB) / \d+\.\d\d (?:B|KiB|MiB|GiB) +\d+\.\d\d `)
	})
	// units are those of isula_size_humanize in iSulad's src/cmd/isula/extend/stats.c.
	units = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// parseStats returns the memory in bytes by short id from `isula stats --no-stream`; -1 for a
// value of 0. Other lines are skipped.
func parseStats(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(escape().ReplaceAllString(text, "")) {
		m := row().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil || n > 1<<32 {
			continue
		}
		if out[m[1]] = int64(n*units[m[3]] + 0.5); n == 0 {
			out[m[1]] = -1
		}
	}
	return out
}
