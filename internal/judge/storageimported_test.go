package judge_test

import (
	"testing"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

const (
	mb  = 1e6
	kib = 1 << 10
	gib = 1 << 30
)

var (
	read   = plan.Job{Name: "read", Tool: "fio", RW: "read", BS: 512 * kib, Size: gib, NumJobs: 8}
	write8 = plan.Job{Name: "write", Tool: "fio", RW: "write", BS: 512 * kib, Size: gib, NumJobs: 8}
	rndrw  = plan.Job{Name: "rndrw", Tool: "sysbench", RW: "randrw", BS: 16 * kib, Size: 5 * gib, Files: 10, NumJobs: 16, Requests: 5000}
)

const (
	device = judge.VerdictDevice
	host   = judge.VerdictHostCache
	guest  = judge.VerdictGuestCache
	short  = judge.VerdictTooShort
)

// imported is a record that tare import could have made: the published figures of
// Kata's I/O, whose verdicts package published tests.
func imported(t *testing.T) *record.Record {
	t.Helper()
	rec, err := record.Load("../../published/kata-io/record.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
