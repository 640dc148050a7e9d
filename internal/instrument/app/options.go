// Package app measures a user's own service on each runtime: throughput, latency and
// CPU per request.
package app

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// maxNeighbours is the maximum number of neighbours. Each one needs additional windows.
const maxNeighbours = 20

// Options are the options of an app run.
type Options struct {
	Title string
	terms.Whom
	terms.Load
	Ready      setting.Ready // readiness check; "": an answer from the URL
	Baseline   string        // target that others are compared with; "": the first runtime
	Warm       time.Duration // warm-up with the same load before each window
	Neighbours []string      // see ParseNeighbour
	Rounds     int
	Budget     time.Duration
	Timeout    time.Duration // for one operation on one sandbox, and for the first answer
	Seed       uint64
	Limits     setting.Limits
	Workload   setting.Workload // the service; see terms.Load.Serve
	figure.Comparing
}

// mostComparisons is the largest number of comparisons in a table for which the default
// number of rounds suffices. It allows for two targets compared with a third in six
// quantities.
const mostComparisons = 2 * quantities

// quantities is the number of quantities that a table compares per target.
const quantities = 6

// Comparisons returns the largest number of comparisons in one table. There are three
// kinds of tables. They compare targets with the baseline, each target with and without a
// neighbour, and targets with host.
func (o *Options) Comparisons(targets []record.Target) int {
	others, hosted := max(len(targets)-1, 0), slices.ContainsFunc(targets, func(t record.Target) bool { return t.Name == host })
	alone, onHost := 0, others
	for _, n := range o.Parsed() {
		if n.Image != "" && hosted {
			alone += others // host cannot run an image
			continue
		}
		alone, onHost = alone+len(targets), onHost+others
	}
	if !hosted {
		onHost = 0
	}
	return max(quantities*others, alone, onHost)
}

// Defaults returns the default options.
func Defaults() Options {
	o := Options{
		Whom: terms.Everyone, Warm: 2 * time.Second,
		Rounds: stat.RoundsFor(mostComparisons, stat.Holm), Budget: 2 * time.Hour, Timeout: time.Minute,
	}
	o.Load = terms.Load{URL: "http://:8080/"}.Filled()
	return o
}

// Declare declares the options.
func (o *Options) Declare(s *option.Set) {
	terms.Title(s, &o.Title)
	o.DeclareWhom(s)
	terms.Baseline(s, &o.Baseline, "the first runtime")
	o.DeclareLoad(s, "the URL that is asked, with the workload's own host left out: http://:8080/", terms.CheckHTTPLoad)
	terms.Ready(s, &o.Ready)
	option.Time(s, &o.Warm, "warm", "of the same load before it, which does not count", option.Bounds(time.Duration(0), terms.MaxLoad, "a time"))
	option.Var(s, &o.Neighbours, "neighbours", "what works beside in another sandbox of the same runtime, in windows of its own: 'spin 2cpu', 'hold 256MiB', 'storage randwrite', or an image and, if not its own, a command: 'redis:7', 'job.tar /bin/job -v'", option.Repeated(option.ListOf(option.TextOf[string]())),
		option.Flag("neighbour"), option.OmitEmpty, option.AtMost(maxNeighbours), option.Must(neighbour), option.Once("each neighbour is measured once"))
	terms.Comparing(s, &o.Comparing)
	terms.Rounds(s, &o.Rounds, "rounds, each visiting every target once, alone and with each neighbour")
	terms.Budget(s, &o.Budget, "visit")
	terms.Timeout(s, &o.Timeout, "for one operation on one sandbox, and for the first answer")
	terms.Seed(s, &o.Seed, "visits")
	terms.Limits(s, &o.Limits, true, "none")
	terms.Workload(s, &o.Whom, &o.Workload)
	terms.ScaleFlag(s, func(scale float64) error {
		o.Duration, o.Warm = max(time.Duration(float64(o.Duration)*scale), terms.MinLoad), time.Duration(float64(o.Warm)*scale)
		return nil
	})
}

func neighbour(s string) error {
	_, err := ParseNeighbour(s)
	return err
}

// Wrong returns the conflicts between options.
func (o *Options) Wrong() option.FieldErrors {
	all, names := o.CheckWhom()
	all = append(all, terms.CheckNamed("baseline", o.Baseline, names)...)
	w := o.Workload
	w.Pull = w.Pull && len(o.Images()) == 0 // the pull may be for a neighbour's image
	all = append(all, terms.CheckWorkload(&w)...)
	if o.Rate > 0 && o.Rate*o.Duration.Seconds() < 1 {
		all = append(all, option.Wrongf("rate", "%g requests a second for %v are none: raise one of them", o.Rate, o.Duration))
	}
	return all
}

// Ahead returns the expected duration.
func (o *Options) Ahead(targets int) terms.Ahead {
	a := terms.Ahead{Budget: o.Budget}
	a.Takes(float64(targets)*float64(o.Rounds)*float64(1+len(o.Neighbours)), o.Warm+o.Duration)
	return a
}

// MarshalJSON encodes the options as in a record.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON decodes the output of MarshalJSON.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }

// Neighbour is a parsed neighbour.
type Neighbour struct {
	overhead.Phase          // load of the probe: spin or hold; Name is the cleaned input
	Pattern        string   // fio's --rw, with direct I/O; "" if fio is not used
	Image          string   // the user's image; "" for probe or fio
	Command        []string // replaces the image's command; nil: the image's
}

var patterns = []string{"read", "write", "randread", "randwrite", "rw", "randrw"}

// longestName is the maximum length of a neighbour's name in a window.
const longestName = 256

// ParseNeighbour parses "spin 2cpu", "hold 256MiB" or "storage randwrite". Any other
// first word is an image in the form of --image, optionally followed by a command.
func ParseNeighbour(s string) (Neighbour, error) {
	n := Neighbour{Phase: overhead.Phase{Name: strings.Join(strings.Fields(s), " ")}}
	kind, what, _ := strings.Cut(n.Name, " ")
	switch {
	case kind == "storage" && slices.Contains(patterns, what):
		n.Pattern = what
		return n, nil
	case kind == string(overhead.PhaseSpin) || kind == string(overhead.PhaseHold):
		if p, err := overhead.ParsePhase(n.Name); err == nil {
			n.Phase = p
			return n, nil
		}
	case kind != "storage":
		words, err := setting.Words(s)
		if err == nil && len(words) > 0 && len(n.Name) <= longestName && !strings.HasPrefix(kind, "-") && !strings.ContainsFunc(n.Name, unicode.IsControl) {
			if n.Image = words[0]; len(words) > 1 {
				n.Command = words[1:]
			}
			return n, nil
		}
	}
	return Neighbour{}, fmt.Errorf("%s is not a neighbour: write spin 2cpu, hold 256MiB, storage with one of %s, or an image and its command", option.Quote(s), strings.Join(patterns, ", "))
}

// Parsed returns the neighbours and skips invalid ones, which [option.Check] rejects.
func (o *Options) Parsed() (all []Neighbour) {
	for _, text := range o.Neighbours {
		if n, err := ParseNeighbour(text); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// Images returns the images of the neighbours that have one, in order.
func (o *Options) Images() (all []setting.Workload) {
	for _, n := range o.Parsed() {
		if n.Image != "" {
			all = append(all, setting.Workload{Image: n.Image, Command: n.Command, Pull: o.Workload.Pull})
		}
	}
	return all
}
