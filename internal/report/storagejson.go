package report

import (
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/record"
)

// storageDocument is the JSON report: bandwidth in bytes a second, latencies in
// ns, runs in s, CPU in CPUs.
type storageDocument struct {
	documentHead
	Storage *judge.Storage `json:"storage"`
}

func storageDocumentOf(rec *record.Record, v *judge.Storage) storageDocument {
	return storageDocument{documentHead: headOf(rec), Storage: v}
}
