package top

import (
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// footerKeys are the keys that the last line names, the most needed first: what a
// width has no room for is in the help.
var footerKeys = []string{"h help", "q quit", "mcopin sort", "r reverse", "/ filter", "e roles", "space hold", "+- rate"}

// footer is the last line.
func footer(width int) string {
	line := ""
	for _, k := range footerKeys {
		if line != "" {
			k = "  " + k
		}
		if term.Width(line)+term.Width(k) > width {
			break
		}
		line += k
	}
	return line
}

const goesBack = "any key goes back"

// helpText is the help in lines of a width, at most height of them. How to leave it
// is always there.
func helpText(width, height int, left []string) []string {
	lines := []string{}
	for _, text := range helpLines {
		lines = append(lines, wrap(text, width)...)
	}
	if len(left) > 0 {
		lines = append(lines, wrap("wider     shows "+strings.Join(left, " ")+" too", width)...)
	}
	lines = append(lines, "")
	lines = lines[:max(0, min(len(lines), height-1))]
	return append(lines, cut(goesBack, width))
}

// wrap breaks a text at spaces. What goes on stands below the explanation, which
// begins behind the first two spaces or more.
func wrap(text string, width int) []string {
	if term.Width(text) <= width {
		return []string{text}
	}
	hang := 2
	if i := strings.Index(text, "  "); i >= 0 {
		if at := i + len(text[i:]) - len(strings.TrimLeft(text[i:], " ")); at <= width/2 {
			hang = at
		}
	}
	var lines []string
	line := text[:min(hang, len(text))]
	first := true
	for _, word := range strings.Fields(text[len(line):]) {
		switch {
		case first:
			line += word
		case term.Width(line)+1+term.Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, cut(line, width))
			line = strings.Repeat(" ", hang) + word
		}
		first = false
	}
	return append(lines, cut(line, width))
}
