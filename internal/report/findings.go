package report

import (
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// longestMessage is where the message of a finding is cut: a failure's holds
// what the command printed, which can be pages. JSON has all of it.
const longestMessage = 500

// longestLevel is where a level is cut that is none of ours.
const longestLevel = 10

var levelStyle = map[string]term.Style{"error": term.Red, "warning": term.Yellow}

// findings are what to mistrust, and what to do about it. count says in words what
// their Lanes are.
func findings(all []record.Finding, count func(int) string, o Options) section {
	s := section{title: "findings", style: term.Bold}
	if len(all) == 0 {
		s.title = "findings: none"
		return s
	}
	var items []item
	for i := range all {
		f := &all[i]
		message := term.Clean(f.Message)
		if !o.Verbose {
			message = short(message, longestMessage)
		}
		if where := place(f, count); where != "" {
			message = where + ": " + message
		}
		items = append(items, item{key: short(known(term.Clean(f.Level)), longestLevel), text: message, style: levelStyle[f.Level]})
		if f.Advice != "" {
			items = append(items, item{text: "→ " + f.Advice})
		}
		if f.Tried != "" {
			items = append(items, item{text: f.Tried, code: true})
		}
	}
	s.lists = []list{{items: items}}
	return s
}

// place is where a finding belongs: "runc create, 100 lanes".
func place(f *record.Finding, count func(int) string) string {
	out := heading(f.Target)
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
