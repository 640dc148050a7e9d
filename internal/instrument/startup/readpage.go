package startup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// logsRead returns the section about the logs that were read and their unusable lines.
func logsRead(v *Judgement) *page.Section {
	l := v.Logs
	if l == nil {
		return nil
	}
	s := &page.Section{Title: "what was read", Style: term.Bold}
	var files []string
	for _, file := range l.Files {
		files = append(files, page.Cut(file, 2*page.LongestName))
	}
	if files == nil {
		files = []string{"nothing"}
	}
	items := []page.Item{
		{Key: "files", Text: page.Listed(files)},
		{Key: "lines", Text: fmt.Sprintf("%d, %s, %s", l.Lines, page.Size(float64(l.Bytes)), page.Amount(l.Events, "event"))},
	}
	if forms := formsOf(l); forms != "" {
		items = append(items, page.Item{Key: "forms", Text: forms})
	}
	for _, one := range []struct {
		key   string
		count int64
		means string
	}{
		{"suppressed", l.Suppressed, "messages dropped by the journal"},
		{"cut", l.Cut, "truncated lines"},
		{"too long", l.Long, "overlong lines"},
		{"unreadable", l.Unreadable, "lines of unknown form"},
		{"backward", l.Backward, "lines older than the previous one"},
		{"unplaced", l.Unplaced, "events that belong to no start"},
		{"dropped", l.Dropped, "starts emitted early because too many were open"},
	} {
		if one.count == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %d", one.means, one.count)
		if one.key == "unreadable" && l.First != "" {
			text += "; the first: " + page.Cut(l.First, longestEvent)
		}
		items = append(items, page.Item{Key: one.key, Text: text, Style: term.Yellow})
	}
	s.Lists = []page.List{{Items: items}}
	return s
}

// formsOf lists the forms of the lines, most frequent first.
func formsOf(l *record.Logs) string {
	names := slices.SortedFunc(maps.Keys(l.Forms), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.Forms[b], l.Forms[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, name := range names {
		if i == page.MaxListed {
			parts = append(parts, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", page.Heading(page.Known(name)), l.Forms[name]))
	}
	return strings.Join(parts, ", ")
}

// guests returns the section with the clock offsets of guests.
func guests(v *Judgement) *page.Section {
	var items []page.Item
	for i := range v.Targets {
		clocks := v.Targets[i].Guests
		for j, g := range clocks {
			if j == page.MaxListed {
				items = append(items, page.Item{Text: fmt.Sprintf("and %d more", len(clocks)-j)})
				break
			}
			items = append(items, page.Item{Key: "guest of " + page.Cut(page.Known(g.Name), page.LongestName), Text: clockOf(&g)})
		}
	}
	if items == nil {
		return nil
	}
	return &page.Section{Title: "clocks of guests", Style: term.Bold, Lists: []page.List{{Items: items}},
		Notes: []string{"add these to the guest's times; they are derived from events logged on both sides, not from the clocks"}}
}

// clockOf formats an offset with its bounds.
func clockOf(g *record.GuestClock) string {
	bound := ", upper bound (no lower bound)"
	if g.Uncertainty >= 0 {
		bound = ", at most " + page.Duration(float64(g.Uncertainty)) + " less"
	}
	return fmt.Sprintf("%+.3f s", float64(g.Offset)/1e9) + bound + ", " + page.Amount(g.Pairs, "pair")
}
