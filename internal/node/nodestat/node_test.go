package nodestat

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestRead(t *testing.T) {
	const second = int64(1e9)
	for _, c := range []struct {
		claim         string
		before, after string // folders of testdata, read one second apart
		want          record.Node
	}{
		{"shares are differences of counters", "first", "second", record.Node{
			Load1: 1.5, Known: true, Busy: 0.5, Steal: 0.05,
			HavePSI: true, PSICPU: 0.25, PSIMemory: 0.01, PSIIO: 1}},
		{"iowait may decrease", "first", "iowait-back", record.Node{
			Load1: 1.5, Known: true, Busy: 0.5, Steal: 0.05,
			HavePSI: true, PSICPU: 0.25, PSIMemory: 0.01, PSIIO: 1}},
		{"decreasing busy time", "first", "busy-back", record.Node{Load1: 0.1, HavePSI: true}},
		{"decreasing pressure", "first", "pressure-back", record.Node{Load1: 0.1, HavePSI: true}},
		{"unchanged counters", "first", "first", record.Node{Load1: 0.01, HavePSI: true}},
		{"no PSI", "first", "without-psi", record.Node{
			Load1: 0.1, Known: true, Busy: 0.5, Steal: 0.05}},
	} {
		clock := 7 * second
		r := Reader{Root: machine.Root("testdata/" + c.before), Clock: func() int64 { return clock }}
		first := must.Get(r.Read())(t)
		check.That(t, !first.Known && first.Time == 7*second, "%s: first reading %+v", c.claim, first)
		clock += second
		r.Root = machine.Root("testdata/" + c.after)
		got := must.Get(r.Read())(t)
		c.want.Type, c.want.Time = record.TypeNode, 8*second
		check.That(t, alike(got, c.want), "%s:\n got %+v\nwant %+v", c.claim, got, c.want)
	}
}

// alike compares two readings, except for rounding errors of their shares.
func alike(a, b record.Node) bool {
	for _, p := range [][2]*float64{{&a.Busy, &b.Busy}, {&a.Steal, &b.Steal},
		{&a.PSICPU, &b.PSICPU}, {&a.PSIMemory, &b.PSIMemory}, {&a.PSIIO, &b.PSIIO}} {
		if math.Abs(*p[0]-*p[1]) > 1e-9 {
			return false
		}
		*p[0], *p[1] = 0, 0
	}
	return a == b
}

func TestNewPSIHasNoShareWithoutAnEarlierReading(t *testing.T) {
	before := counters{time: 1}
	now := counters{time: 2e9, cpu: CPU{Busy: 1, Idle: 1}, pressure: pressure{5e6}, havePSI: true}
	n := record.Node{HavePSI: true}
	compare(&n, before, now)
	check.That(t, n.Known && !n.HavePSI && n.PSICPU == 0 && n.Busy == 0.5, "got %+v", n)
}

func TestReadingAfterAFailureHasNoShares(t *testing.T) {
	r := Reader{Root: "testdata/first", Clock: func() int64 { return 1 }}
	must.Get(r.Read())(t)
	for _, root := range []machine.Root{"testdata/broken-psi", "testdata/no-such-folder"} {
		r.Root = root
		n, err := r.Read()
		check.That(t, err != nil && !n.Known, "%s: %+v, %v", root, n, err)
	}
	r.Root = "testdata/second"
	n, err := r.Read()
	check.That(t, err == nil && !n.Known, "after a failed reading: %+v, %v", n, err)
}

func TestReadThisMachine(t *testing.T) {
	var r Reader
	first := must.Get(r.Read())(t)
	second := must.Get(r.Read())(t)
	check.That(t, first.Time > 0 && second.Time > first.Time, "time did not advance: %d, %d", first.Time, second.Time)
}

func TestParseCPU(t *testing.T) {
	for _, c := range []struct {
		claim, in string
		ok        bool
	}{
		{"line of the kernel", "cpu  1817 26676 5673 153548 384 0 63 13 0 0", true},
		{"kernel without guest times", "cpu 1 2 3 4 5 6 7 8", true},
		{"kernel without steal", "cpu 1 2 3 4 5 6 7", false},
		{"line of one CPU", "cpu0 1 2 3 4 5 6 7 8", false},
		{"negative counter", "cpu 1 2 3 -4 5 6 7 8", false},
		{"overflowing counter", "cpu 1 2 3 18446744073709551615 5 6 7 8", false},
		{"nothing", "", false},
	} {
		got, err := parseCPU([]byte(c.in))
		check.That(t, (err == nil) == c.ok, "%s: parseCPU(%q) = %+v, %v", c.claim, c.in, got, err)
	}
}

func TestParsePressure(t *testing.T) {
	for _, c := range []struct {
		claim, in string
		want      uint64
		ok        bool
	}{
		{"line of the kernel", "some avg10=0.03 avg60=0.19 avg300=2.43 total=40243767", 40243767, true},
		{"line full", "full avg10=0.03 avg60=0.19 avg300=2.43 total=40243767", 0, false},
		{"no total", "some avg10=0.03", 0, false},
		{"negative total", "some total=-1", 0, false},
		{"fraction", "some total=1.5", 0, false},
		{"overflowing total", "some total=18446744073709551616", 0, false},
		{"nothing", "", 0, false},
	} {
		got, err := parsePressure(c.in)
		check.That(t, got == c.want && (err == nil) == c.ok, "%s: parsePressure(%q) = %d, %v", c.claim, c.in, got, err)
	}
}

func FuzzParseCPU(f *testing.F) {
	f.Add("cpu  1817 26676 5673 153548 384 0 63 13 0 0", "cpu  1818 26676 5673 153549 384 0 63 14 0 0")
	f.Add("cpu 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 7")
	f.Fuzz(func(t *testing.T, first, second string) {
		before, err1 := parseCPU([]byte(first))
		now, err2 := parseCPU([]byte(second))
		if err1 != nil || err2 != nil {
			return
		}
		busy, steal, ok := now.Since(before)
		check.That(t, ok || busy == 0 && steal == 0, "%q after %q: unknown shares: %v, %v", second, first, busy, steal)
		check.That(t, busy >= 0 && steal >= 0 && busy+steal <= 1+1e-9, "%q after %q: busy %v, steal %v", second, first, busy, steal)
	})
}

func FuzzParsePressure(f *testing.F) {
	f.Add("some avg10=0.03 avg60=0.19 avg300=2.43 total=40243767", "some total=40243768", int64(1e9))
	f.Add("some total=18446744073709551615", "some total=0", int64(-1))
	f.Fuzz(func(t *testing.T, first, second string, elapsed int64) {
		before, err1 := parsePressure(first)
		now, err2 := parsePressure(second)
		if err1 != nil || err2 != nil {
			return
		}
		s, ok := pressure{now}.since(pressure{before}, elapsed)
		check.That(t, (s[0] >= 0 && s[0] <= 1) && (ok || s[0] == 0), "%q after %q in %d ns: %+v, %v", second, first, elapsed, s, ok)
	})
}

func TestOOMKills(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		text string
		want int64 // -1 if unknown
	}{
		"counted since Linux 4.13": {"nr_free_pages 12\noom_kill 3\nnuma_hit 4\n", 3},
		"zero":                     {"oom_kill 0\n", 0},
		"kernel without the line":  {"nr_free_pages 12\nnot_oom_kill 3\n", -1},
		"word":                     {"oom_kill many\n", -1},
		"negative number":          {"oom_kill -3\n", -1},
	} {
		root := t.TempDir()
		must.OK(t, os.MkdirAll(filepath.Join(root, "proc"), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(root, "proc/vmstat"), []byte(c.text), 0o644))
		got := oomKills(machine.Root(root))
		check.That(t, (got == nil) == (c.want < 0) && (got == nil || *got == c.want), "%s: %v, want %d", claim, got, c.want)
	}
	if got := oomKills(machine.Root(t.TempDir())); got != nil {
		t.Errorf("missing file: %d", *got)
	}
}
