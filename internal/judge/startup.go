package judge

import (
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// Startup is the judgement of starts: watched live, or put together from logs or
// notes. Times are ns.
type Startup struct {
	Plan     plan.Startup     `json:"plan"`
	Live     bool             `json:"live"` // watched, not read from logs or notes
	Targets  []StartupTarget  `json:"targets"`
	Logs     *record.Logs     `json:"logs,omitempty"` // what was read
	Findings []record.Finding `json:"findings"`
	Failed   int              `json:"failed"` // starts that give no times
	Total    int              `json:"total"`
}

// StartupTarget is where the time of one target's starts went.
type StartupTarget struct {
	Target  string `json:"target"`
	Engine  string `json:"engine"` // whose the time between the runtime's calls is: "docker"
	Method  string `json:"method"`
	Clock   string `json:"clock"`
	Command string `json:"command,omitempty"`
	Starts  int    `json:"starts"` // with times
	Failed  int    `json:"failed"`
	NoEnd   int    `json:"no_end,omitempty"` // that began and have no end, in logs
	// Failure is the first.
	Failure *record.Failure `json:"failure,omitempty"`
	Wall    Estimate        `json:"wall"`    // from the call to its return
	First   Estimate        `json:"first"`   // to the workload's first instruction
	Calls   Estimate        `json:"calls"`   // of it in the OCI runtime's calls
	Credits Estimate        `json:"credits"` // the engine's: in each start its wall time less calls, and less the workload's time where the call waits for its end
	CPU     Estimate        `json:"cpu"`     // used by all processes of the start, the daemon included
	// Table is the start as calls and what lies between them, in order: of those
	// starts that went the way that most went, which Same counts.
	Table []StartupStep `json:"table"`
	Same  int           `json:"same"`
	// Phases are the start's time by what was at work, in the order of their first
	// appearance. In each start they add up to its wall time; their medians need not.
	Phases []StartupStep `json:"phases"`
	// Gaps are the waits of all its starts, by what they lie between, the one with
	// the largest median first.
	Gaps []StartupGap `json:"gaps"`
	// Guests are the clocks of the VMs, of logs.
	Guests []record.GuestClock `json:"guests,omitempty"`
	// Drawn is the start whose wall time is closest to the median.
	Drawn *StartupDrawn `json:"drawn,omitempty"`
	// Watching is wall time watched over wall time not watched, of the same rounds.
	Watching    Estimate `json:"watching"`
	WatchingCPU Estimate `json:"watching_cpu"` // CPU time of the watching over that of the start
	Different   bool     `json:"different"`    // Watching, see stat.Compare
	Why         string   `json:"why,omitempty"`
}

// StartupStep is one step of a start, over the rounds.
type StartupStep struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	Took  Estimate `json:"took"`
	CPU   Estimate `json:"cpu"`   // used meanwhile by all processes of the start
	Share float64  `json:"share"` // of the median wall time
	Times float64  `json:"times"` // how often it appears in a start; medians add them up
}

// StartupGap is a wait.
type StartupGap struct {
	record.Gap          // the longest of its kind
	Took       Estimate `json:"took"`
	Seen       int      `json:"seen"` // starts that have it
	Round      int      `json:"round"`
}

// StartupDrawn is one start, to be drawn.
type StartupDrawn struct {
	Start *record.Start `json:"start"`
	Rows  []trace.Row   `json:"rows"`
	Parts []trace.Part  `json:"parts"`
	Gaps  []record.Gap  `json:"gaps"`
	// Calls and Workload are ns of it in the runtime's calls, and in the workload
	// that the call waited for.
	Calls    int64 `json:"calls"`
	Workload int64 `json:"workload,omitempty"`
}
