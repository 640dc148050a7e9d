package isula

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// parseUsage adds what `isula stats` printed of some containers. It shows memory to a
// hundredth of its unit, and CPU in percent only, which with --no-stream is always 0:
// that is not taken.
func parseUsage(out []byte, of []engine.State, told map[string]engine.Usage) {
	shown := parseStats(string(out))
	for _, s := range of {
		if memory, is := shown[s.ID[:min(len(s.ID), shortID)]]; is {
			told[s.ID] = engine.Usage{Memory: memory, CPU: -1}
		}
	}
}

// shortID is how much of an id isula shows.
const shortID = 12

var (
	// escape is a control sequence of a terminal: the command clears it and
	// sets the header off, whatever its output is.
	escape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`) })
	// row is "2e66b5e77a95     0.00       1.67 MiB / 23.58 GiB       0.01 …".
	row = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([0-9a-f]{12}) +\d+\.\d\d +(\d+\.\d\d) (B|KiB|MiB|GiB) / \d+\.\d\d (?:B|KiB|MiB|GiB) +\d+\.\d\d `)
	})
	// units are those of isula_size_humanize in
	// iSulad's src/cmd/isula/extend/stats.c.
	units = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// parseStats reads what `isula stats --no-stream` prints: the memory in bytes of
// containers by their short id, -1 for one that it says uses none. What has
// another form is passed over.
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
