package bpf

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// Judgement holds the results of a bpf run. CPU shares named Core are of one core (1 is
// one CPU, all the time); those named Node are of all CPUs of the node.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	CPUs     int // of the node
	Programs []record.Program
	Memory   int64 // bytes of all programs and maps, each once; -1: unknown
	Maps     []mapRow
	Shared   int   // maps used by several programs
	Rows     []Row // load: one per point, in plan order
	Quota    *Quota
	Growth   []MemoryRow // memory: one per number of services
	Imported []string    // sources of imported points; nil: measured
	Found    []record.Finding
	Failed   int // points without figures
	Total    int
}

// mapRow is a map in the list of all maps.
type mapRow struct {
	record.ProgramMap        // Shared is a lower bound
	keeper            string // holders and pins of a map without a program, else ""
}

// Row holds the results of one load point over all rounds.
type Row struct {
	Asked   record.Asked
	Rounds  int
	Failed  int
	Failure *record.Failure
	All     figure.Set // see [rowFigures]
	Errors  int64      // sum over rounds
	Fewest  int64      // requests in the round with the fewest
	// Unsent counts requests that were due in an open loop and never sent. Failures
	// counts errors by reason. Lag (ns) is the delay between due and sent, as the 99th
	// percentile of the worst round.
	Unsent   int64
	Failures map[string]int64
	Lag      int64
	Open     bool   // open loop
	Client   string // load generator and version
	Programs []ProgramRow
	// PriceRounds counts rounds with requests both with and without statistics.
	PriceRounds int
	price       figure.Quotient
}

// ProgramRow is one program in a point.
type ProgramRow struct {
	ID         uint32
	Name       string
	Rate       figure.Figure // runs per second
	Each       figure.Figure // ns of one run
	Core       figure.Figure // share of one core
	PerRequest figure.Figure // runs
	Misses     int64
}

// Quota states whether the programs' time counts against the limit of the workload's
// cgroup.
type Quota struct {
	Limit   float64 // CPUs
	Steps   []QuotaStep
	Verdict QuotaVerdict
	Because []string // facts behind the verdict
	Shared  bool     // programs also ran for processes other than the clients
	Rounds  int
	Agree   int // rounds with the same verdict on their own
}

// QuotaStep is one weight of the programs.
type QuotaStep struct {
	Heavy     int64
	Usage     figure.Figure // CPU time of the cgroup, share of one core
	Ticks     figure.Figure // the same, measured by timer ticks
	BPF       figure.Figure // run time of the programs, share of one core
	Workload  figure.Figure // Usage minus BPF
	Throttled figure.Figure // share of the periods
	QPS       figure.Figure
	facts     []quotaFacts // in round order
}

// QuotaVerdict is the conclusion drawn from the steps.
type QuotaVerdict string

// The verdicts.
const (
	QuotaShared    QuotaVerdict = "counts against the limit" // workload and programs together stay within it
	QuotaBeside    QuotaVerdict = "is not limited"           // programs ran beyond it
	QuotaUndecided QuotaVerdict = "not decided"              // the limit was not reached, or the figures disagree
)

// MemoryRow is the memory of programs and maps at one number of services.
type MemoryRow struct {
	Services  int
	Programs  int64 // bytes
	Maps      int64 // each once
	Each      []record.ProgramMem
	UnderLoad int64 // bytes of both under load; -1: unknown
}
