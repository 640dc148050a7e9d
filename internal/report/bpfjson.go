package report

import (
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/record"
)

// bpfDocument is the JSON report. Times are ns; shares of CPU are of one core where
// they are called core, and of all CPUs of the node where they are called node.
type bpfDocument struct {
	documentHead
	TimeUnit string     `json:"time_unit"`
	BPF      *judge.BPF `json:"bpf"`
}

func bpfDocumentOf(rec *record.Record, v *judge.BPF) bpfDocument {
	return bpfDocument{documentHead: headOf(rec), TimeUnit: "ns", BPF: v}
}
