package startup

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/record"
)

// Judgement is the result for starts that were watched live or read from logs.
type Judgement struct {
	Record  *record.Record // header, targets and end; may lack the starts of logs
	Plan    Options
	Live    bool // watched, not read from logs or notes
	Targets []Target
	Logs    *record.Logs // what was read
	Found   []record.Finding
	Failed  int // starts that give no times
	Total   int
}

// Target is the result for the starts of one target.
type Target struct {
	Target  string
	Engine  string // owner of the time between runtime calls: "docker"
	Method  string
	Clock   string
	Command string
	Starts  int // starts with times
	Failed  int
	NoEnd   int // starts in logs without an end
	// Failure is the first failure.
	Failure    *record.Failure
	Wall       figure.Figure // from the call to its return
	First      figure.Figure // to the workload's first instruction
	FirstBy    figure.Figure // upper bound of First, for starts in which it is unknown
	Ready      figure.Figure // until the workload was ready, for starts polled from outside
	ReadyTo    figure.Figure // resolution of Ready
	Request    figure.Figure // duration of the first successful request
	Calls      figure.Figure // part of Wall in calls of the OCI runtime
	EngineTime figure.Figure // wall time per start without calls, and without the workload if the call waits for its end
	CPU        figure.Figure // used by all processes of the start and the daemon
	// Table is the start as calls and the time between them, in order. It covers the
	// starts with the most frequent sequence of steps; Same is their number.
	Table []Step
	Same  int
	// Phases are the time of the start by activity, in order of first appearance. They
	// sum to the wall time in each start; their medians need not.
	Phases []Step
	// Gaps are the waits of all starts, by the events around them. The largest median
	// comes first.
	Gaps []Gap
	// Guests are the clocks of the VMs in logs.
	Guests []record.GuestClock
	// Drawn is the start with the wall time closest to the median, or the slowest on
	// request.
	Drawn *Drawn
	// Chosen are the starts in a trace.
	Chosen []*Drawn
	// Every lists the starts, slowest first; of many it is a random sample.
	Every []startValues
	// Watching is the ratio of watched to unwatched wall time in the same rounds.
	Watching    figure.Figure
	WatchingCPU figure.Figure // CPU time of the watch divided by that of the start
}

// Step is one step of a start, over the rounds.
type Step struct {
	Name  string
	Kind  string
	Took  figure.Figure
	CPU   figure.Figure // of all processes of the start during the step
	Share float64       // of the median wall time
	Times float64       // occurrences per start; medians add them up
}

// Gap is a wait.
type Gap struct {
	record.Gap // the longest of its kind
	Took       figure.Figure
	Seen       int // starts with this gap
	Round      int
}

// Drawn is a start to draw.
type Drawn struct {
	Start *record.Start
	Rows  []trace.Row
	Parts []trace.Part
	Gaps  []record.Gap
	Took  map[string]int64 // ns in runtime calls, in a workload the call waited for, and in a VMM working alone, by kind
}
