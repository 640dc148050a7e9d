package page

import (
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
)

func TestMarkdownEscapes(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a bar", "a|b", `a\|b`},
		{"a bar after a backslash", `a\|b`, `a\\\|b`},
		{"a tag", "<img>", "&lt;img&gt;"},
		{"a backtick", "`x`", "\\`x\\`"},
		{"a newline, as term.Clean writes it", "a\nb", `a\\nb`},
		{"an image", "![x](y)", `!\[x\](y)`},
		{"emphasis", "*a* _b_ ~c~", `\*a\* \_b\_ \~c\~`},
		{"but not a product", "100 * create", "100 * create"},
		{"nor the sign of no difference", "~ (p=0.481)", "~ (p=0.481)"},
	} {
		if got := escaped(tt.text); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0 s", 8.5: "8.50 ns", 842: "842 ns", 999.4: "999 ns", 999.6: "1.00 µs", 842e3: "842 µs", 999_600: "1.00 ms",
		24.62e6: "24.6 ms", 9.994e6: "9.99 ms", 9.996e6: "10.0 ms", 99.96e6: "100 ms", 1.934e9: "1.93 s", 1234.5e9: "1234 s",
		-24.62e6: "-24.6 ms", math.Inf(1): "?",
	} {
		if got := Duration(ns); got != want {
			t.Errorf("%v: got %s, want %s", ns, got, want)
		}
	}
	if got := Duration(math.NaN()); got != "?" {
		t.Errorf("NaN: got %s", got)
	}
}

// A residual, and memory that was given back, are below zero.
func TestAmountsBelowZeroHaveTheirUnitsToo(t *testing.T) {
	for want, got := range map[string]string{
		"-4.30 MiB": Text(-4513792, figure.Bytes), "-1.00 KiB": Growth(-1024), "-842 B": Memory(-842), "+84.0 KiB": Growth(86016), "0": Growth(0),
		"-24.6 ms": Text(-24.62e6, figure.Nanoseconds), "-150": Significant(-150.3), "-15.0": Significant(-15.03), "-0.05": Significant(-0.05),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAnIntervalBelowZeroIsAsWellKnownAsOneAbove(t *testing.T) {
	for want, e := range map[string]figure.Estimate{
		"±20 %":  {N: 9, Value: -100, Lo: -120, Hi: -90, Bounded: true},
		"±25 %":  {N: 9, Value: 100, Lo: 90, Hi: 125, Bounded: true},
		"±0.5 %": {N: 9, Value: -100, Lo: -100.5, Hi: -100, Bounded: true},
		"±?":     {N: 9, Value: 0, Lo: -1, Hi: 1, Bounded: true},
	} {
		if got := HalfWidth(e); got != want {
			t.Errorf("%+v: got %s, want %s", e, got, want)
		}
	}
	if got := HalfWidth(figure.Estimate{N: 3, Value: -100}); got != "±?" {
		t.Errorf("of too few rounds it is %s", got)
	}
}

func TestAChangeIsShownOnlyWhereThereIsOne(t *testing.T) {
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
		{"of what has no ratio", figure.Versus{Verdict: stat.Different}, "differs"},
	} {
		if got := Change(&figure.Figure{Estimate: figure.Exactly(1), Versus: &tt.v}).joined(0); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestARateThatThereIsNeverLooksLikeNone(t *testing.T) {
	for bytes, want := range map[float64]string{
		0: "0.00", 420: "0.00042", 41_000: "0.041", 1.23e6: "1.23", 9.994e6: "9.99", 9.996e6: "10.0", 111.42e6: "111.4", 6579.1e6: "6579.1",
		math.NaN(): "?", math.Inf(1): "?",
	} {
		if got := Megabytes(bytes); got != want {
			t.Errorf("%v bytes/s: got %s, want %s", bytes, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0.00", 0.0003: "0.0003", 0.0996: "0.10", 0.5: "0.50", 316: "316", 766021: "766021"} {
		if got := Significant(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

func TestANoteNamesTheRowsWhoseRoundsDependOnEachOther(t *testing.T) {
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
	const want = "; intervals are up to 3.1 times as wide as independent rounds would give, since rounds depend on those before them: create of crun, run of crun"
	if got := table.Dependent(); got != want {
		t.Errorf("got %s", got)
	}
	table.Rows = nil
	if got := table.Dependent(); got != "" {
		t.Errorf("of no rows: %s", got)
	}
}
