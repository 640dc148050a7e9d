package page

import "github.com/tare-bench/tare/record"

// Definitions describes how an operation was timed. It groups the targets by the event that
// ends the operation, and within such a group by command.
func Definitions(targets []record.Target, op string) []Item {
	var means []string
	commands := map[string][]Item{}
	var absent []Item
	for _, t := range targets {
		def, ok := t.Operations[op]
		switch {
		case !ok:
		case def.Absent != "":
			absent = Merge(absent, Item{Key: Heading(t.Name), Text: None + " " + def.Absent})
		default:
			done := "done: " + Known(def.Means)
			if commands[done] == nil {
				means = append(means, done)
			}
			commands[done] = Merge(commands[done], Item{Key: Heading(t.Name), Text: def.Command, Code: true})
		}
	}
	var items []Item
	for _, done := range means {
		items = append(append(items, commands[done]...), Item{Text: done})
	}
	return append(items, absent...)
}
