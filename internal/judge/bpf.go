package judge

import (
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// BPF is the judgement of what BPF programs cost. Shares of CPU are of one core
// where they are called Core (1 is one CPU, all the time) and of all CPUs of the
// node where they are called Node; the two are never mixed.
type BPF struct {
	Plan     plan.BPF         `json:"plan"`
	CPUs     int              `json:"cpus"` // of the node
	Programs []record.Program `json:"programs"`
	Memory   int64            `json:"memory"` // bytes of all programs and maps, each once; -1: not known
	Shared   int              `json:"shared"` // maps that several of them use
	Rows     []BPFRow         `json:"rows"`   // of a load: a row for each point, in the order of the plan
	Quota    *BPFQuota        `json:"quota,omitempty"`
	Growth   []BPFMemory      `json:"growth,omitempty"` // of memory: a row for each number of services
	Findings []record.Finding `json:"findings"`
	Failed   int              `json:"failed"` // points that give no figures
	Total    int              `json:"total"`
}

// BPFRow is one point of a load, over the rounds.
type BPFRow struct {
	Asked   record.Asked    `json:"asked"`
	Rounds  int             `json:"rounds"`
	Failed  int             `json:"failed"`
	Failure *record.Failure `json:"failure,omitempty"`
	QPS     Estimate        `json:"qps"`
	Errors  int64           `json:"errors"` // of all rounds
	// Unsent were due in an open loop and never sent, Failures are the errors by
	// their reason, and Lag (ns) by how much the client was late with what was due,
	// 99th percentile of the worst round.
	Unsent   int64            `json:"unsent,omitempty"`
	Failures map[string]int64 `json:"failures,omitempty"`
	Lag      int64            `json:"lag,omitempty"`
	Open     bool             `json:"open"` // open loop
	P50      Estimate         `json:"p50"`  // ns, medians over the rounds of each round's own
	P90      Estimate         `json:"p90"`
	P99      Estimate         `json:"p99"`
	P999     Estimate         `json:"p999"`
	// CPU of the load's client and of its server, shares of one core.
	ClientCore Estimate `json:"client_core"`
	ServerCore Estimate `json:"server_core"`
	NodeBusy   Estimate `json:"node_busy"` // share of the node that was not idle
	// BPF is what the programs took, all together, during the load less what they
	// took per second while idle.
	BPFCore    Estimate        `json:"bpf_core"`
	BPFNode    Estimate        `json:"bpf_node"`
	PerRequest Estimate        `json:"per_request"` // ns of BPF
	Programs   []BPFProgramRow `json:"programs"`
	// Price is QPS with the kernel's statistics over QPS without, of the same
	// rounds; Different from 1, and Why.
	Price     Estimate `json:"price"`
	Different bool     `json:"different"`
	// PriceRounds are those that Price is of: with and without statistics.
	PriceRounds int    `json:"price_rounds"`
	Why         string `json:"why,omitempty"`
}

// BPFProgramRow is one program in a point.
type BPFProgramRow struct {
	ID         uint32   `json:"id"`
	Name       string   `json:"name"`
	Rate       Estimate `json:"rate"`        // runs per second
	Each       Estimate `json:"each"`        // ns of one run
	Core       Estimate `json:"core"`        // share of one core
	PerRequest Estimate `json:"per_request"` // runs
	Misses     int64    `json:"misses"`
}

// BPFQuota answers whether programs' time counts against the limit of the
// workload's cgroup.
type BPFQuota struct {
	Limit   float64        `json:"limit"` // CPUs
	Steps   []BPFQuotaStep `json:"steps"`
	Verdict QuotaVerdict   `json:"verdict"`
	Because []string       `json:"because"` // the facts, with figures
	Rounds  int            `json:"rounds"`
	Agree   int            `json:"agree"` // rounds that by themselves lead to the same verdict
}

// BPFQuotaStep is one weight of the programs.
type BPFQuotaStep struct {
	Heavy     int64    `json:"heavy"`
	Usage     Estimate `json:"usage"`     // of the cgroup, share of one core
	Ticks     Estimate `json:"ticks"`     // the same by the tick
	BPF       Estimate `json:"bpf"`       // of the programs, by their own run time, share of one core
	Workload  Estimate `json:"workload"`  // Usage less BPF
	Throttled Estimate `json:"throttled"` // share of the periods
	QPS       Estimate `json:"qps"`
}

// QuotaVerdict is what the steps show.
type QuotaVerdict string

// The verdicts.
const (
	QuotaShared    QuotaVerdict = "counts against the limit" // workload and programs together stay within it
	QuotaBeside    QuotaVerdict = "is not limited"           // programs ran beyond it
	QuotaUndecided QuotaVerdict = "not decided"              // the limit was not reached, or the figures disagree
)

// BPFMemory is what programs and maps occupy with so many services.
type BPFMemory struct {
	Services  int                 `json:"services"`
	Programs  int64               `json:"programs"` // bytes
	Maps      int64               `json:"maps"`     // each once
	Each      []record.ProgramMem `json:"each"`
	UnderLoad int64               `json:"under_load"` // bytes of both while it was loaded; -1: it was not
}
