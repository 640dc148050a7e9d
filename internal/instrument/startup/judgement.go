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
	Live    bool // watched, not from logs or notes
	Targets []Target
	Logs    *record.Logs // statistics of the logs
	Found   []record.Finding
	Failed  int // starts without times
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
	FirstBy    figure.Figure // upper bound of First, for starts with an unknown First
	Ready      figure.Figure // until the workload was ready, for starts polled from outside
	ReadyTo    figure.Figure // resolution of Ready
	Request    figure.Figure // duration of the first successful request
	Calls      figure.Figure // part of Wall in calls of the OCI runtime
	EngineTime figure.Figure // wall time without calls, and without the workload if the call waits for its end
	CPU        figure.Figure // used by all processes of the start and the daemon
	// Table is the start as a sequence of calls and the time between them. It covers the
	// starts with the most frequent sequence. Same is the number of these starts.
	Table []Step
	Same  int
	// Phases are the times of the start by activity, in order of first appearance. In each
	// start they sum to the wall time. Their medians need not.
	Phases []Step
	// Gaps are the waits of all starts, grouped by the events around them. They are sorted
	// by median, longest first.
	Gaps []Gap
	// Guests are the clocks of the VMs in the logs.
	Guests []record.GuestClock
	// Drawn is the start to draw. It is the start closest to the median wall time, or the
	// slowest on request.
	Drawn *Drawn
	// Chosen are the starts to write into a trace.
	Chosen []*Drawn
	// Every lists the starts, slowest first. If there are too many, it is a random sample.
	Every []startValues
	// Watching is the ratio of watched to unwatched wall time of the same rounds.
	Watching    figure.Figure
	WatchingCPU figure.Figure // CPU time of the watch divided by that of the start
}

// Step is a step of a start, over all rounds.
type Step struct {
	Name  string
	Kind  string
	Took  figure.Figure
	CPU   figure.Figure // of all processes of the start during the step
	Share float64       // of the median wall time
	Times float64       // occurrences per start; the medians cover all of them together
}

// Gap is a wait between two events, in one or more starts.
type Gap struct {
	record.Gap // the longest gap of this kind
	Took       figure.Figure
	Seen       int // number of starts with this gap
	Round      int
}

// Drawn is a start to draw, with its rows, parts and gaps.
type Drawn struct {
	Start *record.Start
	Rows  []trace.Row
	Parts []trace.Part
	Gaps  []record.Gap
	Took  map[string]int64 // ns by kind: in runtime calls, in a workload that the call waits for, in a VMM alone
}
