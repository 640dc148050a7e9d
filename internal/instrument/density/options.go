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

// maxSandboxes is the maximum number of sandboxes, the limit on lanes in a record.
const maxSandboxes = 10_000

// Options are the options of a density run.
type Options struct {
	Title string
	terms.Whom
	Until    string        // see ParseUntil
	Step     int           // sandboxes per step; 0: double the number each time
	Most     int           // maximum number of sandboxes, whatever the end
	KeepFree int64         // bytes of memory to leave free; 0: see Floor
	AtOnce   int           // starts released together
	Rounds   int           // each fills and empties every target once
	Hold     time.Duration // how long idle sandboxes are observed in each step
	Settle   time.Duration // wait before reading the free amounts
	Recover  time.Duration // maximum wait for the machine to recover
	Budget   time.Duration
	Timeout  time.Duration // of one operation
	Seed     uint64
	Ready    setting.Ready // readiness check; "": none
	DryRun   bool
	Limits   setting.Limits   // of every container; none by default
	Workload setting.Workload // program to run instead of the probe; zero: the probe
}

// Defaults returns the default options.
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
	option.Text(s, &o.Until, "until", "when to stop: memory or pids (the rest nears the reserve), latency=2x (starts take this multiple of the first step's), failure (a start fails), or a number of sandboxes",
		option.Must(func(text string) error { _, err := ParseUntil(text); return err }))
	option.Int(s, &o.Step, "step", "sandboxes added per step (default: double each time, from 4)", option.Bounds(1, maxSandboxes, "a number of sandboxes"), option.OmitEmpty)
	option.Int(s, &o.Most, "most", "maximum number of sandboxes", option.Bounds(1, maxSandboxes, "a number of sandboxes"))
	option.Var(s, &o.KeepFree, "keep_free", "memory to leave free (default: 5 % of the total, at least 512Mi)", terms.Memory, option.OmitEmpty, option.AtLeast(int64(1<<20), "bytes leave the node nothing", "512Mi"))
	option.Int(s, &o.AtOnce, "at_once", "starts that are released together", option.Bounds(1, 100, "a number of starts"))
	terms.Rounds(s, &o.Rounds, "rounds, each filling and emptying every target once")
	option.Time(s, &o.Hold, "hold", "how long idle sandboxes are observed in each step", option.AtLeast(100*time.Millisecond, "is too short to see anything", "2s"))
	option.Time(s, &o.Settle, "settle", "wait before the free amounts are read", option.AtLeast(100*time.Millisecond, "is shorter than what a sandbox needs to take what it takes", "2s"))
	option.Time(s, &o.Recover, "recover", "maximum wait for the machine to recover", option.AtLeast(time.Second, "is too short for memory to come back", "30s"))
	terms.Budget(s, &o.Budget, "step")
	terms.Timeout(s, &o.Timeout, "for one operation on one sandbox")
	terms.Seed(s, &o.Seed, "targets")
	terms.Ready(s, &o.Ready)
	option.Bool(s, &o.DryRun, "dry_run", "predict the number of sandboxes from a trial of a few, and start nothing else", option.OmitEmpty)
	terms.Limits(s, &o.Limits, true, "none")
	terms.Workload(s, &o.Whom, &o.Workload)
}

// Wrong returns the conflicts between options.
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

// tooFewToCompare rejects steps that are too small to compare with the first one. A
// ratio needs at least four starts on each side to have an interval.
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

// Ahead returns the expected duration, which is only limited by the budget. How many
// sandboxes fit is not known in advance.
func (o *Options) Ahead(int) terms.Ahead { return terms.Ahead{Budget: o.Budget} }

// MarshalJSON encodes the options as in a record.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON decodes the output of MarshalJSON.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }

// Until is the end of a run: a resource, a failure, a slowdown of starts relative to
// the first step, or a count. Exactly one field is set.
type Until struct {
	Resource string // Memory, PIDs
	Failure  bool
	Latency  float64
	Count    int
}

// Resources that can end a run.
const (
	Memory = "memory"
	PIDs   = "pids"
)

// ParseUntil parses "memory", "pids", "failure", "latency=2x" or a number of sandboxes.
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
	return Until{}, fmt.Errorf("invalid end %s: write memory, pids, failure, latency=2x, or a number of sandboxes from 1 to %d", option.Quote(text), maxSandboxes)
}

// firstStep is the size of the first step if steps double. It has enough starts for a
// median that later steps are compared with.
const firstStep = 4

// Next returns the number of sandboxes after the next step.
func (o *Options) Next(there int) int {
	next := max(2*there, firstStep)
	if o.Step > 0 {
		next = there + o.Step
	}
	return min(next, o.Top())
}

// Top returns the maximum number of sandboxes.
func (o *Options) Top() int {
	if u, err := ParseUntil(o.Until); err == nil && u.Count > 0 {
		return min(u.Count, o.Most)
	}
	return o.Most
}

// Floor returns the memory to leave free, in bytes, given the total.
func (o *Options) Floor(total int64) int64 {
	if o.KeepFree > 0 {
		return o.KeepFree
	}
	return max(total/20, 512<<20)
}
