package term

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// asciiWriter writes to a terminal or a file of a locale without UTF-8.
type asciiWriter struct{ *os.File }

// Write implements [io.Writer]. What is written ends with a whole character.
func (a asciiWriter) Write(b []byte) (int, error) {
	_, err := io.WriteString(a.File, ASCII(string(b)))
	return len(b), err
}

// InLocale returns a writer that keeps to ASCII where the locale has no UTF-8, such as
// LC_ALL=C. Without any locale UTF-8 is taken for granted.
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

// IsASCII reports whether a writer keeps to ASCII.
func IsASCII(w io.Writer) bool {
	_, is := w.(asciiWriter)
	return is
}

// Whole is what a writer of [InLocale] writes to, for what has to stay as it is.
func Whole(w io.Writer) io.Writer {
	if a, is := w.(asciiWriter); is {
		return a.File
	}
	return w
}

// spelled are the characters that tare writes itself.
var spelled = strings.NewReplacer("±", "+-", "×", "x", "÷", "/", "·", "-", "–", "-", "—", "-", "‑", "-", "…", "...", "→", "->", "≤", "<=", "≥", ">=", "≠", "!=", "µ", "u", "²", "2",
	"“", `"`, "”", `"`, "’", "'", "│", "|", "┃", "|", "┄", ".", "─", "-", "━", "=", "├", "+", "┤", "+", "╌", "-", "█", "#", "▇", "#", "▆", "*", "▅", "*", "▄", "=", "▃", "-", "▂", ".", "▁", "_",
	"▏", ".", "▎", ".", "▍", "-", "▌", "=", "▋", "=", "▊", "*", "▉", "#", "░", ".", "▒", ":", "▓", "%", "●", "o", "○", "o", "◆", "o", "⇒", "=>", "↑", "^", "↓", "v", "ö", "oe", "ü", "ue", "ä", "ae", "Σ", "sum", "√", "sqrt", "◀", "<", "▶", ">", "←", "<-", "∞", "inf")

// ASCII returns a text in ASCII: signs as they are spelled, and ? for what is left.
func ASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return '?'
		}
		return r
	}, spelled.Replace(s))
}
