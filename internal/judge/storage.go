package judge

import (
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// Storage is the judgement of a storage run, or of what was imported.
type Storage struct {
	Plan     plan.Storage     `json:"plan"`
	Imported bool             `json:"imported,omitempty"` // from what tools had said: nothing was seen from outside
	Targets  []record.Target  `json:"targets"`
	Tables   []StorageTable   `json:"tables"`   // one for each job, volume and cache, in the order of the plan
	Places   []record.Place   `json:"places"`   // what the volumes are
	Ceilings []record.Ceiling `json:"ceilings"` // of each volume's device the best of before and after
	Findings []record.Finding `json:"findings"`
	Failed   int              `json:"failed"` // cells without figures, round by round
	Total    int              `json:"total"`
}

// StorageTable is one job on one volume with one cache.
type StorageTable struct {
	Job     string        `json:"job"`
	Tool    string        `json:"tool"`
	RW      string        `json:"rw,omitempty"`
	BS      int64         `json:"bs,omitempty"`
	Volume  string        `json:"volume"`
	Cache   string        `json:"cache"`
	Command string        `json:"command,omitempty"` // of the first cell that has one; each has its own
	Base    string        `json:"base,omitempty"`    // the target whose figures are 1: host, where it is there
	Cells   []StorageCell `json:"cells"`             // in the order of Targets; those without a value are absent
}

// StorageCell is one target in a table. Figures are medians over the rounds with
// an interval at [Confidence]; latencies are medians over the rounds of each
// round's own quantile.
type StorageCell struct {
	Target   string          `json:"target"`
	Rounds   int             `json:"rounds"` // with figures
	Failed   int             `json:"failed"`
	Failure  *record.Failure `json:"failure,omitempty"`  // the first
	Absent   string          `json:"absent,omitempty"`   // why the volume cannot be had on this target
	Versions []string        `json:"versions,omitempty"` // of the tool, that of failed rounds too
	Command  string          `json:"command,omitempty"`  // of the first round that has one, as this target ran it
	Read     StorageFlow     `json:"read"`
	Write    StorageFlow     `json:"write"`
	Total    StorageFlow     `json:"total"` // both directions: bandwidth and IOPS added up; latency is that of the one there is, none of a mixture
	Seconds  Estimate        `json:"seconds"`
	// CPU is what was used on average while the job ran, in CPUs: by the workload
	// inside, and by everything else of the target (runtime, sentry, gofer, shim,
	// VMM, vCPU, virtiofsd, monitor, daemon). PerGiB is their sum in CPU seconds
	// per GiB that was moved.
	WorkloadCPU Estimate `json:"workload_cpu"`
	RuntimeCPU  Estimate `json:"runtime_cpu"`
	CPUPerGiB   Estimate `json:"cpu_per_gib"`
	// Ratio is Total's primary figure (bandwidth, or IOPS for blocks of up to
	// 64 KiB) over that of Base in the same round; CPURatio likewise of CPUPerGiB.
	Ratio     Estimate `json:"ratio"`
	Different bool     `json:"different"` // from Base, see stat.Compare
	Why       string   `json:"why,omitempty"`
	CPURatio  Estimate `json:"cpu_ratio"`
	Verdict   Verdict  `json:"verdict"`
	// Because are the facts that decided, with figures, the first the decisive one.
	Because []string `json:"because"`
	// Reached is the part of the claimed bytes that the device saw; Known false
	// where nothing was seen from outside.
	Reached      float64 `json:"reached"`
	ReachedKnown bool    `json:"reached_known"`
	// SeenRead and SeenWrite are bytes at the device, medians over the rounds.
	SeenRead  float64 `json:"seen_read"`
	SeenWrite float64 `json:"seen_write"`
}

// StorageFlow is one direction.
type StorageFlow struct {
	Bytes     float64  `json:"bytes"`     // that a round moved, median
	Bandwidth Estimate `json:"bandwidth"` // bytes/s
	IOPS      Estimate `json:"iops"`
	Mean      Estimate `json:"mean"` // ns
	P50       Estimate `json:"p50"`
	P95       Estimate `json:"p95"`
	P99       Estimate `json:"p99"`
	P999      Estimate `json:"p999"`
	// Min and Max are of imported figures, which are of one run: they say nothing of
	// a distribution that several runs draw.
	Min Estimate `json:"min"`
	Max Estimate `json:"max"`
}

// Estimate is a median with its interval. Known is false where there is no value;
// Lo and Hi are those of the value where there are too few rounds for an interval,
// and Bounded is false then.
type Estimate struct {
	Value   float64 `json:"value"`
	Lo      float64 `json:"lo"`
	Hi      float64 `json:"hi"`
	Known   bool    `json:"known"`
	Bounded bool    `json:"bounded"`
}

// Verdict says what a cell's figures are figures of.
type Verdict string

// The verdicts. A cell is judged by the first rule that applies, see
// docs/storage.md.
const (
	VerdictDevice     Verdict = "device"      // what the tool says went to the device and back
	VerdictHostCache  Verdict = "host cache"  // memory of the host, or of the device, answered
	VerdictGuestCache Verdict = "guest cache" // memory inside the sandbox answered
	VerdictNotDirect  Verdict = "not direct"  // O_DIRECT was asked for and had no effect
	VerdictTooShort   Verdict = "too short"
	VerdictThrottled  Verdict = "throttled"
	VerdictNoisy      Verdict = "noisy"
	VerdictUnjudged   Verdict = "" // it has no figures
)
