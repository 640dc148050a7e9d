// Package bpflist shows which BPF programs are loaded and what they cost: as a
// table, JSON, CSV or OpenMetrics, once or live. It is what `tare bpf list` does.
//
// A [collector] reads package meter/bpf at both ends of an interval and makes a
// [View], which the rest of the package prints. Shares are told both of one core and
// of the node, since 12.99 % of a core is 1.62 % of eight.
package bpflist

import (
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/record"
)

// SchemaVersion of [View] as JSON.
const SchemaVersion = 1

// View is what there is to be seen at a moment.
type View struct {
	Schema int       `json:"schema"`
	Time   time.Time `json:"time"`
	// Interval is what rates are over, seconds; 0: there are none.
	Interval float64 `json:"interval"`
	CPUs     int     `json:"cpus"` // of the node
	// Counted says that statistics were on; Before, that others had them on before.
	Counted bool `json:"statistics"`
	Before  bool `json:"statistics_before"`

	Programs []Program           `json:"programs"`
	Maps     []record.ProgramMap `json:"maps"` // that they use
	Total    Total               `json:"total"`

	// loaded is how many programs there are beside those that were chosen, where none
	// was; else 0.
	loaded int

	Came     int      `json:"came"` // programs, in the interval
	Went     int      `json:"went"`
	Problems []string `json:"problems"`
}

// Program is one with its counters.
type Program struct {
	record.Program
	// Runs, Time (ns) and Misses are since it was loaded, as far as statistics were
	// on.
	Runs   uint64 `json:"runs"`
	Time   uint64 `json:"run_time"`
	Misses uint64 `json:"recursion_misses"`
	Gone   bool   `json:"gone,omitempty"` // went in the interval; its last counters
	// Rate is of the interval; nil: there was none.
	Rate *Rate `json:"rate,omitempty"`
}

// Rate is what a program, or all of them, did in an interval.
type Rate struct {
	Runs   uint64  `json:"runs"`
	PerSec float64 `json:"runs_per_second"`
	Mean   float64 `json:"mean"` // ns of a run; 0 where there was none
	Core   float64 `json:"core"` // share of one core: 1 is all of it
	Node   float64 `json:"node"` // share of all of the node's
	Misses uint64  `json:"recursion_misses"`
}

// Total is of all programs that are shown.
type Total struct {
	Programs int   `json:"programs"`
	Maps     int   `json:"maps"`
	Shared   int   `json:"shared"`  // maps that more than one program uses
	Memory   int64 `json:"memory"`  // bytes, each map once
	Unknown  int   `json:"unknown"` // programs and maps whose memory is not known, and not in it
	Rate     *Rate `json:"rate,omitempty"`
}

// reading is the counters of some programs at a moment.
type reading struct {
	at       int64 // ns of CLOCK_MONOTONIC
	counters map[uint32]bpfstat.Counters
}

func readingOf(at int64, list []bpfstat.Counters) reading {
	r := reading{at: at, counters: make(map[uint32]bpfstat.Counters, len(list))}
	for _, c := range list {
		r.counters[c.ID] = c
	}
	return r
}

// shortest is the least time that says anything of rates.
const shortest = 10 * time.Millisecond

// newView puts programs together with what they did since before. gone are those
// that went since, with their last counters.
func newView(l *bpfstat.Listing, gone []record.Program, last []bpfstat.Counters, before *reading, cpus int) *View {
	v := &View{Schema: SchemaVersion, CPUs: cpus, Programs: make([]Program, 0, len(l.Programs)+len(gone)), Maps: used(l), Problems: l.Problems}
	if v.Problems == nil {
		v.Problems = []string{}
	}
	if before != nil && l.At-before.at < int64(shortest) {
		before = nil
	}
	if before != nil {
		v.Interval = float64(l.At-before.at) / 1e9
	}
	for i := range l.Programs {
		v.add(l.Programs[i], l.Counters[i], before, false)
	}
	for i := range gone {
		v.add(gone[i], last[i], before, true)
	}
	v.Went = len(gone)
	if l.Gone > 0 {
		v.Problems = append(v.Problems, fmt.Sprintf("programs or maps that went while they were looked at: %d", l.Gone))
	}
	v.Total.Programs, v.Total.Maps = len(l.Programs), len(v.Maps)
	v.Total.Memory, v.Total.Shared = bpfstat.Total(l.Programs)
	v.Total.Unknown = unweighed(l, v.Maps)
	v.sum()
	return v
}

// used are the maps of the programs that are listed.
func used(l *bpfstat.Listing) []record.ProgramMap {
	ids := map[uint32]bool{}
	for i := range l.Programs {
		for _, a := range l.Programs[i].Maps {
			ids[a.ID] = true
		}
	}
	maps := make([]record.ProgramMap, 0, len(ids))
	for _, a := range l.Maps {
		if ids[a.ID] {
			maps = append(maps, a)
		}
	}
	return maps
}

// unweighed counts programs and maps whose memory is not known.
func unweighed(l *bpfstat.Listing, maps []record.ProgramMap) (n int) {
	for i := range l.Programs {
		if l.Programs[i].Memory < 0 {
			n++
		}
	}
	for i := range maps {
		if maps[i].Memory < 0 {
			n++
		}
	}
	return n
}

// add takes in a program. One that was not there before began with nothing.
func (v *View) add(p record.Program, c bpfstat.Counters, before *reading, gone bool) {
	row := Program{Program: p, Runs: c.Count, Time: c.Time, Misses: c.Misses, Gone: gone}
	if before != nil && v.Interval > 0 {
		was, known := before.counters[p.ID]
		if !known {
			v.Came++
		}
		row.Rate = v.rate(since(was.Count, c.Count), since(was.Time, c.Time), since(was.Misses, c.Misses))
	}
	v.Programs = append(v.Programs, row)
}

// since is how much a counter grew. One that is less than before is another's.
func since(before, now uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

func (v *View) rate(runs, ns, misses uint64) *Rate {
	r := &Rate{Runs: runs, PerSec: float64(runs) / v.Interval, Core: float64(ns) / 1e9 / v.Interval, Misses: misses}
	r.Node = r.Core / float64(max(1, v.CPUs))
	if runs > 0 {
		r.Mean = float64(ns) / float64(runs)
	}
	return r
}

// sum adds up the rates.
func (v *View) sum() {
	if v.Interval <= 0 {
		return
	}
	sum, ns := &Rate{}, 0.0
	for i := range v.Programs {
		r := v.Programs[i].Rate
		sum.Runs, sum.PerSec, sum.Core, sum.Node = sum.Runs+r.Runs, sum.PerSec+r.PerSec, sum.Core+r.Core, sum.Node+r.Node
		sum.Misses += r.Misses
		ns += r.Mean * float64(r.Runs)
	}
	if sum.Runs > 0 {
		sum.Mean = ns / float64(sum.Runs)
	}
	v.Total.Rate = sum
}
