package page

import (
	"maps"
	"slices"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Configurations lists the settings that differ between Kata targets, such as with and
// without a VM template. It returns nil if none differ. It ignores the names of handlers.
func Configurations(targets []record.Target) *Section {
	var of []record.Target
	keys := map[string]bool{}
	for i := range targets {
		if Kata(&targets[i]) != "" {
			of = append(of, targets[i])
			for key := range targets[i].Config {
				keys[key] = true
			}
		}
	}
	differ := func(key string) bool {
		return slices.ContainsFunc(of, func(t record.Target) bool { return t.Config[key] != of[0].Config[key] })
	}
	table := Names("setting")
	for i, t := range of {
		table.Columns = append(table.Columns, Column{Title: Heading(t.Name), Group: i + 1})
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if key == "handler" || key == "runtime" || !differ(key) {
			continue
		}
		row := []Cell{Words(Heading(key))}
		for _, t := range of {
			value := t.Config[key]
			if value == "" {
				value = None
			}
			row = append(row, Words(Middle(term.Clean(value), 2*LongestName)))
		}
		table.Row(row...)
	}
	if len(table.Rows) == 0 {
		return nil
	}
	return &Section{Title: "configuration differences", Style: term.Bold, Table: table,
		Notes: []string{"Kata targets only; their figures are side by side above and below"}}
}
