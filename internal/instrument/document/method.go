package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// asked lists the options of a measure with their values and help.
func asked(name string, words []option.Stored) *page.Section {
	table := page.Names("option", "value", "meaning")
	for _, w := range words {
		table.Row(page.Texts(w.Key, page.Short(term.Clean(plain(w.Value)), page.LongestMessage), w.Help)...)
	}
	return &page.Section{Title: name + ": options", Style: term.Bold, Table: table}
}

// plain formats a JSON value for readers: lists with commas, strings without quotes.
func plain(text []byte) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(text)
	}
	switch v := v.(type) {
	case []any:
		all := make([]string, len(v))
		for i, one := range v {
			if _, scalar := one.(map[string]any); scalar {
				return string(text)
			}
			all[i] = fmt.Sprint(one)
		}
		return strings.Join(all, ", ")
	case map[string]any:
		return string(text)
	}
	return fmt.Sprint(v)
}

// commands returns the commands run inside sandboxes: the first one of each job and load.
func commands(rec *record.Record) (items []page.Item) {
	seen := map[string]bool{}
	add := func(key, command string) {
		if key = page.Heading(key); command != "" && !seen[key] {
			seen[key] = true
			items = append(items, page.Item{Key: key, Text: command, Code: true})
		}
	}
	for i := range rec.Cells {
		add(rec.Cells[i].Job, rec.Cells[i].Command)
	}
	for i := range rec.Readings {
		if w := rec.Readings[i].Work; w != nil {
			add(rec.Readings[i].Phase, w.Command)
		}
	}
	return items
}
