package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes a value as one object, indented or on one line, that a terminal may
// show. Foreign text comes back from it as it was (bytes that are not UTF-8 as U+FFFD).
func WriteJSON(w io.Writer, v any, indented bool) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // commands have & and > in them
	if indented {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := w.Write(CleanJSON(b.Bytes()))
	return err
}

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
