package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/tare-bench/tare/record"
)

func ratio(v float64, format string) string {
	if !finite(v) {
		return none
	}
	return fmt.Sprintf(format, v)
}

// count is a median of whole numbers, which can lie between two.
func count(v float64) string {
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func memory(bytes float64) string {
	switch {
	case !finite(bytes):
		return none
	case bytes == 0:
		return "0"
	}
	return size(bytes)
}

func growth(bytes float64) string {
	switch {
	case finite(bytes) && bytes < 0:
		return "-" + size(-bytes)
	case finite(bytes) && bytes > 0:
		return "+" + size(bytes)
	}
	return memory(bytes)
}

// merged adds an item, or only its key if there is one with the same text.
func merged(items []item, more item) []item {
	for i := range items {
		if items[i].text == more.text {
			items[i].key += ", " + more.key
			return items
		}
	}
	return append(items, more)
}

func notes(targets []record.Target) []item {
	var items []item
	for _, t := range targets {
		if len(t.Notes) > 0 {
			items = merged(items, item{key: heading(t.Name), text: strings.Join(t.Notes, "; ")})
		}
	}
	return items
}

// definitions groups the targets by what done means, and those by the command.
func definitions(targets []record.Target, op string) []item {
	var means []string
	commands := map[string][]item{}
	var absent []item
	for _, t := range targets {
		def, ok := t.Operations[op]
		switch {
		case !ok:
		case def.Absent != "":
			absent = merged(absent, item{key: heading(t.Name), text: none + " " + def.Absent})
		default:
			done := "done: " + known(def.Means)
			if commands[done] == nil {
				means = append(means, done)
			}
			commands[done] = merged(commands[done], item{key: heading(t.Name), text: def.Command, code: true})
		}
	}
	var items []item
	for _, done := range means {
		items = append(append(items, commands[done]...), item{text: done})
	}
	return append(items, absent...)
}

func some(targets []record.Target, op string) bool {
	for i := range targets {
		if def, ok := targets[i].Operations[op]; ok && def.Absent == "" {
			return true
		}
	}
	return false
}
