package overhead

import (
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// Limits of the options.
const (
	maxSandboxes = 1000
	maxPhases    = 100
	minHolding   = 100 * time.Millisecond
	minInterval  = 10 * time.Millisecond
	// maxTicks is the maximum of samples per phase: a series is one line of a record,
	// and lines are limited in length.
	maxTicks = 50_000
)

// Options are the options of an overhead run.
type Options struct {
	Title string
	terms.Whom
	Phases     []string // see ParsePhase; idle is added first if missing, as the reference of loads; loads run with the smallest of Sandboxes
	terms.Load          // for the phase "load", which exists if it is set
	Ready      setting.Ready
	Sandboxes  []int // numbers of sandboxes, ascending; each is held idle for Hold
	Rounds     int
	Hold       time.Duration // duration of a phase; a fio load is watched until it ends
	Interval   time.Duration // between samples
	Settle     time.Duration // maximum wait before a reading until the node stops changing
	Budget     time.Duration
	Timeout    time.Duration // of one operation on one sandbox; for a fio load it is Patience
	Patience   time.Duration
	Seed       uint64
	Limits     setting.Limits   // of every container; none by default
	Workload   setting.Workload // a user's program instead of the probe; none by default
	Check      *PodFixed
	// Allocatable are the resources that the node offers to pods; nil means all of the node's.
	Allocatable *PodFixed
	figure.Comparing
}

// Defaults returns the default options.
func Defaults() Options {
	return Options{
		Whom: terms.Everyone, Phases: []string{"idle"}, Sandboxes: []int{1, 5, 20}, Rounds: 3,
		Hold: 10 * time.Second, Interval: 100 * time.Millisecond, Settle: 3 * time.Second,
		Budget: 2 * time.Hour, Timeout: time.Minute, Patience: 30 * time.Minute,
	}
}

// Declare declares the options.
func (o *Options) Declare(s *option.Set) {
	terms.Title(s, &o.Title)
	o.DeclareWhom(s)
	option.Var(s, &o.Phases, "phases", "activity of the sandboxes in each phase: idle; 10M, 1G (fio writes a file of that size at random, in powers of 1024); hold 64MiB, spin 0.5cpu (to calibrate); load, see --load", option.ListOf(phase))
	option.Var(s, &o.Sandboxes, "sandboxes", "numbers of idle sandboxes, for the marginal cost; phases with a load run at the smallest", option.OneOrMore(option.Integer),
		option.Some("write at least one number from 1 to 1000"), option.Bounds(1, maxSandboxes, "a number of sandboxes"), option.Once("each number of sandboxes is measured once"))
	o.DeclareLoad(s, "load in the phase load: http://:8080/ of the workload, or exec:/PROGRAM ARG in its sandbox", terms.CheckLoad)
	terms.Ready(s, &o.Ready)
	terms.Comparing(s, &o.Comparing)
	terms.Rounds(s, &o.Rounds, "rounds, each visiting every target once")
	option.Time(s, &o.Hold, "hold", "duration of a phase; a phase with fio lasts until fio ends", option.AtLeast(minHolding, "is too short to see anything", "10s"))
	option.Time(s, &o.Interval, "interval", "between samples", option.AtLeast(minInterval, "would weigh the sampling", "100ms"))
	option.Time(s, &o.Settle, "settle", "maximum wait before a reading until the node's memory stops changing; shorter after unsuccessful waits", option.AtLeast(time.Duration(0), "is below 0", "3s"))
	terms.Budget(s, &o.Budget, "visit")
	terms.Timeout(s, &o.Timeout, "for one operation on one sandbox")
	option.Time(s, &o.Patience, "patience", "timeout of fio", option.AtLeast(time.Millisecond, "would fail every load", "30m"))
	terms.Seed(s, &o.Seed, "targets")
	terms.Limits(s, &o.Limits, true, "none")
	terms.Workload(s, &o.Whom, &o.Workload)
	option.Var(s, &o.Check, "check", "an overhead.podFixed to check: 250m,160Mi, or declared: that of each target's RuntimeClass in its cluster", checkKind(), option.OmitEmpty)
	option.Var(s, &o.Allocatable, "allocatable", "resources that the node offers to pods, as in kubectl describe node: 7800m,6500Mi; requests are shown as shares of it (default: as reported by a Kubernetes target's node, else all of the node's)", podFixedKind("allocatable"), option.OmitEmpty)
	terms.ScaleFlag(s, func(scale float64) error {
		o.Phases = scaled(o.Phases, scale)
		return nil
	})
	s.After(func() {
		if o.Phases = withIdle(o.Phases); o.URL != "" && !slices.Contains(o.Phases, string(PhaseLoad)) {
			o.Phases = append(o.Phases, string(PhaseLoad))
		}
	})
}

// Wrong returns errors that involve several options.
func (o *Options) Wrong() option.FieldErrors {
	all, _ := o.CheckWhom()
	all = append(all, phasesWrong(o.Phases)...)
	all = append(all, terms.CheckWorkload(&o.Workload)...)
	if !slices.IsSorted(o.Sandboxes) && slices.Min(o.Sandboxes) > 0 && slices.Max(o.Sandboxes) <= maxSandboxes {
		ascending := numbers(slices.Sorted(slices.Values(o.Sandboxes)), ",")
		all = append(all, option.Wrongf("sandboxes", "sandboxes are added one after another, so the numbers must ascend: write %s", ascending))
	}
	switch {
	case o.Interval < minInterval: // reported already
	case o.Interval > o.Hold:
		all = append(all, option.Wrongf("interval", "%v is longer than the hold of %v: a phase would have no sample", o.Interval, o.Hold))
	case o.Hold/o.Interval > maxTicks:
		all = append(all, option.Wrongf("interval", "%v gives %d samples in a hold of %v: at most %d are kept, write a longer interval", o.Interval, o.Hold/o.Interval, o.Hold, maxTicks))
	}
	if o.URL == "" && slices.Contains(o.Phases, string(PhaseLoad)) {
		all = append(all, option.Wrongf("phases", "the load is missing: write load, such as http://:8080/"))
	}
	all = append(all, o.Check.wrong("check")...)
	if o.Allocatable != nil && o.Allocatable.Declared {
		all = append(all, option.Wrongf("allocatable", "a RuntimeClass declares no allocatable resources: omit it to use those of the cluster's node"))
	}
	return append(all, o.Allocatable.wrong("allocatable")...)
}

// MarshalJSON writes the form of a record.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON reads the output of MarshalJSON.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }
