// Package term is the border between text of others and a person's terminal.
//
// Names, versions and error messages come from engines, kernels and logs that
// tare doesn't control. A terminal obeys what it is sent: an escape sequence
// in a version string could retitle the window, hide a line or answer a
// question on the user's behalf. So foreign text passes [Clean] before it is
// printed. Records keep the text as it came; only what is shown is cleaned.
package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The joiners are format characters without a glyph, as dangerous ones are,
// but Persian, the Indic scripts and emoji are misspelt without them.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// Clean returns s as it can be shown on one line of a terminal: control and
// escape characters, line and paragraph separators, bidirectional controls
// and every other character without a graphic of its own are written as
// escapes ("\x1b", "\n", "\u202e"), and bytes that are not UTF-8 are left out.
// What is already clean is returned as it is, backslashes included.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == utf8.RuneError && size == 1: // not UTF-8
		case shows(r):
			b.WriteRune(r)
		default:
			b.WriteString(escape(r))
		}
	}
	return b.String()
}

func isClean(s string) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if (r == utf8.RuneError && size == 1) || !shows(r) {
			return false
		}
		i += size
	}
	return true
}

// shows tells characters that a terminal draws from those that it acts on or
// that only change how others are drawn. What Unicode has not assigned yet is
// escaped too: its width, and so the table it stands in, can't be known.
func shows(r rune) bool {
	if r == zeroWidthJoiner || r == zeroWidthNonJoiner {
		return true
	}
	return unicode.IsGraphic(r)
}

// escape writes r as Go source would.
func escape(r rune) string {
	switch r {
	case '\t':
		return `\t`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	}
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}
