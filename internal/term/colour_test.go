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
		{"a Chinese character takes two columns", "容器", 4},
		{"a Hangul syllable takes two columns", "컨테이너", 8},
		{"decomposed Hangul is as wide as its initial", "\u1112\u1161\u11ab", 2},
		{"fullwidth Latin takes two columns", "ＡＢ", 4},
		{"halfwidth katakana takes one column", "ｱｲ", 2},
		{"a combining accent takes no column", "e\u0301", 1},
		{"an emoji takes two columns", "🚀", 2},
		{"a Greek letter takes one column", "µs", 2},
		{"an escaped character is as wide as its escape", "\x1b", 4},
		{"a removed byte takes no column", "\xff", 0},
	} {
		check.Equal(t, fmt.Sprintf("%s: Width(%q) =", c.claim, c.in), Width(c.in), c.want)
	}
}

func TestColourFollowsTerminalAndEnvironment(t *testing.T) {
	for _, c := range []struct {
		claim    string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"a terminal gets colour", true, map[string]string{"TERM": "xterm"}, true},
		{"a pipe gets no colour", false, map[string]string{"TERM": "xterm"}, false},
		{"NO_COLOR disables colour", true, map[string]string{"NO_COLOR": "1"}, false},
		{"an empty NO_COLOR is ignored", true, map[string]string{"NO_COLOR": ""}, true},
		{"a dumb terminal gets no colour", true, map[string]string{"TERM": "dumb"}, false},
	} {
		check.Equal(t, c.claim, colour(c.terminal, func(k string) string { return c.env[k] }), c.want)
	}
}

func TestFilesAndBuffersAreNotTerminals(t *testing.T) {
	f := must.Get(os.Create(t.TempDir() + "/out"))(t)
	defer f.Close()
	check.That(t, !IsTerminal(f) && !Colour(f), "a file is treated as a terminal")
	_, ok := Columns(f)
	check.That(t, !ok, "a file has a width")
	check.That(t, !IsTerminal(&strings.Builder{}), "a buffer is treated as a terminal")
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ claim, in, want string }{
		{"plain text is unchanged", "runc 1.1.5", "runc 1.1.5"},
		{"letters of all scripts are unchanged", "größe 容器 контейнер", "größe 容器 контейнер"},
		{"a backslash is unchanged", `C:\x1b`, `C:\x1b`},
		{"an escape sequence is escaped", "\x1b]0;owned\a", `\x1b]0;owned\x07`},
		{"a one-byte CSI is escaped", "\u009b31m", `\u009b31m`},
		{"line breaks and tabs are escaped", "a\nb\rc\td", `a\nb\rc\td`},
		{"line and paragraph separators are escaped", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"bidirectional overrides are escaped", "user\u202etxt.exe\u2066", `user\u202etxt.exe\u2066`},
		{"direction marks are escaped", "a\u200eb\u200fc\u061c", `a\u200eb\u200fc\u061c`},
		{"a byte order mark is escaped", "\ufeffname", `\ufeffname`},
		{"tag characters are escaped", "a\U000e0041", `a\U000e0041`},
		{"joiners are unchanged: Persian needs them", "می\u200cخواهم", "می\u200cخواهم"},
		{"invalid UTF-8 is removed", "a\xffb\xc3", "ab"},
		{"bytes around an invalid byte are not combined", "\xc3\xff\xa9", ""},
		{"a replacement character in the input is unchanged", "\ufffd", "\ufffd"},
		{"DEL is escaped", "a\x7f", `a\x7f`},
		{"NUL is escaped", "a\x00b", `a\x00b`},
		{"empty text stays empty", "", ""},
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
		check.That(t, utf8.ValidString(got), "Clean(%q) = %q: invalid UTF-8", s, got)
		i := strings.IndexFunc(got, unicode.IsControl)
		check.That(t, i < 0, "Clean(%q) = %q: control character at %d", s, got, i)
		i = strings.IndexFunc(got, isBidi)
		check.That(t, i < 0, "Clean(%q) = %q: bidirectional control at %d", s, got, i)
		again := Clean(got)
		check.That(t, again == got, "Clean(%q) = %q, but cleaning it again gives %q", s, got, again)
		w := Width(s)
		check.That(t, w >= 0 && w <= 2*utf8.RuneCountInString(got), "Width(%q) = %d is impossible for %d characters", s, w, utf8.RuneCountInString(got))
	})
}

// isBidi uses the Unicode property, independently of Clean.
func isBidi(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }
