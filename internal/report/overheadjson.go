package report

import (
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/record"
)

// overheadDocument is the JSON report: memory in bytes, CPU in CPUs, times of
// traces in seconds.
type overheadDocument struct {
	documentHead
	Overhead *judge.Overhead `json:"overhead"`
}

func overheadDocumentOf(rec *record.Record, v *judge.Overhead) overheadDocument {
	return overheadDocument{documentHead: headOf(rec), Overhead: v}
}
