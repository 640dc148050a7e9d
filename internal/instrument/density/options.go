package density

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// maxSandboxes is how many can be asked for: a line of a record knows no more lanes.
const maxSandboxes = 10_000

// Options are what a density can be asked for.
type Options struct {
	Title string
	terms.Whom
	Until    string        // see ParseUntil
	Step     int           // sandboxes a step; 0: steps double what is there
	Most     int           // that may be there, whatever is asked for
	KeepFree int64         // bytes of memory that have to be left; 0: see Floor
	AtOnce   int           // starts that are released together
	Rounds   int           // each goes all the way and back on every target
	Hold     time.Duration // how long the sandboxes of a step are watched idle
	Settle   time.Duration // that is waited before what is left is believed
	Recover  time.Duration // at most, for the machine to come back
	Budget   time.Duration
	Timeout  time.Duration // of one operation
	Seed     uint64
	Ready    setting.Ready // when a workload is ready; "": nobody asks
	DryRun   bool
	Limits   setting.Limits   // of every container; none by default
	Workload setting.Workload // a program of the user's own in the probe's place; the zero value is none
}

// Defaults are the options of a density that says nothing.
func Defaults() Options {
	return Options{
		Whom: terms.Everyone, Until: "memory", Most: 1000, AtOnce: 1, Rounds: 3,
		Hold: 2 * time.Second, Settle: 2 * time.Second, Recover: 30 * time.Second, Budget: 2 * time.Hour, Timeout: time.Minute,
	}
}

// Declare declares the options.
func (o *Options) Declare(s *option.Set) {
	terms.Title(s, &o.Title)
	o.DeclareWhom(s)
	option.Text(s, &o.Until, "until", "where it ends: memory, pids (what is left of them comes near to what is never touched), latency=2x (a start takes so many times that of the first step), failure (a start fails), or a number of sandboxes",
		option.Must(func(text string) error { _, err := ParseUntil(text); return err }))
	option.Int(s, &o.Step, "step", "sandboxes that are added in a step (default: steps double what is there, from 4)", option.Bounds(1, maxSandboxes, "a number of sandboxes"), option.OmitEmpty)
	option.Int(s, &o.Most, "most", "sandboxes that are never exceeded", option.Bounds(1, maxSandboxes, "a number of sandboxes"))
	option.Var(s, &o.KeepFree, "keep_free", "memory that is never touched (default: 5 % of all, and at least 512Mi)", terms.Memory, option.OmitEmpty, option.AtLeast(int64(1<<20), "bytes leave the node nothing", "512Mi"))
	option.Int(s, &o.AtOnce, "at_once", "starts that are released together", option.Bounds(1, 100, "a number of starts"))
	terms.Rounds(s, &o.Rounds, "rounds, each going all the way and back on every target")
	option.Time(s, &o.Hold, "hold", "how long the sandboxes of a step are watched idle", option.AtLeast(100*time.Millisecond, "is too short to see anything", "2s"))
	option.Time(s, &o.Settle, "settle", "that is waited before what is left is believed", option.AtLeast(100*time.Millisecond, "is shorter than what a sandbox needs to take what it takes", "2s"))
	option.Time(s, &o.Recover, "recover", "at most, for the machine to come back", option.AtLeast(time.Second, "is too short for memory to come back", "30s"))
	terms.Budget(s, &o.Budget, "step")
	terms.Timeout(s, &o.Timeout, "for one operation on one sandbox")
	terms.Seed(s, &o.Seed, "targets")
	terms.Ready(s, &o.Ready)
	option.Bool(s, &o.DryRun, "dry_run", "say how far it would go, by a trial of a few sandboxes, and make nothing else", option.OmitEmpty)
	terms.Limits(s, &o.Limits, true, "none")
	terms.Workload(s, &o.Whom, &o.Workload)
}

// Wrong says what is wrong between options.
func (o *Options) Wrong() option.FieldErrors {
	all, _ := o.CheckWhom()
	all = append(all, terms.CheckWorkload(&o.Workload)...)
	if u, err := ParseUntil(o.Until); err == nil && u.Count > o.Most && o.Most > 0 {
		all = append(all, option.Wrongf("until", "%d sandboxes are more than the %d that are never exceeded: raise most, too", u.Count, o.Most))
	} else if err == nil && u.Latency > 0 {
		all = append(all, o.tooFewToCompare()...)
	}
	return all
}

// tooFewToCompare refuses steps whose starts can never be told to be slower than those of
// the first: of fewer than four against four no ratio has an interval.
func (o *Options) tooFewToCompare() option.FieldErrors {
	first := o.Next(0)
	switch second := o.Next(first) - first; {
	case o.Step > 0 && o.Step < firstStep:
		return option.FieldErrors{option.Wrongf("step", "%s a step are too few for %s, which compares the starts of two steps: at least %d", page.Sandboxes(o.Step), option.Quote(o.Until), firstStep)}
	case o.Most > 0 && second < firstStep:
		return option.FieldErrors{option.Wrongf("most", "%s hold no second step of at least %d, which %s compares with the first: raise most", page.Sandboxes(o.Most), firstStep, option.Quote(o.Until))}
	}
	return nil
}

// Ahead is what it takes: how far it goes is the question.
func (o *Options) Ahead(int) terms.Ahead { return terms.Ahead{Budget: o.Budget} }

// MarshalJSON writes what a record holds.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }

// Until is where a density ends: at one of the resources, at a failure, where starts take
// so many times as long as at first, or at a count. One of the fields is set.
type Until struct {
	Resource string // Memory, PIDs
	Failure  bool
	Latency  float64
	Count    int
}

// The resources that an end can be.
const (
	Memory = "memory"
	PIDs   = "pids"
)

// ParseUntil reads "memory", "pids", "failure", "latency=2x" or a number of sandboxes.
func ParseUntil(text string) (Until, error) {
	switch text {
	case Memory, PIDs:
		return Until{Resource: text}, nil
	case "failure":
		return Until{Failure: true}, nil
	}
	if times, ok := strings.CutPrefix(text, "latency="); ok {
		number, x := strings.CutSuffix(times, "x")
		if v, err := strconv.ParseFloat(number, 64); x && err == nil && v > 1 && v <= 1000 {
			return Until{Latency: v}, nil
		}
	} else if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= maxSandboxes {
		return Until{Count: n}, nil
	}
	return Until{}, fmt.Errorf("%s is no end: write memory, pids, failure, latency=2x, or a number of sandboxes from 1 to %d", option.Quote(text), maxSandboxes)
}

// firstStep is the first of the steps that double what is there: enough starts for a
// median to which the later ones are compared.
const firstStep = 4

// Next is how many sandboxes are there after the step that follows so many.
func (o *Options) Next(there int) int {
	next := max(2*there, firstStep)
	if o.Step > 0 {
		next = there + o.Step
	}
	return min(next, o.Top())
}

// Top is how many sandboxes there are at most.
func (o *Options) Top() int {
	if u, err := ParseUntil(o.Until); err == nil && u.Count > 0 {
		return min(u.Count, o.Most)
	}
	return o.Most
}

// Floor is how much memory of so much has to be left, bytes.
func (o *Options) Floor(total int64) int64 {
	if o.KeepFree > 0 {
		return o.KeepFree
	}
	return max(total/20, 512<<20)
}
