package page

import (
	"bytes"
	"testing"

	"github.com/tare-bench/tare/internal/term"
)

func TestATableStandsInColumns(t *testing.T) {
	for _, c := range []struct {
		claim string
		table func(o *Options) *Table
		want  string
	}{
		{"columns line up whatever the script", func(o *Options) *Table {
			t := &Table{Columns: []Column{{Title: "name"}, {Title: "ms", Right: true}}}
			t.Row(Texts("runc", "27.1")...)
			t.Row(Texts("容器", "138.0")...)
			return t
		}, "name     ms\nrunc   27.1\n容器  138.0\n"},
		{"a table without titles has no heading", func(o *Options) *Table {
			t := &Table{Indent: 2}
			t.Row(Texts("a", "b")...)
			t.Row(Texts("ccc", "d")...)
			return t
		}, "  a    b\n  ccc  d\n"},
		{"no line ends in spaces", func(o *Options) *Table {
			t := &Table{}
			t.Row(Texts("long name", "x")...)
			t.Row(Texts("a", "")...)
			return t
		}, "long name  x\na\n"},
		{"a line across takes no part in the columns", func(o *Options) *Table {
			t := &Table{}
			t.Line(0, "a heading that is long", term.Plain)
			t.Row(Texts("a", "b")...)
			t.Line(4, "remark", term.Plain)
			t.Line(4, "", term.Plain)
			return t
		}, "a heading that is long\na  b\n    remark\n\n"},
		{"the last column continues below itself", func(o *Options) *Table {
			t := &Table{}
			o.Width = 30
			t.Row(Texts("ok", "one two three four five six")...)
			return t
		}, "ok  one two three four five\n    six\n"},
		{"a long word stays whole to be copied", func(o *Options) *Table {
			t := &Table{}
			o.Width = 30
			t.Row(Texts("ok", "see /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor now")...)
			return t
		}, "ok  see\n    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\n    now\n"},
		{"cells are cleaned", func(o *Options) *Table {
			t := &Table{}
			t.Row(Texts("\x1b[2Ja", "b\nc")...)
			t.Line(0, "\u202ed", term.Plain)
			return t
		}, "\\x1b[2Ja  b\\nc\n\\u202ed\n"},
		{"rows may differ in length", func(o *Options) *Table {
			t := &Table{Columns: []Column{{Title: "n", Right: true}}}
			t.Row(Texts("1")...)
			t.Row(Texts("10", "x", "y")...)
			return t
		}, " n\n 1\n10  x  y\n"},
		{"colour takes no columns", func(o *Options) *Table {
			t := &Table{}
			o.Colour = true
			t.Row(Cell{Head: "ok", Style: term.Green}, Words("x"))
			t.Row(Texts("limited", "y")...)
			return t
		}, "\x1b[32mok\x1b[0m       x\nlimited  y\n"},
	} {
		var out bytes.Buffer
		var o Options
		if err := c.table(&o).Write(&out, o); err != nil {
			t.Errorf("%s: %v", c.claim, err)
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.claim, out.String(), c.want)
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
