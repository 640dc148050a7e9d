package page

import (
	"bytes"
	"testing"

	"github.com/tare-bench/tare/internal/term"
)

func TestATableStandsInColumns(t *testing.T) {
	across := func(indent int, text string) []Cell {
		var t Table
		t.Line(indent, text, term.Plain)
		return t.Rows[0]
	}
	for _, c := range []struct {
		claim string
		o     Options
		table Table
		want  string
	}{
		{"columns line up whatever the script", Options{},
			Table{Columns: []Column{{Title: "name"}, {Title: "ms", Right: true}}, Rows: [][]Cell{Texts("runc", "27.1"), Texts("容器", "138.0")}},
			"name     ms\nrunc   27.1\n容器  138.0\n"},
		{"a table without titles has no heading", Options{},
			Table{Indent: 2, Rows: [][]Cell{Texts("a", "b"), Texts("ccc", "d")}},
			"  a    b\n  ccc  d\n"},
		{"no line ends in spaces", Options{},
			Table{Rows: [][]Cell{Texts("long name", "x"), Texts("a", "")}},
			"long name  x\na\n"},
		{"a line across takes no part in the columns", Options{},
			Table{Rows: [][]Cell{across(0, "a heading that is long"), Texts("a", "b"), across(4, "remark"), across(4, "")}},
			"a heading that is long\na  b\n    remark\n\n"},
		{"the last column continues below itself", Options{Width: 30},
			Table{Rows: [][]Cell{Texts("ok", "one two three four five six")}},
			"ok  one two three four five\n    six\n"},
		{"a long word stays whole to be copied", Options{Width: 30},
			Table{Rows: [][]Cell{Texts("ok", "see /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor now")}},
			"ok  see\n    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\n    now\n"},
		{"cells are cleaned", Options{},
			Table{Rows: [][]Cell{Texts("\x1b[2Ja", "b\nc"), across(0, "\u202ed")}},
			"\\x1b[2Ja  b\\nc\n\\u202ed\n"},
		{"rows may differ in length", Options{},
			Table{Columns: []Column{{Title: "n", Right: true}}, Rows: [][]Cell{Texts("1"), Texts("10", "x", "y")}},
			" n\n 1\n10  x  y\n"},
		{"colour takes no columns", Options{Colour: true},
			Table{Rows: [][]Cell{{{Head: "ok", Style: term.Green}, Words("x")}, Texts("limited", "y")}},
			"\x1b[32mok\x1b[0m       x\nlimited  y\n"},
	} {
		var out bytes.Buffer
		if err := c.table.Write(&out, c.o); err != nil || out.String() != c.want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", c.claim, err, out.String(), c.want)
		}
	}
}

func TestAGroupThatIsTooWideByItselfIsParted(t *testing.T) {
	t.Parallel()
	table := Names("operation")
	table.Row(Words("create"))
	table.Columns = append(table.Columns, Column{Title: "runc", Right: true}, Column{Title: "host", Right: true, Group: 1}, Column{Title: "vs runc", Right: true, Group: 1})
	table.Rows[0] = append(table.Rows[0], Texts("28.6 ms", "142 µs", "-97.5 % [-98.3, -96.4]")...)
	for width, want := range map[int]string{
		80: "  operation     runc    host                 vs runc\n  create     28.6 ms  142 µs  -97.5 % [-98.3, -96.4]\n",
		46: "  operation     runc    host\n  create     28.6 ms  142 µs\n\n  operation     runc            host vs runc\n  create     28.6 ms  -97.5 % [-98.3, -96.4]\n",
	} {
		var out bytes.Buffer
		if err := textTable(&out, table, Options{Width: width}); err != nil || out.String() != want {
			t.Errorf("in %d columns, %v:\n%s\nwant\n%s", width, err, out.String(), want)
		}
	}
}
