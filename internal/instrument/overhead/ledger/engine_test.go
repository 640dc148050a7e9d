package ledger

import (
	"math"
	"testing"

	"github.com/tare-bench/tare/record"
)

func TestWhatAnEngineSaysOfCPUIsByItsOwnLooksAtEachSandbox(t *testing.T) {
	t.Parallel()
	const second = int64(1e9)
	says := func(at int64, looks ...record.Statistic) *record.Reading {
		for i := range looks {
			looks[i].Source, looks[i].Lane = "kubelet summary", i
		}
		return &record.Reading{Time: at * second, Sandboxes: 2, Engine: looks}
	}
	look := func(at, cpu int64) record.Statistic { return record.Statistic{Time: at * second, CPU: cpu * second} }
	for name, c := range map[string]struct {
		begin, end *record.Reading
		want       float64
	}{
		"at other times":       {says(100, look(90, 0), look(99, 0)), says(130, look(110, 10), look(129, 3)), 0.6},
		"at its own times":     {says(100, look(0, 0), look(0, 0)), says(120, look(0, 10), look(0, 4)), 0.7},
		"once at one of both":  {says(100, look(90, 1), look(99, 1)), says(130, look(110, 10), look(99, 1)), -1},
		"not at all at one":    {says(100, look(90, 1), look(99, 1)), says(130, look(110, 10)), -1},
		"at one that is newer": {says(100, look(90, 1)), says(130, look(110, 10), look(129, 3)), -1},
	} {
		b := books{begin: c.begin, end: c.end}
		if got := b.engineCPU("kubelet summary"); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g CPUs, want %g", name, got, c.want)
		}
	}
}
