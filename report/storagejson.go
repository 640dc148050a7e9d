package report

import (
	"time"

	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/record"
)

// storageDocument is the JSON report: bandwidth in bytes a second, latencies in
// ns, runs in s, CPU in CPUs.
type storageDocument struct {
	Version     string             `json:"tare_version"`
	RunID       string             `json:"run_id"`
	Experiment  string             `json:"experiment"`
	Started     time.Time          `json:"started"`
	Command     []string           `json:"command"`
	Environment record.Environment `json:"environment"`
	Status      string             `json:"status"` // "done", "interrupted", "failed", "cut off"
	Why         string             `json:"why,omitempty"`
	Elapsed     int64              `json:"elapsed"` // ns; 0 when cut off
	Storage     *judge.Storage     `json:"storage"`
}

func storageDocumentOf(rec *record.Record, v *judge.Storage) storageDocument {
	h := &rec.Header
	d := storageDocument{
		Version: h.Version, RunID: h.RunID, Experiment: h.Experiment, Started: h.Started, Command: h.Command,
		Environment: h.Environment, Status: status(rec), Storage: v,
	}
	if rec.End != nil {
		d.Why, d.Elapsed = rec.End.Why, rec.End.Elapsed
	}
	return d
}
