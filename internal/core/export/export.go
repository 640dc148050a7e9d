// Package export writes figures in formats for programs. Each format is one function. It takes
// the same documents as all others and does not depend on the instruments, whose results are
// in their figures; see docs/figures.md.
package export

import (
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// Document is a run for export: its record, its figures and its findings.
type Document struct {
	Record   *record.Record // header, targets and end
	Figures  []figure.Figure
	Findings []record.Finding
	Failed   int
	Total    int
	Apart    figure.Labels // labels that distinguish runs of one experiment; nil: the run ID
}

// head has the first fields of every JSON document.
type head struct {
	Version     string             `json:"tare_version"`
	RunID       string             `json:"run_id"`
	Experiment  string             `json:"experiment"`
	Started     time.Time          `json:"started,omitzero"`
	Command     []string           `json:"command"`
	Environment record.Environment `json:"environment"`
	Status      string             `json:"status"` // "done", "interrupted", "failed", "cut off"
	Why         string             `json:"why,omitempty"`
	Elapsed     int64              `json:"elapsed"` // ns; 0 when cut off
}

func headOf(rec *record.Record) head {
	h := &rec.Header
	out := head{
		Version: h.Version, RunID: h.RunID, Experiment: h.Experiment, Started: h.Started, Command: h.Command,
		Environment: h.Environment, Status: "cut off",
	}
	if rec.End != nil {
		out.Status, out.Why, out.Elapsed = rec.End.Status, rec.End.Why, rec.End.Elapsed
	}
	return out
}
