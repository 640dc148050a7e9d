package lifecycle

import (
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// timed says what was timed: every operation's command on every target, and
// what done means. What is the same is said once.
func timed(l *Judgement) *page.Section {
	s := &page.Section{Title: "what was timed", Style: term.Bold, Part: page.Method}
	for _, op := range l.Plan.Ops {
		if len(l.Tables) > 0 && !some(l.Targets, op) {
			continue // it was only asked for by default
		}
		items := page.Definitions(l.Targets, string(op))
		if len(items) == 0 {
			continue
		}
		if last := len(s.Lists) - 1; last >= 0 && slices.Equal(s.Lists[last].Items, items) {
			s.Lists[last].Heading += ", " + string(op)
			continue
		}
		s.Lists = append(s.Lists, page.List{Heading: string(op), Items: items})
	}
	if len(s.Lists) == 0 {
		s.Title += ": nothing"
	}
	if notes := page.TargetNotes(l.Targets); notes != nil {
		s.Lists = append(s.Lists, page.List{Heading: "notes", Items: notes})
	}
	return s
}

// some tells whether there is a target that has the operation.
func some(targets []record.Target, op setting.Op) bool {
	return slices.ContainsFunc(targets, func(t record.Target) bool { return Absent(&t, op) == "" })
}
