package bpf

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// Judgement is what can be said of what BPF programs cost. Shares of CPU are of one core
// where they are called Core (1 is one CPU, all the time) and of all CPUs of the
// node where they are called Node; the two are never mixed.
type Judgement struct {
	Record   *record.Record
	Plan     Options
	CPUs     int // of the node
	Programs []record.Program
	Memory   int64 // bytes of all programs and maps, each once; -1: not known
	Maps     []mapRow
	Shared   int   // maps that several of them use
	Rows     []Row // of a load: a row for each point, in the order of the plan
	Quota    *Quota
	Growth   []MemoryRow // of memory: a row for each number of services
	Imported []string    // where all points were imported from; nil: they were measured
	Found    []record.Finding
	Failed   int // points that give no figures
	Total    int
}

// mapRow is a map, each once.
type mapRow struct {
	record.ProgramMap        // Shared is by at least so many programs
	keeper            string // who keeps it where no program uses it, else ""
}

// Row is one point of a load, over the rounds.
type Row struct {
	Asked   record.Asked
	Rounds  int
	Failed  int
	Failure *record.Failure
	All     figure.Set // see [rowFigures]
	Errors  int64      // of all rounds
	Fewest  int64      // requests of the round that had fewest
	// Unsent were due in an open loop and never sent, Failures are the errors by
	// their reason, and Lag (ns) by how much the client was late with what was due,
	// 99th percentile of the worst round.
	Unsent   int64
	Failures map[string]int64
	Lag      int64
	Open     bool   // open loop
	Client   string // what sent it, with its version
	Programs []ProgramRow
	// PriceRounds are those that have requests with and without statistics.
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

// Quota answers whether programs' time counts against the limit of the
// workload's cgroup.
type Quota struct {
	Limit   float64 // CPUs
	Steps   []QuotaStep
	Verdict QuotaVerdict
	Because []string // the facts, with figures
	Shared  bool     // programs ran for others than the clients, too
	Rounds  int
	Agree   int // rounds that by themselves lead to the same verdict
}

// QuotaStep is one weight of the programs.
type QuotaStep struct {
	Heavy     int64
	Usage     figure.Figure // of the cgroup, share of one core
	Ticks     figure.Figure // the same by the tick
	BPF       figure.Figure // of the programs, by their own run time, share of one core
	Workload  figure.Figure // Usage less BPF
	Throttled figure.Figure // share of the periods
	QPS       figure.Figure
	facts     []quotaFacts // in the order of the rounds
}

// QuotaVerdict is what the steps show.
type QuotaVerdict string

// The verdicts.
const (
	QuotaShared    QuotaVerdict = "counts against the limit" // workload and programs together stay within it
	QuotaBeside    QuotaVerdict = "is not limited"           // programs ran beyond it
	QuotaUndecided QuotaVerdict = "not decided"              // the limit was not reached, or the figures disagree
)

// MemoryRow is what programs and maps occupy with so many services.
type MemoryRow struct {
	Services  int
	Programs  int64 // bytes
	Maps      int64 // each once
	Each      []record.ProgramMem
	UnderLoad int64 // bytes of both while it was loaded; -1: it was not
}
