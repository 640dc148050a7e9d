package doctor

import (
	"cmp"
	"io"
	"slices"

	"github.com/tare-bench/tare/internal/term"
)

// Render prints the checks for people: grouped by area, aligned, and below
// each one that is not ok the command that would change it. Colour and line
// breaks are for terminals only.
func Render(w io.Writer, checks []Check) error {
	t := &term.Table{Indent: 2, Colour: term.Colour(w)}
	t.Width, _ = term.Columns(w)
	var areas []string // in the order in which they first come up
	for _, c := range checks {
		if !slices.Contains(areas, c.Area) {
			areas = append(areas, c.Area)
		}
	}
	for i, area := range areas {
		if i > 0 {
			t.AddLine(0, "", term.Plain)
		}
		t.AddLine(0, area, term.Bold)
		for _, c := range checks {
			if c.Area == area {
				addCheck(t, c)
			}
		}
	}
	return t.Write(w)
}

// Report is the JSON form of the checks.
type Report struct {
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
	return term.WriteJSON(w, Report{Schema: 1, Checks: clean}, true)
}

var styles = map[Status]term.Style{OK: term.Green, Limited: term.Yellow, Missing: term.Red}

// fixIndent puts a fix below the name of its check.
const fixIndent = 11

func addCheck(t *term.Table, c Check) {
	t.AddCells(
		term.Cell{Text: string(c.Status), Style: styles[c.Status]},
		term.Cell{Text: c.Name},
		term.Cell{Text: c.Version},
		term.Cell{Text: c.Why},
	)
	if c.Status != OK {
		t.AddLine(fixIndent, "→ "+cmp.Or(c.Fix, "no command changes this"), term.Plain)
	}
}
