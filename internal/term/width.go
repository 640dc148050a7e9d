package term

import "github.com/clipperhouse/displaywidth"

// Width returns how many columns of a terminal a text takes once it is cleaned. A character
// that Unicode's UAX #11 calls ambiguous takes one, as it does outside East Asian locales.
func Width(s string) int { return displaywidth.String(Clean(s)) }
