package term

import "github.com/clipperhouse/displaywidth"

// Width returns the width of a text in terminal columns after cleaning. Characters that
// Unicode's UAX #11 calls ambiguous count as one column, as outside East Asian locales.
func Width(s string) int { return displaywidth.String(Clean(s)) }
