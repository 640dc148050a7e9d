package plan

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/terms"
)

// Instruments are all that there are.
func Instruments() []Instrument {
	return []Instrument{
		{"lifecycle", "How long each operation takes on each target.", func() option.Options { o := lifecycle.Defaults(); return &o }},
		{"overhead", "Whose memory and CPU a sandbox uses, and which cgroup is charged.", func() option.Options { o := overhead.Defaults(); return &o }},
		{"storage", "What I/O a runtime loses.", func() option.Options { o := storage.Defaults(); return &o }},
		{"startup", "Where the seconds of a start go.", func() option.Options { o := startup.Defaults(); return &o }},
		{"bpf", "What eBPF programs cost, and whose limit pays.", func() option.Options { o := bpf.DefaultsOfLoad(); return &o }},
	}
}

// The names that instruments' options had before they moved to the instruments.
type (
	Lifecycle    = lifecycle.Options
	Overhead     = overhead.Options
	Storage      = storage.Options
	Startup      = startup.Options
	BPF          = bpf.Options
	Job          = storage.Job
	Volume       = storage.Volume
	Section      = storage.Section
	Option       = storage.FioOption
	Drop         = storage.Drop
	Phase        = overhead.Phase
	PhaseKind    = overhead.PhaseKind
	PodFixed     = overhead.PodFixed
	StartCommand = startup.Command
	Engines      = terms.Engines
	Missing      = terms.Missing
)

const (
	MissingFail       = terms.MissingFail
	MissingSkip       = terms.MissingSkip
	ToolFio           = storage.ToolFio
	ToolDD            = storage.ToolDD
	ToolSysbench      = storage.ToolSysbench
	DropNode          = storage.DropNode
	DropFiles         = storage.DropFiles
	RWRead            = storage.RWRead
	RWWrite           = storage.RWWrite
	RWRandRead        = storage.RWRandRead
	RWRandWrite       = storage.RWRandWrite
	RWRandRW          = storage.RWRandRW
	MaxJobFiles       = storage.MaxJobFiles
	MaxFile           = storage.MaxFile
	MaxJobName        = storage.MaxJobName
	MaxSections       = storage.MaxSections
	MaxOptions        = storage.MaxOptions
	DefaultEngine     = storage.DefaultEngine
	PhaseIdle         = overhead.PhaseIdle
	PhaseFio          = overhead.PhaseFio
	PhaseHold         = overhead.PhaseHold
	PhaseSpin         = overhead.PhaseSpin
	MaxCommandName    = startup.MaxCommandName
	DatapathReference = bpf.DatapathReference
	MinLoad           = bpf.MinLoad
)

var (
	Defaults           = lifecycle.Defaults
	DefaultsOfOverhead = overhead.Defaults
	DefaultsOfStorage  = storage.Defaults
	DefaultsOfStartup  = startup.Defaults
	DefaultsOfBPF      = bpf.DefaultsOfLoad
	DefaultsOfQuota    = bpf.DefaultsOfQuota
	DefaultsOfMemory   = bpf.DefaultsOfMemory
	DefaultJobs        = storage.DefaultJobs
	ParseVolume        = storage.ParseVolume
	ParseFioSize       = storage.ParseFioSize
	ParseFioTime       = storage.ParseFioTime
	FormatSize         = storage.FormatSize
	ParsePhase         = overhead.ParsePhase
	WithIdle           = overhead.WithIdle
)
