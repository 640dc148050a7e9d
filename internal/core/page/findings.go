package page

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// LongestMessage is the maximum length of a finding's message. The message of a failure
// contains the command's output, which can be pages long. JSON has the whole message.
const LongestMessage = 500

// longestLevel is the maximum length of an unknown level.
const longestLevel = 10

var levelStyle = map[string]term.Style{"error": term.Red, "warning": term.Yellow}

// Findings lists the findings with their advice, worst first. The argument count formats a
// number of lanes.
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

// severity orders levels. An unknown level is as bad as an error.
func severity(f *record.Finding) int {
	if at := slices.Index([]string{"note", "warning"}, f.Level); at >= 0 {
		return at
	}
	return 2
}

// place returns the target, operation and lanes of a finding: "runc create, 100 lanes".
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

// Lanes formats a number of lanes. Most findings count lanes.
func Lanes(n int) string { return Amount(n, "lane") }
