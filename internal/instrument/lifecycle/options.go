package lifecycle

import (
	"context"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// maxLanes is the maximum number of operations released together.
const maxLanes = 1000

// Options are the options of a lifecycle run.
type Options struct {
	Title string
	terms.Whom
	Baseline  string // target that others are compared with; "": the first runtime
	Subject   string // target compared with every other in the iSulad table; "": others against the baseline
	Lanes     []int  // batch sizes to measure
	Ops       []setting.Op
	Rounds    int           // minimum; Precision may add more
	Warmup    int           // rounds before the measured ones
	Precision float64       // 0.05: add rounds until every interval is within ±5 %; 0: exactly Rounds
	Budget    time.Duration // no round starts after it
	Timeout   time.Duration // of one operation on one lane
	Seed      uint64        // for the order of targets in each round; 0: taken from the clock
	Limits    setting.Limits
	Workload  setting.Workload // program to run instead of the probe; zero: the probe
	Ready     setting.Ready    // readiness check; "": none
	Cache     terms.Cache      // page cache state before an operation
	figure.Comparing
}

// mostComparisons is the largest number of comparisons in a table for which the default
// number of rounds is enough to show each difference: 21 targets in 5 operations.
const mostComparisons = 100

// Defaults returns the default options.
func Defaults() Options {
	return Options{
		Whom: terms.Everyone, Lanes: []int{1}, Ops: slices.Clone(setting.Ops), Rounds: stat.RoundsFor(mostComparisons, stat.Holm), Warmup: 1,
		Budget: 10 * time.Minute, Timeout: time.Minute, Limits: setting.DefaultLimits,
	}
}

// Declare declares the options.
func (o *Options) Declare(s *option.Set) {
	terms.Title(s, &o.Title)
	o.DeclareWhom(s)
	terms.Baseline(s, &o.Baseline, "the first runtime")
	option.Text(s, &o.Subject, "subject", "target whose column of the iSulad form is compared with every other (default: the others with the baseline)", option.OmitEmpty)
	option.Var(s, &o.Lanes, "lanes", "operations released at once; a list sweeps: 1,10,100", option.OneOrMore(option.Integer),
		option.Flag("lanes", "n"), option.Some("write at least one number from 1 to 1000"),
		option.Bounds(1, maxLanes, "a number of lanes"), option.Once("each number of lanes is measured once"))
	option.List(s, &o.Ops, "ops", "operations to measure", option.Some("write at least one, such as run"),
		option.Must(known), option.Once("each operation is measured once"))
	terms.Comparing(s, &o.Comparing)
	terms.Rounds(s, &o.Rounds, "measured rounds, each visiting every target once")
	terms.Warmup(s, &o.Warmup, "rounds before, not counted")
	option.Var(s, &o.Precision, "precision", "add rounds until every interval is this narrow, of times and of differences, e.g. 5% (at 99 %, so that the 95 % of the report hold)", terms.Precision, option.OmitEmpty, option.Must(terms.CheckPrecision))
	terms.Budget(s, &o.Budget, "round")
	terms.Timeout(s, &o.Timeout, "for one operation on one lane")
	terms.Seed(s, &o.Seed, "targets")
	terms.Limits(s, &o.Limits, false, "wide ones")
	terms.Workload(s, &o.Whom, &o.Workload)
	terms.Ready(s, &o.Ready)
	terms.DeclareCache(s, &o.Cache, "operation")
	s.Before(func(context.Context) error {
		if s.Given("ops") { // tables show operations in lifecycle order
			slices.SortStableFunc(o.Ops, func(a, b setting.Op) int { return slices.Index(setting.Ops, a) - slices.Index(setting.Ops, b) })
		}
		return nil
	})
}

func known(op setting.Op) error {
	_, err := setting.ParseOp(string(op))
	return err
}

// Wrong returns the conflicts between options.
func (o *Options) Wrong() option.FieldErrors {
	all, names := o.CheckWhom()
	all = append(all, terms.CheckWorkload(&o.Workload)...)
	for field, name := range map[string]string{"baseline": o.Baseline, "subject": o.Subject} {
		all = append(all, terms.CheckNamed(field, name, names)...)
	}
	return all
}

// Ahead returns the expected duration, which is only limited by the budget. How long
// operations take is not known in advance.
func (o *Options) Ahead(int) terms.Ahead { return terms.Ahead{Budget: o.Budget} }

// MarshalJSON encodes the options as in a record.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON decodes the output of MarshalJSON.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }
