package document

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// mistrust merges the findings of all measures and lists the measures of each.
func mistrust(measures []measure) *page.Section {
	s := &page.Section{Title: "what to mistrust", Style: term.Bold}
	type found struct {
		items []page.Item
		of    []string
	}
	var all []found
	for i := range measures {
		for _, one := range measures[i].mistrust {
			for _, items := range grouped(one.Lists) {
				at := slices.IndexFunc(all, func(f found) bool { return slices.Equal(f.items, items) })
				if at < 0 {
					at, all = len(all), append(all, found{items: items})
				}
				all[at].of = page.Union(all[at].of, measures[i].name)
			}
		}
	}
	for _, f := range all {
		heading := strings.Join(f.of, ", ")
		at := slices.IndexFunc(s.Lists, func(l page.List) bool { return l.Heading == heading })
		if at < 0 {
			at, s.Lists = len(s.Lists), append(s.Lists, page.List{Heading: heading})
		}
		s.Lists[at].Items = append(s.Lists[at].Items, f.items...)
	}
	if s.Lists == nil {
		s.Title += ": nothing was found"
	}
	return s
}

// grouped splits lists into findings. An item without a key continues the finding of the
// item before it.
func grouped(lists []page.List) (all [][]page.Item) {
	for _, l := range lists {
		for _, item := range l.Items {
			if item.Key != "" || len(all) == 0 {
				all = append(all, nil)
			}
			all[len(all)-1] = append(all[len(all)-1], item)
		}
	}
	return all
}
