package storage_test

import (
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const (
	mb  = 1e6
	mib = 1 << 20
	kib = 1 << 10
	gib = 1 << 30
)

var (
	read   = storage.Job{Name: "read", Tool: "fio", RW: "read", BS: 512 * kib, Size: gib, NumJobs: 8}
	write8 = storage.Job{Name: "write", Tool: "fio", RW: "write", BS: 512 * kib, Size: gib, NumJobs: 8}
	rndrw  = storage.Job{Name: "rndrw", Tool: "sysbench", RW: "randrw", BS: 16 * kib, Size: 5 * gib, Files: 10, NumJobs: 16, Requests: 5000}
)

const (
	device = storage.Device
	host   = storage.HostCache
	guest  = storage.GuestCache
	short  = storage.TooShort
)

// imported is a record that tare import could have made: the published figures of
// Kata's I/O, whose verdicts package published tests.
func imported(t *testing.T) *record.Record {
	t.Helper()
	rec, err := record.Load("../../../published/kata-io/record.jsonl")
	must.OK(t, err)
	return rec
}
