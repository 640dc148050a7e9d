package term

import (
	"os"
	"strings"
	"testing"

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
		if got := Width(c.in); got != c.want {
			t.Errorf("%s: Width(%q) = %d, want %d", c.claim, c.in, got, c.want)
		}
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
		if got := colour(c.terminal, func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%s: got %v", c.claim, got)
		}
	}
}

func TestFilesAndBuffersAreNoTerminals(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	must.OK(t, err)
	defer f.Close()
	if IsTerminal(f) || Colour(f) {
		t.Error("a file passes for a terminal")
	}
	if _, ok := Columns(f); ok {
		t.Error("a file has a width")
	}
	if IsTerminal(&strings.Builder{}) {
		t.Error("a buffer passes for a terminal")
	}
}
