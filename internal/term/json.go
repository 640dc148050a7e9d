package term

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// CleanJSON escapes within JSON what [Clean] would. What is in strings stays the same to
// who reads it as JSON; elsewhere there is nothing to escape.
func CleanJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == '\n' || shows(r): // what else is below a space encoding/json escapes
			out = append(out, text[i:i+n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}
