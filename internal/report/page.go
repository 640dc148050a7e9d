package report

import (
	"fmt"

	"github.com/tare-bench/tare/internal/term"
)

// page is a report before it is drawn as text or Markdown.
type page struct {
	title    string // the plan's; "" where it has none
	command  string // that made the record, which stands for a title in Markdown; "" for lifecycle
	head     []string
	sections []section
}

// section is a title with a table, or lists, or neither, and remarks below.
type section struct {
	title string
	table *spread
	lists []list
	block *block
	notes []string
	style term.Style // of the title
}

// block is a text to be copied as it stands.
type block struct {
	language string
	lines    []string
}

// list is rows of a key and a text, under a heading where there is one.
type list struct {
	heading string
	items   []item
}

// item is one text of a list. Without a key it goes on with the one above.
type item struct {
	key, text string
	code      bool // a command
	style     term.Style
}

// longestTitle is where a title is cut: it is to be one line.
const longestTitle = 200

func lanesOf(n int) string {
	if n == 1 {
		return "1 lane"
	}
	return fmt.Sprintf("%d lanes", n)
}

func roundsOf(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}
