package plan

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// What an overhead may ask for. The JSON Schema states the same.
const (
	MaxSandboxes = 1000
	MaxPhases    = 100
	MinHolding   = 100 * time.Millisecond
	MinInterval  = 10 * time.Millisecond
	// MaxTicks is how many samples a phase may have: a series is one line of a
	// record, and a line has a limit.
	MaxTicks = 50_000
)

// Validate says everything that is wrong with the overhead.
func (o *Overhead) Validate() error { return joined(o.complaints()) }

func (o *Overhead) complaints() []complaint {
	targets, _ := targetsComplaints(o.Targets)
	var check []complaint
	if o.Check != nil {
		check = o.Check.complaints()
	}
	return slices.Concat(
		targets,
		engineComplaints(o.Engines, o.Via, o.Missing),
		phasesComplaints(o.Phases),
		sandboxesComplaints(o.Sandboxes),
		roundsComplaints(o.Rounds),
		o.extentComplaints(),
		limitsComplaints(o.Limits, true),
		check,
	)
}

// ParseSandboxes reads counts of sandboxes such as "1,5,20".
func ParseSandboxes(s string) ([]int, error) {
	return parseCounts(s, "sandboxes", "1,5,20", sandboxesComplaints)
}

func sandboxesComplaints(counts []int) []complaint {
	all := countsComplaints("sandboxes", counts, MaxSandboxes)
	if len(all) == 0 && !slices.IsSorted(counts) {
		sorted := slices.Sorted(slices.Values(counts))
		words := make([]string, len(sorted))
		for i, n := range sorted {
			words[i] = strconv.Itoa(n)
		}
		all = append(all, complain("sandboxes", "they are added one after the other, so the counts have to ascend: write %s", strings.Join(words, ",")))
	}
	return all
}

func (o *Overhead) extentComplaints() []complaint {
	var all []complaint
	if o.Hold < MinHolding {
		all = append(all, complain("hold", "%v is too short to see anything: write %v or more, such as 10s", o.Hold, MinHolding))
	}
	switch {
	case o.Interval < MinInterval:
		all = append(all, complain("interval", "%v would weigh the sampling: write %v or more, such as 100ms", o.Interval, MinInterval))
	case o.Interval > o.Hold:
		all = append(all, complain("interval", "%v is longer than the hold of %v: a phase would have no sample", o.Interval, o.Hold))
	case o.Hold/o.Interval > MaxTicks:
		all = append(all, complain("interval", "%v gives %d samples in a hold of %v: at most %d are kept, write a longer one", o.Interval, o.Hold/o.Interval, o.Hold, MaxTicks))
	}
	if o.Settle < 0 {
		all = append(all, complain("settle", "%v is below 0: write 0s not to wait, or more, such as 3s", o.Settle))
	}
	all = append(all, timesComplaints(o.Budget, o.Timeout)...)
	if o.Patience < time.Millisecond {
		all = append(all, complain("patience", "%v would fail every load: write 1ms or more, such as 30m", o.Patience))
	}
	return all
}
