package report

import (
	"time"

	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/record"
)

// startupDocument is the JSON report. Times are ns: of estimates and gaps lengths, of
// the start that is drawn moments on its own clock.
type startupDocument struct {
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
	Startup     *judge.Startup     `json:"startup"`
}

func startupDocumentOf(rec *record.Record, v *judge.Startup) startupDocument {
	h := &rec.Header
	d := startupDocument{
		Version: h.Version, RunID: h.RunID, Experiment: h.Experiment, Started: h.Started, Command: h.Command,
		Environment: h.Environment, Status: status(rec), TimeUnit: "ns", Startup: v,
	}
	if rec.End != nil {
		d.Why, d.Elapsed = rec.End.Why, rec.End.Elapsed
	}
	return d
}
