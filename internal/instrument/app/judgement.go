package app

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// Judgement is what can be said of a service on several targets.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	Baseline string // "" where there is one target only
	CPUs     int    // of the node
	Tables   []Table
	Found    []record.Finding
	Failed   int // windows without figures, or with requests that failed
	Total    int

	compared []compared // by table
}

// compared is how many figures were compared together, in so many rounds at most.
type compared struct {
	title               string
	comparisons, rounds int
}

// Table is what all targets did alone, or beside one neighbour.
type Table struct {
	Neighbour string // "" alone
	Rows      []*Row
}

// Row is one target in a table, over the rounds.
type Row struct {
	Target    string
	Neighbour string
	Rounds    int // with figures
	Failed    int // without
	Failure   *record.Failure
	Requests  int64 // of all rounds
	Errors    int64 // of those
	Unsent    int64 // due in an open loop and never sent
	Fewest    int64 // answers of the round that had fewest
	Causes    map[string]int64
	Client    string // what sent it, with its version
	URL       string

	Throughput   figure.Figure   // 1/s
	Latency      []figure.Figure // ns, at the quantiles of [quantiles]
	Ready        figure.Figure   // ns from the start of the workload to its first answer
	First        figure.Figure   // ns of the first request
	Resolution   float64         // ns, of Ready, the widest
	AtMost       int             // windows whose workload was ready when it was asked first: Ready is the latest that can be
	Asked        int             // windows with a Ready
	Partly       int             // windows in which the CPU time of some role is not known
	PartlyBeside int             // those in which that of the neighbour's sandbox is not
	Errored      figure.Figure   // share of the requests
	CPU          []figure.Figure // of a request, by role; of all of the target's roles together first
	ClientCPU    figure.Figure   // CPU of a request in the client
	BesideCPU    figure.Figure   // CPUs that the neighbour's sandbox used
	Busy         figure.Figure   // CPUs of the node
	Steal        figure.Figure

	// How many times that of the same round alone, of which Kept is compared with what the
	// baseline keeps; and of the same round on the host.
	Kept, P99OfAlone figure.Figure
	OfHost           figure.Figure
	Pressed          []figure.Figure // for which share of a window a task waited, by who waited for what

	clientShare, limitShare float64 // the largest of a round
	held                    float64 // the same: for how long its CPUs were held back, all of them together, ÷ time
	windows                 []*Window
}
