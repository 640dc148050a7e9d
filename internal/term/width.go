package term

import (
	"unicode"
)

// Width returns the number of terminal columns that s takes after [Clean].
//
// It is the sum over the characters: none for a combining mark or a joiner,
// two for what Unicode's UAX #11 calls wide or fullwidth, one for the rest.
// Ambiguous characters count as one, as they do outside East Asian locales. A
// terminal that joins an emoji sequence into one glyph takes fewer columns
// than this says; terminals disagree on those.
func Width(s string) int {
	n := 0
	for _, r := range Clean(s) {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r >= 0x20 && r < 0x7f:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1160 && r <= 0x11ff: // Hangul vowels and finals join the initial before them
		return 0
	case unicode.Is(wide, r):
		return 2
	default:
		return 1
	}
}
