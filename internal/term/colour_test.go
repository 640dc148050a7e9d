package term

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestWidth(t *testing.T) {
	for _, c := range []struct {
		claim, in string
		want      int
	}{
		{"a letter takes one column", "runc", 4},
		{"a Chinese character takes two", "容器", 4},
		{"Hangul takes two a syllable", "컨테이너", 8},
		{"decomposed Hangul is as wide as its initial", "\u1112\u1161\u11ab", 2},
		{"fullwidth Latin takes two", "ＡＢ", 4},
		{"halfwidth katakana takes one", "ｱｲ", 2},
		{"a combining accent takes none", "e\u0301", 1},
		{"an emoji takes two", "🚀", 2},
		{"a Greek letter is not wide", "µs", 2},
		{"what is escaped counts as it is shown", "\x1b", 4},
		{"what is cut takes none", "\xff", 0},
	} {
		check.Equal(t, fmt.Sprintf("%s: Width(%q) =", c.claim, c.in), Width(c.in), c.want)
	}
}

func TestColourIsForTerminalsThatWantIt(t *testing.T) {
	for _, c := range []struct {
		claim    string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"a terminal gets colour", true, map[string]string{"TERM": "xterm"}, true},
		{"a pipe gets none", false, map[string]string{"TERM": "xterm"}, false},
		{"NO_COLOR is obeyed", true, map[string]string{"NO_COLOR": "1"}, false},
		{"an empty NO_COLOR is none", true, map[string]string{"NO_COLOR": ""}, true},
		{"a dumb terminal gets none", true, map[string]string{"TERM": "dumb"}, false},
	} {
		check.Equal(t, c.claim, colour(c.terminal, func(k string) string { return c.env[k] }), c.want)
	}
}

func TestFilesAndBuffersAreNoTerminals(t *testing.T) {
	f := must.Get(os.Create(t.TempDir() + "/out"))(t)
	defer f.Close()
	check.That(t, !IsTerminal(f) && !Colour(f), "a file passes for a terminal")
	_, ok := Columns(f)
	check.That(t, !ok, "a file has a width")
	check.That(t, !IsTerminal(&strings.Builder{}), "a buffer passes for a terminal")
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ claim, in, want string }{
		{"plain text stays", "runc 1.1.5", "runc 1.1.5"},
		{"letters of all scripts stay", "größe 容器 контейнер", "größe 容器 контейнер"},
		{"a backslash stays", `C:\x1b`, `C:\x1b`},
		{"an escape sequence can't reach the terminal", "\x1b]0;owned\a", `\x1b]0;owned\x07`},
		{"a one-byte CSI is escaped", "\u009b31m", `\u009b31m`},
		{"a line stays one line", "a\nb\rc\td", `a\nb\rc\td`},
		{"line and paragraph separators are escaped", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"bidirectional overrides are escaped", "user\u202etxt.exe\u2066", `user\u202etxt.exe\u2066`},
		{"direction marks are escaped", "a\u200eb\u200fc\u061c", `a\u200eb\u200fc\u061c`},
		{"a byte order mark is escaped", "\ufeffname", `\ufeffname`},
		{"tag characters are escaped", "a\U000e0041", `a\U000e0041`},
		{"joiners stay, Persian needs them", "می\u200cخواهم", "می\u200cخواهم"},
		{"bytes that are not UTF-8 are cut", "a\xffb\xc3", "ab"},
		{"halves around an invalid byte don't join", "\xc3\xff\xa9", ""},
		{"a replacement character that was written stays", "\ufffd", "\ufffd"},
		{"DEL is escaped", "a\x7f", `a\x7f`},
		{"NUL is escaped", "a\x00b", `a\x00b`},
		{"nothing stays nothing", "", ""},
	} {
		check.Equal(t, fmt.Sprintf("%s: Clean(%q) =", c.claim, c.in), Clean(c.in), c.want)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"runc", "\x1b[31m", "a\xff\x9b", "\u202e", "容器", "\U000e0041", "\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		check.That(t, utf8.ValidString(got), "Clean(%q) = %q, not UTF-8", s, got)
		i := strings.IndexFunc(got, unicode.IsControl)
		check.That(t, i < 0, "Clean(%q) = %q has a control character at %d", s, got, i)
		i = strings.IndexFunc(got, isBidi)
		check.That(t, i < 0, "Clean(%q) = %q has a bidirectional control at %d", s, got, i)
		again := Clean(got)
		check.That(t, again == got, "Clean(%q) = %q, and cleaned again %q", s, got, again)
		w := Width(s)
		check.That(t, w >= 0 && w <= 2*utf8.RuneCountInString(got), "Width(%q) = %d, impossible for %d characters", s, w, utf8.RuneCountInString(got))
	})
}

// isBidi is Unicode's own property, independent of how Clean decides.
func isBidi(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }
