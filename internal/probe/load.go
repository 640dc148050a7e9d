package probe

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// HoldArgs returns the command that holds anonymous memory for a time, for a container
// with the probe. It writes to every page of the smallest size before the time begins.
// It exits 2 if it gets no memory.
func HoldArgs(bytes int64, d time.Duration) []string {
	return []string{Name, "hold", strconv.FormatInt(bytes, 10), seconds(d)}
}

// SpinArgs returns the command that uses a part of CPUs, at least a thousandth and up
// to 1 each, for a time. It works and sleeps in periods of 10 ms, or 100 ms under
// gVisor.
func SpinArgs(cpus float64, d time.Duration) []string {
	return []string{Name, "spin", strconv.FormatInt(int64(math.Round(cpus*1000)), 10), seconds(d)}
}

// seconds formats a duration for the probe: "12.345000000".
func seconds(d time.Duration) string {
	d = max(d, 0)
	return fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
}

// Held is the report of a probe that held memory.
type Held struct {
	Bytes  int64
	Filled time.Duration // time to write all pages
	Held   time.Duration // time from then until the memory was released
}

// Spun is the report of a probe that used CPUs, by its clocks.
type Spun struct {
	CPU, Wall time.Duration
}

// ParseHeld parses the output of HoldArgs. It skips lines of other programs. Both lines
// of the probe must be there once.
func ParseHeld(out string) (Held, error) {
	filled, err := report(out, "tare-hold/1 ", 2)
	if err != nil {
		return Held{}, err
	}
	held, err := report(out, "tare-held/1 ", 1)
	if err != nil {
		return Held{}, err
	}
	if filled[0] == 0 {
		return Held{}, errors.New("the probe reported that it held nothing")
	}
	return Held{Bytes: filled[0], Filled: time.Duration(filled[1]), Held: time.Duration(held[0])}, nil
}

// ParseSpun parses the output of SpinArgs, like ParseHeld.
func ParseSpun(out string) (Spun, error) {
	v, err := report(out, "tare-spun/1 ", 2)
	if err != nil {
		return Spun{}, err
	}
	return Spun{CPU: time.Duration(v[0]), Wall: time.Duration(v[1])}, nil
}

// report finds the line with a prefix and returns the n numbers after it.
func report(out, prefix string, n int) ([]int64, error) {
	var found []int64
	for line := range strings.Lines(out) {
		rest, ok := strings.CutPrefix(line, prefix)
		if !ok {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("the probe's output has more than one line %q", strings.TrimSpace(prefix))
		}
		// Lines of a container's log may end with CR LF, as on a terminal.
		rest, whole := strings.CutSuffix(rest, "\n")
		fields := strings.Split(strings.TrimSuffix(rest, "\r"), " ")
		if !whole || len(fields) != n {
			return nil, fmt.Errorf("the probe's line %q is truncated or has extra fields: %.80q", strings.TrimSpace(prefix), line)
		}
		for _, f := range fields {
			v, err := parseNumber(f)
			if err != nil {
				return nil, fmt.Errorf("the probe's line %q: %w", strings.TrimSpace(prefix), err)
			}
			found = append(found, v)
		}
	}
	if found == nil {
		return nil, missing(prefix)
	}
	return found, nil
}

func missing(prefix string) error {
	return fmt.Errorf("the probe's output has no line %q: it ended early, or its output was lost", strings.TrimSpace(prefix))
}

// parseNumber parses at most 18 decimal digits.
func parseNumber(s string) (int64, error) {
	if s == "" || len(s) > 18 || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("%.40q is not a number", s)
	}
	return strconv.ParseInt(s, 10, 64)
}
