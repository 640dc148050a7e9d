package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/term"
)

// WriteJSON prints the selected sandboxes and all else as one object, indented or
// on one line. Foreign text is as it was; what a terminal would act on is written
// as "\u001b" (bytes that are not UTF-8 are U+FFFD).
func (v *View) WriteJSON(w io.Writer, sel *Selection, indented bool) error {
	out := *v
	out.Sandboxes = sel.of(v.Sandboxes)
	for i := range out.Sandboxes {
		if out.Sandboxes[i].Roles == nil {
			out.Sandboxes[i].Roles = []Role{}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if indented {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(&out); err != nil {
		return fmt.Errorf("write the view as JSON: %w", err)
	}
	_, err := w.Write(harmless(b.Bytes()))
	return err
}

// harmless escapes in JSON what [term.Clean] would: it is in strings only.
func harmless(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r < 0x7f || term.Clean(string(r)) == string(r) {
			out = append(out, text[i:i+n]...)
		} else if r >= 0x10000 {
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		} else {
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}
