// Package storage is the instrument that asks what I/O a runtime loses: fio, dd
// or sysbench on every target, on each kind of volume, past the page cache or
// through it.
//
// A figure of I/O is worth little before it is known what answered: a disk, or
// memory somewhere on the way. So most of the judgement is a verdict on each cell,
// made of what the tool says it moved and of what the device saw meanwhile.
//
// Here are its options, its judgement of a record, its figures and its page. Package tool knows
// the tools and what they print, and run schedules.
package storage

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// Name of the instrument: its verb, its key in a plan, its word in a record.
const Name = "storage"

// Judgement is what can be said of a storage run, or of what was imported.
type Judgement struct {
	Record   *record.Record // with every cell once
	Plan     Options
	Imported bool // from what tools had said: nothing was seen from outside
	Targets  []record.Target
	Tables   []*Table         // one for each job, volume and cache, in the order of the plan
	Places   []record.Place   // what the volumes are
	Ceilings []record.Ceiling // of each volume's device the best of before and after
	Found    []record.Finding
	Failed   int // cells without figures, round by round
	Total    int

	Comparisons int // with the base, of all jobs

	bounds map[string][]bound // by volume
}

// Table is one job on one volume with one cache.
type Table struct {
	Job     string
	Tool    string
	RW      string
	BS      int64
	Volume  string
	Cache   string
	Command string  // of the first cell that has one; each has its own
	Base    string  // the target whose figures are 1, see [Judgement.bases]; "": there is none
	Cells   []*Cell // in the order of Targets; those without a value are absent

	job    Job   // of the plan; with a name only where that has none such
	base   *Cell // of Base
	byIOPS bool  // the primary figure is IOPS, not bandwidth
}

// Cell is one target in a table. Its figures are medians over the rounds.
type Cell struct {
	Target   string
	Rounds   int // with figures
	Failed   int
	Failure  *record.Failure // the first
	Absent   string          // why the volume cannot be had on this target
	Versions []string        // of the tool, that of failed rounds too
	Command  string          // of the first round that has one, as this target ran it
	Read     Flow
	Write    Flow
	Total    Flow // both directions: latency is that of the one there is, none of a mixture
	RunTime  figure.Figure
	// LayoutTime and LayoutRate are of the job's files, which the probe inside wrote and
	// synced before; unknown where the host's did, for all targets.
	LayoutTime figure.Figure
	LayoutRate figure.Figure
	// CPU is what was used on average while the job ran, by the workload inside, and
	// by everything else of the target: runtime, sentry, gofer, shim, VMM, vCPU,
	// virtiofsd, monitor, daemon. CPUPerByte is their sum for what was moved.
	WorkloadCPU figure.Figure
	RuntimeCPU  figure.Figure
	CPUPerByte  figure.Figure
	// Ratio is Total's primary figure (bandwidth, or IOPS for blocks of up to
	// 64 KiB) over that of Base in the same round; CPURatio likewise of CPUPerByte.
	Ratio    figure.Figure
	CPURatio figure.Figure
	Verdict  Verdict
	Because  []string // the facts that decided, the first the decisive one
	// Reached is the part of the claimed bytes that the device saw; DeviceRead and
	// DeviceWritten are bytes at the device in a round.
	Reached       figure.Figure
	DeviceRead    figure.Figure
	DeviceWritten figure.Figure

	judge  *Judgement
	table  *Table
	info   *record.Target
	place  *record.Place  // nil: not recorded
	trials []*record.Cell // those with figures, by round
	facts  evidence       // of all rounds together
	alone  []Verdict      // of each round by itself, as trials
}

// Flow is one direction, or both together.
type Flow struct {
	Bytes     figure.Figure // that a round moved
	Bandwidth figure.Figure
	IOPS      figure.Figure
	Latency   [len(latencies)]figure.Figure // each round's own quantile
}

// latencies are the statistics that tools print of the time that one I/O took.
// Extremes are of one run: they say nothing of a distribution that several runs
// draw, so that only imported figures have them. A page leaves a statistic out where
// another is known that says more, unless; sysbench has nothing but a mean and p95.
var latencies = [...]struct {
	name    string
	of      func(*record.Latency) int64
	extreme bool
	unless  string
}{
	{"min", func(l *record.Latency) int64 { return l.Min }, true, ""},
	{"mean", func(l *record.Latency) int64 { return l.Mean }, false, "p50"},
	{"p50", func(l *record.Latency) int64 { return l.P50 }, false, ""},
	{"p95", func(l *record.Latency) int64 { return l.P95 }, false, "p99"},
	{"p99", func(l *record.Latency) int64 { return l.P99 }, false, ""},
	{"p99.9", func(l *record.Latency) int64 { return l.P999 }, false, ""},
	{"max", func(l *record.Latency) int64 { return l.Max }, true, ""},
}

// latency is that of a name in latencies.
func (f *Flow) latency(name string) *figure.Figure {
	for i := range latencies {
		if latencies[i].name == name {
			return &f.Latency[i]
		}
	}
	return nil
}

// Verdict says what a cell's figures are figures of.
type Verdict string

// The verdicts. A cell is judged by the first rule that applies, see
// docs/storage.md.
const (
	Device     Verdict = "device"      // what the tool says went to the device and back
	HostCache  Verdict = "host cache"  // memory of the host, or of the device, answered
	GuestCache Verdict = "guest cache" // memory inside the sandbox answered
	NotDirect  Verdict = "not direct"  // O_DIRECT was asked for and had no effect
	TooShort   Verdict = "too short"
	Throttled  Verdict = "throttled"
	Noisy      Verdict = "noisy"
	// Contradicted: what the tool says cannot be true of its own process or of the device.
	Contradicted Verdict = "contradicted"
	// Of what nobody looked at, a tool's word is all there is: it stands beside what
	// could speak against it, or beside nothing.
	NotContradicted Verdict = "not contradicted"
	Unjudged        Verdict = "" // it has no figures, or there is nothing to hold them against
)

// Result is how many cells failed of how many, round by round, and what is to be
// mistrusted.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}

// Figures are all of the run's: of every cell, of the file systems in each
// sandbox, and of the devices. Each has its cell's verdict, and the first its
// reasons: a figure is not to be taken for a disk's by whom nobody warned.
func (j *Judgement) Figures() (all []figure.Figure) {
	for _, c := range j.cells() {
		all = append(all, c.figures()...)
	}
	for i := range j.Places {
		p := &j.Places[i]
		for k := range p.Mounts {
			f := fileSystemOf(p, &p.Mounts[k])
			all = append(all, f.size, f.free)
		}
	}
	for i := range j.Ceilings {
		all = append(all, ceilingFigures(&j.Ceilings[i])...)
	}
	return all
}

// figures are the cell's bandwidth, also where there is none, and of the others
// those that there are. A direction has its own where there are two.
func (c *Cell) figures() []figure.Figure {
	flows := []*Flow{&c.Total}
	if c.mixed() {
		flows = append(flows, &c.Read, &c.Write)
	}
	var some []figure.Figure
	for _, f := range flows {
		some = append(append(some, f.Bandwidth, f.IOPS, f.Bytes), f.Latency[:]...)
	}
	some = append(some, c.RunTime, c.LayoutTime, c.LayoutRate, c.WorkloadCPU, c.RuntimeCPU, c.CPUPerByte, c.Ratio, c.CPURatio, c.Reached, c.DeviceRead, c.DeviceWritten)
	var all []figure.Figure
	for i, f := range some {
		if i > 0 && !f.Known() {
			continue
		}
		f.Verdict = c.says()
		if i == 0 {
			f.Reasons = c.reasons()
		}
		all = append(all, f)
	}
	return all
}

// reasons of what the cell says.
func (c *Cell) reasons() []string {
	switch {
	case c.Absent != "":
		return []string{c.Absent}
	case c.Rounds == 0 && c.Failure != nil:
		return []string{c.Failure.Detail}
	}
	return c.Because
}
