// Package bpflist shows the loaded BPF programs and their cost as a table, JSON or
// OpenMetrics, once or live. It implements `tare bpf list`.
// A [collector] reads package bpfstat at both ends of an interval and makes a [View],
// which the rest of the package prints. CPU is shown as a share of one core and of the
// node, because 12.99 % of a core is 1.62 % of eight.
package bpflist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/record"
)

// schemaVersion is the version of [View] in JSON.
const schemaVersion = 1

// View is the state at one moment.
type View struct {
	Schema int       `json:"schema"`
	Time   time.Time `json:"time"`
	// Interval is the interval of the rates in seconds; 0: no rates.
	Interval float64 `json:"interval"`
	CPUs     int     `json:"cpus"` // of the node
	// Counted reports whether statistics were on. Before reports whether another
	// process had enabled them before.
	Counted bool `json:"statistics"`
	Before  bool `json:"statistics_before"`

	Programs []Program           `json:"programs"`
	Maps     []record.ProgramMap `json:"maps"`        // used by Programs
	Loose    []record.Map        `json:"unused_maps"` // used by no loaded program
	Total    Total               `json:"total"`

	// loaded is the number of loaded programs if the filter matches none, else 0.
	loaded int

	Came     int      `json:"came"` // programs that appeared in the interval
	Went     int      `json:"went"`
	Passed   int      `json:"passed"` // lower bound for programs that appeared and disappeared within the interval
	Problems []string `json:"problems"`
}

// Program is a program with its counters.
type Program struct {
	record.Program
	// Runs, Time (ns) and Misses count since the program was loaded, while statistics
	// were on.
	Runs   uint64 `json:"runs"`
	Time   uint64 `json:"run_time"`
	Misses uint64 `json:"recursion_misses"`
	Gone   bool   `json:"gone,omitempty"` // unloaded in the interval; counters are its last ones
	// Rate is the activity in the interval, or nil without one.
	Rate *Rate `json:"rate,omitempty"`
}

// Rate is the activity of a program, or of all, in an interval.
type Rate struct {
	Runs   uint64  `json:"runs"`
	PerSec float64 `json:"runs_per_second"`
	Mean   float64 `json:"mean"` // ns per run; 0 without runs
	Core   float64 `json:"core"` // share of one core
	Node   float64 `json:"node"` // share of all cores of the node
	Misses uint64  `json:"recursion_misses"`
}

// Total is the sum over the listed programs.
type Total struct {
	Programs int   `json:"programs"`
	Maps     int   `json:"maps"`
	Shared   int   `json:"shared"`  // maps used by several programs
	Memory   int64 `json:"memory"`  // bytes, each map once
	Unknown  int   `json:"unknown"` // programs and maps of unknown memory, not in Memory
	Rate     *Rate `json:"rate,omitempty"`
}

// shortest is the minimum interval for rates.
const shortest = 10 * time.Millisecond

// newView returns the view of a listing, with rates since the previous one, before. If it is
// nil, there are no rates. Programs unloaded since then are included with their last counters.
func newView(l, before *bpfstat.Listing, cpus int) *View {
	v := &View{Schema: schemaVersion, CPUs: cpus, Programs: []Program{}, Maps: append([]record.ProgramMap{}, l.Maps...), Loose: append([]record.Map{}, l.Loose...), Problems: append([]string{}, l.Problems...)}
	was := map[uint32]int{} // index in before, by id
	if before != nil {
		for i, c := range before.Counters {
			was[c.ID] = i
		}
		if passed := l.At - before.At; passed >= int64(shortest) {
			v.Interval = float64(passed) / 1e9
		}
	}
	var all bpfstat.Counters // of the interval
	add := func(p record.Program, c bpfstat.Counters, gone bool) {
		row := Program{Program: p, Runs: c.Count, Time: c.Time, Misses: c.Misses, Gone: gone}
		if v.Interval > 0 {
			var had bpfstat.Counters // 0 for a new program
			if at, known := was[p.ID]; known {
				had = before.Counters[at]
			} else {
				v.Came++
			}
			grew := bpfstat.Counters{Count: since(had.Count, c.Count), Time: since(had.Time, c.Time), Misses: since(had.Misses, c.Misses)}
			row.Rate = v.rate(&grew)
			all.Count, all.Time, all.Misses = all.Count+grew.Count, all.Time+grew.Time, all.Misses+grew.Misses
		}
		v.Programs = append(v.Programs, row)
	}
	for i := range l.Programs {
		add(l.Programs[i], l.Counters[i], false)
	}
	if v.Interval > 0 {
		v.Passed = l.Passed
	}
	for _, last := range l.Went {
		if at, known := was[last.ID]; known {
			add(before.Programs[at], last, true)
			v.Went++
		}
	}
	if l.Gone > 0 {
		v.Problems = append(v.Problems, fmt.Sprintf("programs or maps removed while they were read: %d", l.Gone))
	}
	v.sum(l)
	if v.Interval > 0 {
		v.Total.Rate = v.rate(&all)
	}
	return v
}

// allMaps returns the maps used by programs, followed by the unused ones.
func (v *View) allMaps() []record.ProgramMap {
	all := slices.Clone(v.Maps)
	for i := range v.Loose {
		all = append(all, v.Loose[i].Map)
	}
	return all
}

// since returns the growth of a counter. A smaller value than before counts as no
// growth.
func since(before, now uint64) uint64 {
	return max(before, now) - before
}

// rate returns the rate of counters that grew by this amount in the interval.
func (v *View) rate(by *bpfstat.Counters) *Rate {
	r := &Rate{Runs: by.Count, PerSec: float64(by.Count) / v.Interval, Core: float64(by.Time) / 1e9 / v.Interval, Misses: by.Misses}
	r.Node = r.Core / float64(max(1, v.CPUs))
	if by.Count > 0 {
		r.Mean = float64(by.Time) / float64(by.Count)
	}
	return r
}

// sum sets the totals.
func (v *View) sum(l *bpfstat.Listing) {
	t := &v.Total
	maps := v.allMaps()
	t.Programs, t.Maps = len(l.Programs), len(maps)
	add := func(bytes int64) {
		t.Memory += max(0, bytes)
		if bytes < 0 {
			t.Unknown++
		}
	}
	for i := range l.Programs {
		add(l.Programs[i].Memory)
	}
	for i := range maps {
		a := &maps[i]
		if add(a.Memory); a.Memory >= 0 && a.InnerMemory != 0 {
			add(a.InnerMemory)
		}
		if a.Shared > 1 {
			t.Shared++
		}
	}
}

// name returns the longest known name of the program, or "".
func (p *Program) name() string { return cmp.Or(p.Full, p.Name) }

// where returns the text if the value is known, else "".
func where(known bool, text string) string {
	if !known {
		return ""
	}
	return text
}

func decimal(f float64, digits int) string { return strconv.FormatFloat(f, 'f', digits, 64) }

func whole[T uint64 | uint32 | int64 | int](n T) string { return fmt.Sprint(n) }
