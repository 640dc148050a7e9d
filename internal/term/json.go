package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes a value as one JSON object, indented or on one line, that is safe to
// print on a terminal. Untrusted text survives a round trip, except that invalid UTF-8
// becomes U+FFFD.
func WriteJSON(w io.Writer, v any, indented bool) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // commands contain & and >
	if indented {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := w.Write(CleanJSON(b.Bytes()))
	return err
}

// CleanJSON escapes in JSON the characters that [Clean] escapes. The values of strings do
// not change; other parts of JSON have no such characters.
func CleanJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == '\n' || shows(r): // encoding/json escapes the other control characters
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
