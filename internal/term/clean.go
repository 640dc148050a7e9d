// Package term separates untrusted text from the user's terminal.
//
// Names, versions and error messages come from engines, kernels and logs that tare does not
// control. A terminal executes escape sequences: one in a version string could retitle the
// window, hide a line or answer a question for the user. So untrusted text passes [Clean]
// before it is printed. Records store the original text; only output is cleaned.
package term

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// The joiners are format characters without a glyph, like dangerous ones, but Persian,
// Indic scripts and emoji need them.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// Clean returns s for output on one line of a terminal. It replaces control and escape
// characters, line and paragraph separators, bidirectional controls and all other
// non-graphic characters by escapes ("\x1b", "\n", "\u202e"). It drops bytes that are not
// UTF-8. Clean text is returned unchanged, including backslashes.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "")
	if !strings.ContainsFunc(s, func(r rune) bool { return !shows(r) }) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for _, r := range s {
		if shows(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(escape(r))
		}
	}
	return b.String()
}

// shows reports whether a terminal draws a character, instead of executing it or changing
// how others are drawn. Unassigned characters are escaped too: their width is unknown, so
// they would misalign a table.
func shows(r rune) bool {
	return r == zeroWidthJoiner || r == zeroWidthNonJoiner || unicode.IsGraphic(r)
}

// escape returns the escape sequence of r in Go syntax.
func escape(r rune) string {
	switch {
	case strings.ContainsRune("\t\n\r", r):
		return strings.Trim(strconv.QuoteRune(r), "'")
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}
