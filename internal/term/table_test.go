package term

import (
	"bytes"
	"os"
	"strings"
	"testing"
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

func TestTable(t *testing.T) {
	for _, c := range []struct {
		claim string
		table func() *Table
		want  string
	}{
		{"columns line up whatever the script", func() *Table {
			t := &Table{Columns: []Column{{Title: "name"}, {Title: "ms", Right: true}}}
			t.Add("runc", "27.1")
			t.Add("容器", "138.0")
			return t
		}, "name     ms\nrunc   27.1\n容器  138.0\n"},
		{"a table without titles has no heading", func() *Table {
			t := &Table{Indent: 2}
			t.Add("a", "b")
			t.Add("ccc", "d")
			return t
		}, "  a    b\n  ccc  d\n"},
		{"no line ends in spaces", func() *Table {
			t := &Table{}
			t.Add("long name", "x")
			t.Add("a", "")
			return t
		}, "long name  x\na\n"},
		{"a line across takes no part in the columns", func() *Table {
			t := &Table{}
			t.AddLine(0, "a heading that is long", Plain)
			t.Add("a", "b")
			t.AddLine(4, "remark", Plain)
			t.AddLine(4, "", Plain)
			return t
		}, "a heading that is long\na  b\n    remark\n\n"},
		{"the last column continues below itself", func() *Table {
			t := &Table{Width: 30}
			t.Add("ok", "one two three four five six")
			return t
		}, "ok  one two three four five\n    six\n"},
		{"a long word stays whole to be copied", func() *Table {
			t := &Table{Width: 30}
			t.Add("ok", "see /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor now")
			return t
		}, "ok  see\n    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\n    now\n"},
		{"cells are cleaned", func() *Table {
			t := &Table{}
			t.Add("\x1b[2Ja", "b\nc")
			t.AddLine(0, "\u202ed", Plain)
			return t
		}, "\\x1b[2Ja  b\\nc\n\\u202ed\n"},
		{"rows may differ in length", func() *Table {
			t := &Table{Columns: []Column{{Title: "n", Right: true}}}
			t.Add("1")
			t.Add("10", "x", "y")
			return t
		}, " n\n 1\n10  x  y\n"},
		{"colour takes no columns", func() *Table {
			t := &Table{Colour: true}
			t.AddCells(Cell{Text: "ok", Style: Green}, Cell{Text: "x"})
			t.Add("limited", "y")
			return t
		}, "\x1b[32mok\x1b[0m       x\nlimited  y\n"},
	} {
		var out bytes.Buffer
		if err := c.table().Write(&out); err != nil {
			t.Errorf("%s: %v", c.claim, err)
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.claim, out.String(), c.want)
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
	if err != nil {
		t.Fatal(err)
	}
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
