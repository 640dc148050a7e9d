package term

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// asciiWriter writes to a terminal or a file of a locale without UTF-8.
type asciiWriter struct{ *os.File }

// Write implements [io.Writer]. Each call must end with a complete character.
func (a asciiWriter) Write(b []byte) (int, error) {
	_, err := io.WriteString(a.File, ASCII(string(b)))
	return len(b), err
}

// InLocale returns a writer that writes only ASCII if the locale is not UTF-8, such as
// LC_ALL=C. Without a locale it assumes UTF-8.
func InLocale(f *os.File, getenv func(string) string) io.Writer {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			if strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8") {
				return f
			}
			return asciiWriter{f}
		}
	}
	return f
}

// IsASCII reports whether a writer writes only ASCII.
func IsASCII(w io.Writer) bool {
	_, is := w.(asciiWriter)
	return is
}

// Whole unwraps the writer that [InLocale] returned, for output that must not change.
func Whole(w io.Writer) io.Writer {
	if a, is := w.(asciiWriter); is {
		return a.File
	}
	return w
}

// spelled maps the characters that tare prints to ASCII.
var spelled = strings.NewReplacer("±", "+-", "×", "x", "÷", "/", "·", "-", "–", "-", "—", "-", "‑", "-", "…", "...", "→", "->", "≤", "<=", "≥", ">=", "≠", "!=", "µ", "u", "²", "2",
	"“", `"`, "”", `"`, "’", "'", "│", "|", "┃", "|", "┄", ".", "─", "-", "━", "=", "├", "+", "┤", "+", "╌", "-", "█", "#", "▇", "#", "▆", "*", "▅", "*", "▄", "=", "▃", "-", "▂", ".", "▁", "_",
	"▏", ".", "▎", ".", "▍", "-", "▌", "=", "▋", "=", "▊", "*", "▉", "#", "░", ".", "▒", ":", "▓", "%", "●", "o", "○", "o", "◆", "o", "⇒", "=>", "↑", "^", "↓", "v", "ö", "oe", "ü", "ue", "ä", "ae", "Σ", "sum", "√", "sqrt", "◀", "<", "▶", ">", "←", "<-", "∞", "inf")

// ASCII converts a text to ASCII: known characters by spelled, others to "?".
func ASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return '?'
		}
		return r
	}, spelled.Replace(s))
}
