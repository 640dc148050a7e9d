// Package storage measures how much I/O performance a runtime costs. It runs fio,
// dd or sysbench on every target and volume, with direct I/O or through the page
// cache.
//
// An I/O figure means little until it is known whether a disk or a cache answered.
// Therefore every cell gets a verdict. It compares the bytes that the tool
// reports with the bytes that the device saw in the same time.
//
// This package holds the options, the judgement of a record, its figures and its
// page. Package tool parses the tools' output, and package run schedules.
package storage

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// Name is the name of the instrument as a verb, as a key in plans and in records.
const Name = "storage"

// Judgement is the evaluation of a storage run or of imported results.
type Judgement struct {
	Record   *record.Record // each cell occurs once
	Plan     Options
	Imported bool // from tools' output: there are no node readings
	Targets  []record.Target
	Tables   []*Table         // one for each job, volume and cache, in the order of the plan
	Ceilings []record.Ceiling // per volume and device, the better of before and after the rounds
	Found    []record.Finding
	Failed   int // cells without figures, round by round
	Total    int

	Comparisons int // number of comparisons with the base, over all jobs

	bounds map[string][]bound // by volume
}

// Table holds the cells of one job on one volume with one cache mode.
type Table struct {
	Job    string
	Tool   string
	RW     string
	BS     int64
	Volume string
	Cache  string
	Base   string  // the target that ratios refer to, see [Judgement.bases]; "" if there is none
	Cells  []*Cell // in the order of Targets; cells without a value are missing

	job  Job   // from the plan; only the name is set if the plan lacks the job
	base *Cell // the cell of Base
	// primary is the quantity that comparisons use: bandwidth, or iops for blocks of up to
	// 64 KiB.
	primary string
}

// Cell is one target in a table. Its figures are medians over the rounds. They include
// unknown ones. The first figures of a quantity are those of both directions together.
type Cell struct {
	figure.Set
	Target   string
	Rounds   int // with figures
	Failed   int
	Failure  *record.Failure // the first failure
	Absent   string          // why the volume is unavailable on this target
	Versions []string        // of the tool, including failed rounds
	Command  string          // as this target ran it, from the first round that has one
	Verdict  Verdict
	Because  []string // the facts behind the verdict; the first one decides

	// directions are label values: the direction of the job, or both, read and write; "" if
	// nothing moved.
	directions []string

	judge  *Judgement
	table  *Table
	info   *record.Target
	place  *record.Place  // nil if not recorded
	trials []*record.Cell // rounds with figures
	facts  evidence       // over all rounds
	alone  []Verdict      // verdict of each round alone, in the order of trials
}

// latencies are the latency statistics that tools print. extreme marks minimum and
// maximum: they describe one run, not the distribution over several runs, so only
// imported figures have them. A page omits a statistic if the one named by unless
// is known and says more. sysbench reports only the mean and p95.
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

// Verdict classifies the figures of a cell by what answered the I/O.
type Verdict string

// The verdicts. The first rule that matches decides, see docs/storage.md.
const (
	Device     Verdict = "device"      // the reported I/O reached the device
	HostCache  Verdict = "host cache"  // served by memory of the host or of the device
	GuestCache Verdict = "guest cache" // served by memory inside the sandbox
	NotDirect  Verdict = "not direct"  // O_DIRECT was requested and had no effect
	TooShort   Verdict = "too short"
	Throttled  Verdict = "throttled"
	Noisy      Verdict = "noisy"
	// Contradicted means that the tool's report conflicts with its process or the device.
	Contradicted Verdict = "contradicted"
	// NotContradicted means that there are no node readings, and that the known limits
	// do not conflict with the tool's report.
	NotContradicted Verdict = "not contradicted"
	Unjudged        Verdict = "" // no figures, or no limits to compare them with
)

// Result returns the failed and total cells over all rounds, and the findings.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}

// Figures returns the figures of every cell, of the file systems in each sandbox and
// of the devices. Each figure of a cell has the cell's verdict, and the first one
// its reasons. Otherwise a program could take a figure of a cache for one of a disk.
func (j *Judgement) Figures() (all []figure.Figure) {
	for _, c := range j.cells() {
		all = append(all, c.figures()...)
	}
	all = append(all, fileSystems(j.Record.Places)...)
	for i := range j.Ceilings {
		all = append(all, ceilingFigures(&j.Ceilings[i])...)
	}
	return all
}

// figures returns the cell's bandwidth even if unknown, and all other known figures.
func (c *Cell) figures() (all []figure.Figure) {
	for i, f := range c.Set {
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

// reasons returns why the cell is absent, why it failed, or the facts of its verdict.
func (c *Cell) reasons() []string {
	switch {
	case c.Absent != "":
		return []string{c.Absent}
	case c.Rounds == 0 && c.Failure != nil:
		return []string{c.Failure.Detail}
	}
	return c.Because
}
