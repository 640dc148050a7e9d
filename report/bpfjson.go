package report

import (
	"time"

	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/record"
)

// bpfDocument is the JSON report. Times are ns; shares of CPU are of one core where
// they are called core, and of all CPUs of the node where they are called node.
type bpfDocument struct {
	Version     string             `json:"tare_version"`
	RunID       string             `json:"run_id"`
	Experiment  string             `json:"experiment"`
	Started     time.Time          `json:"started"`
	Command     []string           `json:"command"`
	Environment record.Environment `json:"environment"`
	Status      string             `json:"status"` // "done", "interrupted", "failed", "cut off"
	Why         string             `json:"why,omitempty"`
	Elapsed     int64              `json:"elapsed"` // ns; 0 when cut off
	TimeUnit    string             `json:"time_unit"`
	BPF         *judge.BPF         `json:"bpf"`
}

func bpfDocumentOf(rec *record.Record, v *judge.BPF) bpfDocument {
	h := &rec.Header
	d := bpfDocument{
		Version: h.Version, RunID: h.RunID, Experiment: h.Experiment, Started: h.Started, Command: h.Command,
		Environment: h.Environment, Status: status(rec), TimeUnit: "ns", BPF: v,
	}
	if rec.End != nil {
		d.Why, d.Elapsed = rec.End.Why, rec.End.Elapsed
	}
	return d
}
