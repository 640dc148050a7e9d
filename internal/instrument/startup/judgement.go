package startup

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/record"
)

// Judgement is what can be said of starts: watched live, or put together from logs.
type Judgement struct {
	Record  *record.Record // its header, targets and end; of logs the starts need not be there
	Plan    Options
	Live    bool // watched, not read from logs or notes
	Targets []Target
	Logs    *record.Logs // what was read
	Found   []record.Finding
	Failed  int // starts that give no times
	Total   int
}

// Target is where the time of one target's starts went.
type Target struct {
	Target  string
	Engine  string // whose the time between the runtime's calls is: "docker"
	Method  string
	Clock   string
	Command string
	Starts  int // with times
	Failed  int
	NoEnd   int // that began and have no end, in logs
	// Failure is the first.
	Failure    *record.Failure
	Wall       figure.Figure // from the call to its return
	First      figure.Figure // to the workload's first instruction
	FirstBy    figure.Figure // until when that was at the latest, of starts of which it is not known
	Ready      figure.Figure // until the workload was ready, of starts in which it was asked from outside
	ReadyTo    figure.Figure // how exactly that is known
	Request    figure.Figure // how long the first request took that had a good answer
	Calls      figure.Figure // of it in the OCI runtime's calls
	EngineTime figure.Figure // the engine's: in each start its wall time less calls, and less the workload's time where the call waits for its end
	CPU        figure.Figure // used by all processes of the start, the daemon included
	// Table is the start as calls and what lies between them, in order: of those
	// starts that went the way that most went, which Same counts.
	Table []Step
	Same  int
	// Phases are the start's time by what was at work, in the order of their first
	// appearance. In each start they add up to its wall time; their medians need not.
	Phases []Step
	// Gaps are the waits of all its starts, by what they lie between, the one with
	// the largest median first.
	Gaps []Gap
	// Guests are the clocks of the VMs, of logs.
	Guests []record.GuestClock
	// Drawn is the start whose wall time is closest to the median, or the slowest where
	// those are asked for.
	Drawn *Drawn
	// Chosen are the starts that traces hold.
	Chosen []*Drawn
	// Every are its starts, those that took longest first; of many a random choice.
	Every []startValues
	// Watching is wall time watched over wall time not watched, of the same rounds.
	Watching    figure.Figure
	WatchingCPU figure.Figure // CPU time of the watching over that of the start
}

// Step is one step of a start, over the rounds.
type Step struct {
	Name  string
	Kind  string
	Took  figure.Figure
	CPU   figure.Figure // used meanwhile by all processes of the start
	Share float64       // of the median wall time
	Times float64       // how often it appears in a start; medians add them up
}

// Gap is a wait.
type Gap struct {
	record.Gap // the longest of its kind
	Took       figure.Figure
	Seen       int // starts that have it
	Round      int
}

// Drawn is one start, to be drawn.
type Drawn struct {
	Start *record.Start
	Rows  []trace.Row
	Parts []trace.Part
	Gaps  []record.Gap
	Took  map[string]int64 // ns of it in the runtime's calls, in the workload that the call waited for, and in a VMM that worked alone, by their kinds
}
