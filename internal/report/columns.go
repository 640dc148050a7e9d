package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// tenths writes a figure with a tenth below 100 and without above it, so that
// figures of one table line up; nothing is minus zero.
func tenths(v float64) string {
	decimals := 0
	switch {
	case !finite(v):
		return "?"
	case math.Abs(v) < 0.05:
		return "0.0"
	case math.Abs(v) < 99.95:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

func mib[N int64 | float64](bytes N) string { return tenths(float64(bytes) / (1 << 20)) }

func milli(cpus float64) string { return tenths(1000 * cpus) }

// someMiB is mib, with a dot for exactly nothing.
func someMiB(bytes int64) cell {
	if bytes == 0 {
		return plain(dot)
	}
	return plain(mib(bytes))
}

// signed has a sign on both sides of zero, and none at it.
func signed(v float64, show func(float64) string) string {
	text := show(v)
	if v > 0 && text != "0.0" && text[0] != '+' {
		return "+" + text
	}
	return text
}

// difference is what is off, and by how much of the truth where that is at
// least so much: in percent of next to nothing everything is off.
func difference(found, truth, least float64, show func(float64) string) cell {
	c := plain(signed(found-truth, show))
	if truth >= least && finite(found) {
		c.tail = percent(100 * (found - truth) / truth)
	}
	return c
}

func percent(v float64) string {
	switch {
	case !finite(v):
		return "?"
	case math.Abs(v) < 0.005:
		return "0.0 %"
	case math.Abs(v) < 0.995:
		return fmt.Sprintf("%+.2f %%", v)
	case math.Abs(v) >= 99.95:
		return fmt.Sprintf("%+.0f %%", v)
	}
	return fmt.Sprintf("%+.1f %%", v)
}

// within is the tail of a figure that several rounds agree on.
func within(i judge.Interval) string {
	if !i.Known {
		return ""
	}
	return halfWidth(i)
}

// between is the tail of a figure with an interval.
func between(lo, hi float64, known bool, show func(float64) string) string {
	if !known {
		return ""
	}
	return show(lo) + "…" + show(hi)
}

// middle cuts a text to n characters in its middle: of a cgroup's path both
// ends tell.
func middle(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	head := (n - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}

// add appends the sections that there are.
func (p *page) add(sections ...*section) {
	for _, s := range sections {
		if s != nil {
			p.sections = append(p.sections, *s)
		}
	}
}

// needed is what it took to make a target work here.
func needed(targets []record.Target) *section {
	items := notes(targets)
	if items == nil {
		return nil
	}
	return &section{title: "notes", style: term.Bold, lists: []list{{items: items}}}
}

func sandboxesOf(n int) string {
	if n == 1 {
		return "1 sandbox"
	}
	return fmt.Sprintf("%d sandboxes", n)
}

func limits(l subject.Limits) string {
	var parts []string
	if l.CPU > 0 {
		parts = append(parts, strconv.FormatFloat(l.CPU, 'g', -1, 64)+" CPU")
	}
	if l.Memory > 0 {
		parts = append(parts, "memory "+size(float64(l.Memory)))
	}
	if l.Pids > 0 {
		parts = append(parts, fmt.Sprintf("%d tasks", l.Pids))
	}
	if l.CPUShares > 0 {
		parts = append(parts, fmt.Sprintf("%d CPU shares", l.CPUShares))
	}
	if parts == nil {
		return "no limits"
	}
	return "limits: " + strings.Join(parts, ", ")
}

// dot stands in a table where a target has nothing.
const dot = "·"
