package page

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// LongestMessage is where the message of a finding is cut: a failure's holds
// what the command printed, which can be pages. JSON has all of it.
const LongestMessage = 500

// longestLevel is where a level is cut that is none of ours.
const longestLevel = 10

var levelStyle = map[string]term.Style{"error": term.Red, "warning": term.Yellow}

// Findings are what to mistrust, and what to do about it. count says in words what
// their Lanes are.
func Findings(all []record.Finding, count func(int) string, o Options) *Section {
	s := &Section{Title: "findings", Style: term.Bold, Part: Mistrust}
	if len(all) == 0 {
		s.Title = "findings: none"
		return s
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b record.Finding) int { return cmp.Compare(severity(&b), severity(&a)) })
	var items []Item
	for i := range all {
		f := &all[i]
		message := term.Clean(f.Message)
		if !o.Verbose {
			message = Short(message, LongestMessage)
		}
		if where := place(f, count); where != "" {
			message = where + ": " + message
		}
		items = append(items, Item{Key: Short(Known(term.Clean(f.Level)), longestLevel), Text: message, Style: levelStyle[f.Level]})
		if f.Advice != "" {
			items = append(items, Item{Text: "→ " + f.Advice})
		}
		if f.Tried != "" {
			items = append(items, Item{Text: f.Tried, Code: true})
		}
	}
	s.Lists = []List{{Items: items}}
	return s
}

// severity orders levels; an unknown one is as bad as an error.
func severity(f *record.Finding) int {
	if at := slices.Index([]string{"note", "warning"}, f.Level); at >= 0 {
		return at
	}
	return 2
}

// place is where a finding belongs: "runc create, 100 lanes".
func place(f *record.Finding, count func(int) string) string {
	out := Heading(f.Target)
	if f.Op != "" {
		if out != "" {
			out += " "
		}
		out += f.Op
	}
	if f.Lanes > 0 {
		if out != "" {
			out += ", "
		}
		out += count(f.Lanes)
	}
	return out
}

// Lanes is a number of lanes in words, as most findings count.
func Lanes(n int) string { return Amount(n, "lane") }
