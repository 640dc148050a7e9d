package report

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// timed says what was timed: every operation's command on every target, and
// what done means. What is the same is said once.
func timed(l *judge.Lifecycle) section {
	s := section{title: "what was timed", style: term.Bold}
	for _, op := range l.Plan.Ops {
		if len(l.Tables) > 0 && !some(l.Targets, op) {
			continue // it was only asked for by default
		}
		items := definitions(l.Targets, op)
		if len(items) == 0 {
			continue
		}
		if last := len(s.lists) - 1; last >= 0 && slices.Equal(s.lists[last].items, items) {
			s.lists[last].heading += ", " + string(op)
			continue
		}
		s.lists = append(s.lists, list{heading: string(op), items: items})
	}
	if len(s.lists) == 0 {
		s.title += ": nothing"
	}
	if notes := notes(l.Targets); notes != nil {
		s.lists = append(s.lists, list{heading: "notes", items: notes})
	}
	return s
}

// some tells whether there is a target that has the operation.
func some(targets []record.Target, op subject.Op) bool {
	return slices.ContainsFunc(targets, func(t record.Target) bool { return judge.Absent(&t, op) == "" })
}

// definitions groups the targets by what done means, and those by the command.
func definitions(targets []record.Target, op subject.Op) []item {
	var means []string
	commands := map[string][]item{}
	var absent []item
	for _, t := range targets {
		def, ok := t.Operations[string(op)]
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
