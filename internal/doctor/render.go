package doctor

import (
	"cmp"
	"io"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// Render prints the checks for people: grouped by area, aligned, and below
// each one that is not ok the command that would change it. Colour and line
// breaks are for terminals only.
func Render(w io.Writer, checks []Check) error {
	t := &page.Table{Indent: 2}
	var areas []string // in the order in which they first come up
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
	if slices.ContainsFunc(checks, func(c Check) bool { return c.Status == NotTried }) {
		t.Line(0, "", term.Plain)
		t.Line(0, "not tried: tare doctor --try starts one workload on each", term.Plain)
	}
	width, _ := term.Columns(w)
	return t.Write(w, page.Options{Width: width, Colour: term.Colour(w)})
}

// report is the JSON form of the checks.
type report struct {
	Schema int     `json:"schema"` // 1; grows when an old field changes meaning
	Checks []Check `json:"checks"`
}

// RenderJSON prints the checks for programs, as a Report. Texts are cleaned
// here too: JSON lets most of what a terminal obeys pass as it is.
func RenderJSON(w io.Writer, checks []Check) error {
	clean := make([]Check, len(checks))
	for i, c := range checks {
		clean[i] = Check{
			Area: c.Area, Name: term.Clean(c.Name), Version: term.Clean(c.Version),
			Status: c.Status, Why: term.Clean(c.Why), Fix: term.Clean(c.Fix),
		}
	}
	return term.WriteJSON(w, report{Schema: 1, Checks: clean}, true)
}

var styles = map[Status]term.Style{OK: term.Green, Limited: term.Yellow, Missing: term.Red, NotTried: term.Plain}

// fixIndent puts a fix below the name of its check.
const fixIndent = 11

func addCheck(t *page.Table, c Check) {
	row := page.Texts(string(c.Status), c.Name, c.Version, c.Why)
	row[0].Style = styles[c.Status]
	t.Row(row...)
	if c.Status != OK && c.Status != NotTried {
		t.Line(fixIndent, "→ "+cmp.Or(c.Fix, "no command changes this"), term.Plain)
	}
}
