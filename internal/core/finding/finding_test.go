package finding

import (
	"runtime"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

func TestAdviceOnAWorkloadDependsOnTheCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure record.Failure
		want    string
	}{
		"missing program":            {record.Failure{Exit: 127, Output: "tare-probe/1 x 1\ntare-probe: cannot run /nosuch: no such program: errno 2\n"}, "check its path"},
		"program without permission": {record.Failure{Exit: 126, Output: "tare-probe: cannot run /x: errno 13\n"}, "check its path"},
		"exit code 127 of a shell":   {record.Failure{Exit: 127, Output: "sh: x: not found"}, "OOM kill"},
		"killed":                     {record.Failure{Exit: 137}, "OOM kill"},
	} {
		c.failure.Kind = record.FailWorkload
		check.Contains(t, name, Advice(&c.failure), c.want)
	}
}

func TestMemoryOfDuplicateLinesGrowsLinearly(t *testing.T) {
	taken := func(n int) uint64 {
		rec := &record.Record{Batches: make([]record.Batch, n)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		once := Once(rec)
		runtime.ReadMemStats(&after)
		if len(once.Batches) != 1 || once.ProblemCount != n-1 || len(once.Problems) != min(n-1, record.MaxProblems) || rec.Problems != nil {
			t.Errorf("%d lines: %d batches, %d problems, %d kept", n, len(once.Batches), once.ProblemCount, len(once.Problems))
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	taken(10)
	if small, large := taken(1000), taken(4000); large > 8*small { // quadratic growth would be a factor of 16
		t.Errorf("1000 lines take %d bytes, 4000 take %d", small, large)
	}
}

func TestTooFewRoundsForIntervalsAndComparisons(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rounds, need  int
		message, more string
	}{
		"one round has no interval":                 {1, 0, "1 round gives no 95 % interval", "--rounds 6 or"},
		"five rounds have no interval":              {5, 12, "5 rounds give no 95 % interval", "--rounds 12 or"},
		"six rounds cannot show a difference":       {6, 12, "6 rounds cannot show a difference", "--rounds 12 or"},
		"six rounds without comparisons are enough": {6, 0, "", ""},
		"no rounds":                 {0, 12, "", ""},
		"required number of rounds": {12, 12, "", ""},
	} {
		f, few := TooFew(c.rounds, c.need, 0)
		if few != (c.message != "") || !strings.HasPrefix(f.Message, c.message) || !strings.Contains(f.Advice, c.more) {
			t.Errorf("%s: %v %+v", name, few, f)
		}
	}
}
