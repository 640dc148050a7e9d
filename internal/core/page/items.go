package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Needed lists the targets' notes about requirements for running on this machine. It returns
// nil if there are none.
func Needed(targets []record.Target) *Section {
	items := TargetNotes(targets)
	if items == nil {
		return nil
	}
	return &Section{Title: "notes", Style: term.Bold, Part: Method, Lists: []List{{Items: items}}}
}

// FailureItems describes a failure: its count, the error, the command and the output.
func FailureItems(name, count string, f *record.Failure) []Item {
	if f == nil {
		return []Item{{Key: name, Text: count, Style: term.Red}}
	}
	text := Short(term.Clean(f.Detail), LongestMessage)
	if count != "" {
		text = count + "; the first: " + text
	}
	items := []Item{{Key: name, Text: text, Style: term.Red}}
	if f.Command != "" {
		items = append(items, Item{Text: f.Command, Code: true})
	}
	if output := strings.TrimSpace(f.Output); output != "" && !strings.Contains(f.Detail, output) {
		items = append(items, Item{Text: "output: " + Short(term.Clean(output), LongestMessage)})
	}
	return items
}

// Union appends the elements that are not in the list yet.
func Union[T comparable](list []T, more ...T) []T {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// MaxListed is the maximum number of files, versions or rounds in a line.
const MaxListed = 8

// Listed joins distinct names in order of first appearance and counts those above MaxListed.
func Listed(all []string) string {
	once, more := Union(nil, all...), ""
	if n := len(once) - MaxListed; n > 0 {
		once, more = once[:MaxListed], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(once, ", ") + more
}

// InBrackets returns a figure with its interval in brackets, given enough rounds for an
// interval.
func InBrackets(f *figure.Figure, show func(float64) string) Cell {
	c := Value(f, show)
	if e := f.Estimate; e.Bounded && c.Figure != nil {
		c.Tail = "[" + at(e, e.Lo, show) + ", " + at(e, e.Hi, show) + "]"
	}
	return c
}

// WithHalf returns a figure with the larger half of its interval, given enough rounds for an
// interval. An unknown figure is shown as unknown: [None] or [Dot].
func WithHalf(f *figure.Figure, show func(float64) string, unknown string) Cell {
	c := Value(f, show)
	switch {
	case c.Figure == nil:
		c.Head = unknown
	case f.Estimate.Bounded:
		c.Tail = HalfWidth(f.Estimate)
	}
	return c
}

// BytesOf returns an amount of memory. A negative amount is unknown.
func BytesOf(n int64) Cell {
	if n < 0 {
		return Words(None)
	}
	return Words(Size(float64(n)))
}
