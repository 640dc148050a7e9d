package doctor

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// Render prints what can be measured, how to measure more, and what to know before
// measuring. With all it prints every check, grouped by area. Commands are never wrapped,
// so that they can be pasted. Colour and line breaks are used only on terminals.
func Render(w io.Writer, checks []Check, all bool) error {
	width, _ := term.Columns(w)
	t, o := &page.Table{Indent: 2}, page.Options{Width: width, Colour: term.Colour(w)}
	if all {
		addAreas(t, checks)
		return t.Write(w, o)
	}
	head := &page.Table{}
	for _, line := range found(checks) {
		head.Row(page.Words(line))
	}
	if err := head.Write(w, o); err != nil {
		return err
	}
	titled := Status("")
	add := func(of Status, title string, c *Check, text string) {
		if titled != of {
			t.Line(0, "", term.Plain)
			t.Line(0, title, term.Bold)
			titled = of
		}
		t.Row(page.Texts(c.named(page.LongestName), text)...)
	}
	for _, c := range checks {
		if c.Status == Missing {
			text, whole := cmp.Or(c.Fix, c.Why), ""
			if width > 0 && page.LongestName+term.Width(c.Fix) > width && !strings.Contains(c.Fix, " or ") {
				text, whole = "", c.Fix // never wrap a command
			}
			if add(Missing, "To measure more", &c, text); whole != "" {
				t.Line(4, whole, term.Plain)
			}
		}
	}
	for _, c := range checks {
		if c.Status == Limited {
			if add(Limited, "Know before you measure", &c, c.Why); c.Fix != "" {
				t.Line(4, "→ "+c.Fix, term.Plain)
			}
		}
	}
	t.Line(0, "", term.Plain)
	t.Line(0, "all checks, with reasons: tare doctor --all", term.Dim)
	return t.Write(w, o)
}

// found lists the usable targets, and the available targets that were not tried.
func found(checks []Check) (lines []string) {
	var works, untried []string
	for _, c := range checks {
		switch {
		case c.Area != AreaRuntime && c.Area != AreaEngine:
		case c.Status == OK:
			works = append(works, c.named(shortVersion))
		case c.Status == NotTried:
			untried = append(untried, c.named(shortVersion))
		}
	}
	if works != nil || untried == nil {
		lines = append(lines, "Ready to measure: "+cmp.Or(strings.Join(works, ", "), "nothing")+".")
	}
	if untried != nil {
		lines = append(lines, "Available, not tried: "+strings.Join(untried, ", ")+". tare doctor --try starts one workload on each.")
	}
	return lines
}

// named returns the check's name and its version, shortened to a number of columns.
func (c *Check) named(version int) string {
	return strings.TrimSpace(term.Clean(c.Name) + " " + page.Short(term.Clean(c.Version), version))
}

// shortVersion is the maximum width of a version in a list of names. It truncates commit
// hashes.
const shortVersion = 12

func addAreas(t *page.Table, checks []Check) {
	var areas []string // in order of appearance
	for _, c := range checks {
		if !slices.Contains(areas, c.Area) {
			areas = append(areas, c.Area)
		}
	}
	for i, area := range areas {
		if i > 0 {
			t.Line(0, "", term.Plain)
		}
		t.Line(0, area, term.Bold)
		for _, c := range checks {
			if c.Area == area {
				addCheck(t, c)
			}
		}
	}
}

// report is the JSON form of the checks.
type report struct {
	Schema int     `json:"schema"` // 1; grows when an old field changes meaning
	Checks []Check `json:"checks"`
}

// RenderJSON prints the checks for programs, as a report. It also escapes control
// characters that JSON allows but a terminal interprets.
func RenderJSON(w io.Writer, checks []Check) error {
	clean := append([]Check{}, checks...) // not null in JSON
	for i := range clean {
		c := &clean[i]
		c.Name, c.Version, c.Why, c.Fix = term.Clean(c.Name), term.Clean(c.Version), term.Clean(c.Why), term.Clean(c.Fix)
	}
	return term.WriteJSON(w, report{Schema: 1, Checks: clean}, true)
}

var styles = map[Status]term.Style{OK: term.Green, Limited: term.Yellow, Missing: term.Red, NotTried: term.Plain}

// addCheck adds a check and the command that fixes it.
func addCheck(t *page.Table, c Check) {
	name := page.Texts(string(c.Status), c.named(page.LongestName), c.Why)
	name[0].Style = styles[c.Status]
	t.Row(name...)
	if c.Fix != "" {
		t.Line(4, "→ "+c.Fix, term.Plain)
	}
}
