package page

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestMarkdownEscapes(t *testing.T) {
	golden.Cases(t, "testdata/escapes.txt", func(_ *testing.T, input string) string { return escaped(input) })
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0 s", 8.5: "8.50 ns", 842: "842 ns", 999.4: "999 ns", 999.6: "1.00 µs", 842e3: "842 µs", 999_600: "1.00 ms",
		24.62e6: "24.6 ms", 9.994e6: "9.99 ms", 9.996e6: "10.0 ms", 99.96e6: "100 ms", 1.934e9: "1.93 s", 1234.5e9: "1234 s",
		-24.62e6: "-24.6 ms", math.Inf(1): "?",
	} {
		check.Equal(t, ns, Duration(ns), want)
	}
	check.Equal(t, "NaN", Duration(math.NaN()), "?")
}

// Residuals and released memory are negative.
func TestNegativeAmountsHaveUnits(t *testing.T) {
	for want, got := range map[string]string{
		"-4.30 MiB": Text(-4513792, figure.Bytes), "-1.00 KiB": Growth(-1024), "-842 B": Memory(-842), "+84.0 KiB": Growth(86016), "0": Growth(0),
		"-24.6 ms": Text(-24.62e6, figure.Nanoseconds), "-150": Significant(-150.3), "-15.0": Significant(-15.03), "-0.05": Significant(-0.05),
	} {
		check.Equal(t, "text", got, want)
	}
}

func TestNegativeIntervalHasTheSamePrecision(t *testing.T) {
	for want, e := range map[string]figure.Estimate{
		"±20 %":  {N: 9, Value: -100, Lo: -120, Hi: -90, Bounded: true},
		"±25 %":  {N: 9, Value: 100, Lo: 90, Hi: 125, Bounded: true},
		"±0.5 %": {N: 9, Value: -100, Lo: -100.5, Hi: -100, Bounded: true},
		"±?":     {N: 9, Value: 0, Lo: -1, Hi: 1, Bounded: true},
	} {
		check.Equal(t, e, HalfWidth(e), want)
	}
	check.Equal(t, "too few rounds", HalfWidth(figure.Estimate{N: 3, Value: -100}), "±?")
}

func TestOnlyChangesAreShown(t *testing.T) {
	shift := func(value, lo, hi float64, verdict stat.Verdict) figure.Versus {
		return figure.Versus{Shift: figure.Estimate{N: 9, Value: value, Lo: lo, Hi: hi, Bounded: lo != hi}, Verdict: verdict}
	}
	for _, tt := range []struct {
		name string
		v    figure.Versus
		want string
	}{
		{"none", shift(0.03, -0.01, 0.06, stat.Undecided), "~ +3.0 % [-1.0, +6.0]"},
		{"the same", shift(0.003, -0.01, 0.02, stat.Same), "= +0.3 % [-1.0, +2.0]"},
		{"too few rounds", shift(0.03, 0, 0, stat.Undecided), "~ +3.0 %"},
		{"slower", shift(0.123, 0.1, 0.15, stat.Different), "+12.3 % [+10.0, +15.0]"},
		{"small", shift(0.0004, 0.0001, 0.0009, stat.Different), "+0.04 % [+0.01, +0.09]"},
		{"manifold", shift(41.234, 40, 42, stat.Different), "+4123 % [+4000, +4200]"},
		{"without a ratio", figure.Versus{Verdict: stat.Different}, "differs"},
	} {
		check.Equal(t, tt.name, Change(&figure.Figure{Estimate: figure.Exactly(1), Versus: &tt.v}).joined(0), tt.want)
	}
}

func TestSmallRateIsNotPrintedAsZero(t *testing.T) {
	for bytes, want := range map[float64]string{
		0: "0.00", 420: "0.00042", 41_000: "0.041", 1.23e6: "1.23", 9.994e6: "9.99", 9.996e6: "10.0", 111.42e6: "111.4", 6579.1e6: "6579.1",
		math.NaN(): "?", math.Inf(1): "?",
	} {
		check.Equal(t, bytes, Megabytes(bytes), want)
	}
	for v, want := range map[float64]string{0: "0.00", 0.0003: "0.0003", 0.0996: "0.10", 0.5: "0.50", 316: "316", 766021: "766021"} {
		check.Equal(t, v, Significant(v), want)
	}
}

func TestOnlyKataDifferencesAreNamed(t *testing.T) {
	t.Parallel()
	kata := func(name string, config map[string]string) record.Target {
		config["kata config"], config["kata version"], config["handler"] = "/etc/"+name+".toml", "4.1", name
		return record.Target{Name: "cri+containerd/" + name, Config: config}
	}
	runc := record.Target{Name: "cri+containerd/runc", Config: map[string]string{"handler": "runc", "network": "none"}}
	plain, template := kata("kata", map[string]string{"enable_template": "false"}), kata("kata-template", map[string]string{"enable_template": "true", "default_memory": "2048\x1b[31m"})
	s := Configurations([]record.Target{runc, plain, template})
	must.That(t, s != nil, "no section")
	var got [][]string
	for _, row := range s.Table.Rows {
		got = append(got, []string{row[0].Head, row[1].Head, row[2].Head})
	}
	want := [][]string{{"default_memory", None, term.Clean("2048\x1b[31m")}, {"enable_template", "false", "true"}, {"kata config", "/etc/kata.toml", "/etc/kata-template.toml"}}
	check.That(t, slices.EqualFunc(got, want, slices.Equal), "%q, want %q", got, want)
	for claim, targets := range map[string][]record.Target{"no Kata": {runc}, "one Kata": {runc, plain}, "two equal ones": {plain, plain}} {
		s := Configurations(targets)
		check.That(t, s == nil, "%s: %+v", claim, s)
	}
}

func TestTableIsAligned(t *testing.T) {
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
		{"columns are aligned for any script", Options{},
			Table{Columns: []Column{{Title: "name"}, {Title: "ms", Right: true}}, Rows: [][]Cell{Texts("runc", "27.1"), Texts("容器", "138.0")}},
			"name     ms\nrunc   27.1\n容器  138.0\n"},
		{"table without titles has no heading", Options{},
			Table{Indent: 2, Rows: [][]Cell{Texts("a", "b"), Texts("ccc", "d")}},
			"  a    b\n  ccc  d\n"},
		{"no trailing spaces", Options{},
			Table{Rows: [][]Cell{Texts("long name", "x"), Texts("a", "")}},
			"long name  x\na\n"},
		{"spanning row does not affect the columns", Options{},
			Table{Rows: [][]Cell{across(0, "a heading that is long"), Texts("a", "b"), across(4, "remark"), across(4, "")}},
			"a heading that is long\na  b\n    remark\n\n"},
		{"last column is wrapped", Options{Width: 30},
			Table{Rows: [][]Cell{Texts("ok", "one two three four five six")}},
			"ok  one two three four five\n    six\n"},
		{"long word is not split", Options{Width: 30},
			Table{Rows: [][]Cell{Texts("ok", "see /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor now")}},
			"ok  see\n    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\n    now\n"},
		{"cells are escaped", Options{},
			Table{Rows: [][]Cell{Texts("\x1b[2Ja", "b\nc"), across(0, "\u202ed")}},
			"\\x1b[2Ja  b\\nc\n\\u202ed\n"},
		{"rows may differ in length", Options{},
			Table{Columns: []Column{{Title: "n", Right: true}}, Rows: [][]Cell{Texts("1"), Texts("10", "x", "y")}},
			" n\n 1\n10  x  y\n"},
		{"colour has no width", Options{Colour: true},
			Table{Rows: [][]Cell{{{Head: "ok", Style: term.Green}, Words("x")}, Texts("limited", "y")}},
			"\x1b[32mok\x1b[0m       x\nlimited  y\n"},
	} {
		var out bytes.Buffer
		err := c.table.Write(&out, c.o)
		check.That(t, err == nil && out.String() == c.want, "%s: %v, got\n%s\nwant\n%s", c.claim, err, out.String(), c.want)
	}
}

func TestTooWideGroupIsSplit(t *testing.T) {
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
		err := textTable(&out, table, Options{Width: width})
		check.That(t, err == nil && out.String() == want, "in %d columns, %v:\n%s\nwant\n%s", width, err, out.String(), want)
	}
}

func TestNoteNamesRowsWithDependentRounds(t *testing.T) {
	t.Parallel()
	figures := []figure.Figure{
		{Estimate: figure.Estimate{N: 9, Value: 1, Lo: 0.9, Hi: 1.1, Bounded: true, Widened: 2.4}},
		{Estimate: figure.Estimate{N: 9, Value: 1, Lo: 0.9, Hi: 1.1, Bounded: true, Widened: 1}, Versus: &figure.Versus{Widened: 3.1, Shift: figure.Exactly(0.1)}},
		{Estimate: figure.Exactly(1)},
	}
	table := Names("operation")
	table.Columns = append(table.Columns, Column{Title: "runc"}, Column{Title: "crun"}, Column{Title: "vs runc"})
	table.Row(Words("create"), Median(&figures[2]), Median(&figures[0]), Words(None))
	table.Row(Words("run"), Median(&figures[2]), Median(&figures[1]), Change(&figures[1]))
	const want = "; intervals are up to 3.1 times as wide as independent rounds would give, since rounds depend on earlier rounds: create of crun, run of crun"
	check.Equal(t, "Dependent", table.Dependent(), want)
	table.Rows = nil
	check.Equal(t, "no rows", table.Dependent(), "")
}

func TestPrecisionFollowsTheInterval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		value, lo, hi float64
		show          func(float64) string
		want, half    string
	}{
		{"two digits within the noise", 0.107, 0.073, 0.141, Tenths, "0.11", "0.034"},
		{"half-width that begins with 1 has another digit", 0.107, 0.093, 0.121, Tenths, "0.107", "0.014"},
		{"value below 0.1", 0.031, 0.02, 0.035, Tenths, "0.031", "0.011"},
		{"five digits within 7 %", 6579.1e6, 6200e6, 7040e6, Megabytes, "6600", "460"},
		{"five digits within 0.01 %", 6579.1e6, 6579e6, 6579.4e6, Megabytes, "6579.1", "0.30"},
		{"a time within 7 %", 842e3, 800e3, 901e3, Duration, "840 µs", "59 µs"},
		{"a time within 2 %", 24.62e6, 24.3e6, 25.1e6, Duration, "24.6 ms", "480 µs"},
		{"a time within 50 %", 24.62e6, 12e6, 25.1e6, Duration, "25 ms", "13 ms"},
		{"noisy time keeps two digits", 24.62e6, -900e6, 1500e6, Duration, "25 ms", "1.5 s"},
		{"negative value", -150.3, -170, -130, Significant, "-150", "20"},
		{"whole number stays whole", 4, 3.9, 4.1, Count, "4", "0.10"},
		{"equal values keep all digits", 24.62e6, 24.62e6, 24.62e6, Duration, "24.6 ms", "0 s"},
		{"nothing", 0, -1, 1, Tenths, "0.0", "1.0"},
	} {
		e := figure.Estimate{N: 9, Value: tt.value, Lo: tt.lo, Hi: tt.hi, Bounded: true}
		check.Equal(t, tt.name, Rounded(e, tt.show), tt.want)
		check.Equal(t, fmt.Sprintf("%s: half-width", tt.name), HalfOf(e, tt.show), tt.half)
		e.Bounded = false
		got, want := Rounded(e, tt.show), tt.show(tt.value)
		check.That(t, got == want, "%s, without an interval: got %s, want %s", tt.name, got, want)
	}
}

func TestShiftContradictingMediansIsNoted(t *testing.T) {
	t.Parallel()
	of := func(value, shift float64) figure.Pair {
		f := &figure.Figure{Labels: figure.Of("target", "crun"), Unit: figure.Nanoseconds, Estimate: figure.Exactly(value), Versus: &figure.Versus{Shift: figure.Exactly(shift)}}
		return figure.Pair{Base: &figure.Figure{Unit: figure.Nanoseconds, Estimate: figure.Exactly(100)}, Figure: f}
	}
	for name, tt := range map[string]struct {
		pair figure.Pair
		want string
	}{
		"shift and medians increase":        {of(110, 0.05), ""},
		"shift and medians decrease":        {of(90, -0.05), ""},
		"medians increase, shift decreases": {of(102, -0.06), "target=crun the two point in opposite directions (-6.0 %, medians 100 ns and 102 ns)"},
		"medians decrease, shift increases": {of(98, 0.06), "opposite directions (+6.0 %"},
		"no shift":                          {of(98, 0), ""},
		"no base":                           {figure.Pair{Figure: of(1, 1).Figure}, ""},
		"no figure":                         {figure.Pair{Base: of(1, 1).Base}, ""},
	} {
		got := Opposed([]figure.Pair{tt.pair})
		check.That(t, (got == "") == (tt.want == "") && strings.Contains(got, tt.want), "%s: %q", name, got)
	}
}
