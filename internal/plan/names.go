package plan

import (
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/terms"
)

// The names that instruments' options had before they moved to the instruments.
type (
	Lifecycle = lifecycle.Options
	Overhead  = overhead.Options
	Storage   = storage.Options
	Startup   = startup.Options
	Job       = storage.Job
	Section   = storage.Section
	Option    = storage.FioOption
	Phase     = overhead.Phase
	PhaseKind = overhead.PhaseKind
	PodFixed  = overhead.PodFixed
	Missing   = terms.Missing
)

const (
	ToolFio      = storage.ToolFio
	ToolDD       = storage.ToolDD
	ToolSysbench = storage.ToolSysbench
	PhaseIdle    = overhead.PhaseIdle
	PhaseFio     = overhead.PhaseFio
	PhaseHold    = overhead.PhaseHold
	PhaseSpin    = overhead.PhaseSpin
)

var (
	Defaults           = lifecycle.Defaults
	DefaultsOfOverhead = overhead.Defaults
	DefaultsOfStorage  = storage.Defaults
	DefaultsOfStartup  = startup.Defaults
	ParsePhase         = overhead.ParsePhase
	WithIdle           = overhead.WithIdle
)
