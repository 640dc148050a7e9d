// Package bpflist shows which BPF programs are loaded and what they cost: as a
// table, JSON or OpenMetrics, once or live. It is what `tare bpf list` does.
//
// A [collector] reads package bpfstat at both ends of an interval and makes a
// [View], which the rest of the package prints. Shares are told both of one core and
// of the node, since 12.99 % of a core is 1.62 % of eight.
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

// schemaVersion of [View] as JSON.
const schemaVersion = 1

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
	Maps     []record.ProgramMap `json:"maps"`        // that they use
	Loose    []record.Map        `json:"unused_maps"` // that no loaded program uses
	Total    Total               `json:"total"`

	// loaded is how many programs there are beside those that were chosen, where none
	// was; else 0.
	loaded int

	Came     int      `json:"came"` // programs, in the interval
	Went     int      `json:"went"`
	Passed   int      `json:"passed"` // came and went within it, of all programs, at least
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

// shortest is the least time that says anything of rates.
const shortest = 10 * time.Millisecond

// newView puts programs together with what they did since a listing before, nil for
// none. Those that went since are in it with their last counters.
func newView(l, before *bpfstat.Listing, cpus int) *View {
	v := &View{Schema: schemaVersion, CPUs: cpus, Programs: []Program{}, Maps: append([]record.ProgramMap{}, l.Maps...), Loose: append([]record.Map{}, l.Loose...), Problems: append([]string{}, l.Problems...)}
	was := map[uint32]int{} // places in before
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
			var had bpfstat.Counters // one that was not there before began with nothing
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
		v.Problems = append(v.Problems, fmt.Sprintf("programs or maps that went while they were looked at: %d", l.Gone))
	}
	v.sum(l)
	if v.Interval > 0 {
		v.Total.Rate = v.rate(&all)
	}
	return v
}

// allMaps are those that programs use, and the others.
func (v *View) allMaps() []record.ProgramMap {
	all := slices.Clone(v.Maps)
	for i := range v.Loose {
		all = append(all, v.Loose[i].Map)
	}
	return all
}

// since is how much a counter grew. One that is less than before is another's.
func since(before, now uint64) uint64 {
	return max(before, now) - before
}

// rate is what programs did that grew by so much in the interval.
func (v *View) rate(by *bpfstat.Counters) *Rate {
	r := &Rate{Runs: by.Count, PerSec: float64(by.Count) / v.Interval, Core: float64(by.Time) / 1e9 / v.Interval, Misses: by.Misses}
	r.Node = r.Core / float64(max(1, v.CPUs))
	if by.Count > 0 {
		r.Mean = float64(by.Time) / float64(by.Count)
	}
	return r
}

// sum is what all are together.
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

// name is all of a program's name that is known, "" where it has none.
func (p *Program) name() string { return cmp.Or(p.Full, p.Name) }

// where is a text of what is known, else "".
func where(known bool, text string) string {
	if !known {
		return ""
	}
	return text
}

func decimal(f float64, digits int) string { return strconv.FormatFloat(f, 'f', digits, 64) }

func whole[T uint64 | uint32 | int64 | int](n T) string { return fmt.Sprint(n) }
