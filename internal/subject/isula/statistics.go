package isula

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/record"
)

// asking is how long iSulad may take to tell of all containers.
const asking = 30 * time.Second

// Statistics implements subject.Reporter. The command shows memory to a hundredth
// of its unit, and CPU in percent only, which with --no-stream is always 0: that
// is not taken.
func (s *session) Statistics(ctx context.Context) ([]record.Statistic, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	lanes, states, err := s.Occupied(ctx)
	if err != nil {
		return nil, err
	}
	shown := map[string]int64{}
	for some := range slices.Chunk(states, atOnce) {
		rest := []string{"--no-stream"}
		for _, c := range some {
			rest = append(rest, c.Name)
		}
		out, err := s.target.isula.Run(ctx, s.target.verb("stats", rest...)...)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", s.target.name, err)
		}
		for id, memory := range parseStats(string(out)) {
			shown[id] = memory
		}
	}
	out := make([]record.Statistic, len(states))
	for i, c := range states {
		memory, is := shown[c.ID[:min(len(c.ID), shortID)]]
		if !is {
			return nil, fmt.Errorf("target %s: isula stats says nothing of the container %s", s.target.name, c.ID)
		}
		out[i] = record.Statistic{Lane: lanes[i], Source: "isula stats", Memory: memory, CPU: -1}
	}
	return out, nil
}

// shortID is how much of an id isula shows.
const shortID = 12

var (
	// escape is a control sequence of a terminal: the command clears it and
	// sets the header off, whatever its output is.
	escape = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)
	// row is "2e66b5e77a95     0.00       1.67 MiB / 23.58 GiB       0.01 …".
	row = regexp.MustCompile(`^([0-9a-f]{12}) +\d+\.\d\d +(\d+\.\d\d) (B|KiB|MiB|GiB) / \d+\.\d\d (?:B|KiB|MiB|GiB) +\d+\.\d\d `)
	// units are those of isula_size_humanize in
	// iSulad's src/cmd/isula/extend/stats.c.
	units = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// parseStats reads what `isula stats --no-stream` prints: the memory in bytes of
// containers by their short id, -1 for one that it says uses none. What has
// another form is passed over.
func parseStats(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(escape.ReplaceAllString(text, "")) {
		m := row.FindStringSubmatch(line)
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
