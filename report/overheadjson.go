package report

import (
	"time"

	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/record"
)

// overheadDocument is the JSON report: memory in bytes, CPU in CPUs, times of
// traces in seconds.
type overheadDocument struct {
	Version     string             `json:"tare_version"`
	RunID       string             `json:"run_id"`
	Experiment  string             `json:"experiment"`
	Started     time.Time          `json:"started"`
	Command     []string           `json:"command"`
	Environment record.Environment `json:"environment"`
	Status      string             `json:"status"` // "done", "interrupted", "failed", "cut off"
	Why         string             `json:"why,omitempty"`
	Elapsed     int64              `json:"elapsed"` // ns; 0 when cut off
	Overhead    *judge.Overhead    `json:"overhead"`
}

func overheadDocumentOf(rec *record.Record, v *judge.Overhead) overheadDocument {
	h := &rec.Header
	d := overheadDocument{
		Version: h.Version, RunID: h.RunID, Experiment: h.Experiment, Started: h.Started, Command: h.Command,
		Environment: h.Environment, Status: status(rec), Overhead: v,
	}
	if rec.End != nil {
		d.Why, d.Elapsed = rec.End.Why, rec.End.Elapsed
	}
	return d
}
