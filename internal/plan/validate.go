package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// What a lifecycle may ask for. The JSON Schema states the same.
const (
	MaxLanes  = 1000
	MaxRounds = 1_000_000
)

// Validate says everything that is wrong with the lifecycle.
func (l *Lifecycle) Validate() error { return joined(l.complaints()) }

func joined(complaints []complaint) error {
	var all []error
	for _, c := range complaints {
		all = append(all, c)
	}
	return errors.Join(all...)
}

// SplitTarget takes "name=path" apart. A plain name has no path.
func SplitTarget(s string) (name, path string) {
	name, path, _ = strings.Cut(s, "=")
	return name, path
}

// complaint is a value that cannot be used. Its index is the place in the
// field's list, or -1, and its part a field of what stands there, so that a plan
// file's line and column can be found.
type complaint struct {
	field   string
	index   int
	part    string
	message string
}

func (c complaint) Error() string { return c.field + ": " + c.message }

func complain(field, format string, arguments ...any) complaint {
	return complaint{field: field, index: -1, message: fmt.Sprintf(format, arguments...)}
}

func (c complaint) at(index int) complaint {
	c.index = index
	return c
}

func (c complaint) of(part string) complaint {
	c.part = part
	return c
}

func (l *Lifecycle) complaints() []complaint {
	return slices.Concat(
		l.targetsComplaints(),
		engineComplaints(l.Engines, l.Via, l.Missing),
		lanesComplaints(l.Lanes),
		opsComplaints(l.Ops),
		l.extentComplaints(),
		limitsComplaints(l.Limits, false),
	)
}

// targetName is one name, or an engine's and a runtime's: "cri+containerd/runc".
var targetName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+@:-]*(/[A-Za-z0-9][A-Za-z0-9._+@:-]*)?$`)

func (l *Lifecycle) targetsComplaints() []complaint {
	all, names := targetsComplaints(l.Targets)
	if l.Baseline != "" && len(names) > 0 && !slices.Contains(names, l.Baseline) {
		all = append(all, complain("baseline", "%s is not one of the targets: the targets are %s", quote(l.Baseline), strings.Join(names, ", ")))
	}
	if l.Subject != "" && len(names) > 0 && !slices.Contains(names, l.Subject) {
		all = append(all, complain("subject", "%s is not one of the targets: the targets are %s", quote(l.Subject), strings.Join(names, ", ")))
	}
	if l.Baseline != "" && !targetName.MatchString(l.Baseline) && len(names) == 0 {
		all = append(all, complain("baseline", "%s is not a target: write a name such as runc", quote(l.Baseline)))
	}
	return all
}

// targetsComplaints returns the names of those that can be used, too.
func targetsComplaints(targets []string) (all []complaint, names []string) {
	for i, t := range targets {
		name, path := SplitTarget(t)
		switch {
		case !targetName.MatchString(name):
			all = append(all, complain("targets", "%s is not a target: write a name such as runc, or name=path for a runtime", quote(t)).at(i))
		case path == "" && name != t:
			all = append(all, complain("targets", "%s names no path after the =: write name=path, such as crun=/usr/bin/crun", quote(t)).at(i))
		case slices.Contains(names, name):
			advice := fmt.Sprintf("give each target a name of its own, such as %s-2=path", name)
			if strings.Contains(name, "/") { // its name says where it is
				advice = "leave one of them out"
			}
			all = append(all, complain("targets", "%s is there twice: %s", name, advice).at(i))
		default:
			names = append(names, name)
		}
	}
	return all, names
}

func lanesComplaints(lanes []int) []complaint { return countsComplaints("lanes", lanes, MaxLanes) }

func countsComplaints(of string, counts []int, most int) []complaint {
	if len(counts) == 0 {
		return []complaint{complain(of, "the list is empty: write at least one number from 1 to %d", most)}
	}
	var all []complaint
	for i, n := range counts {
		switch {
		case n < 1 || n > most:
			all = append(all, complain(of, "%d is not a number of %s: from 1 to %d are allowed", n, of, most).at(i))
		case slices.Contains(counts[:i], n):
			all = append(all, complain(of, "%d is there twice: each number of %s is measured once", n, of).at(i))
		}
	}
	return all
}

func opsComplaints(ops []subject.Op) []complaint {
	if len(ops) == 0 {
		return []complaint{complain("ops", "the list is empty: write at least one, such as run")}
	}
	var all []complaint
	for i, op := range ops {
		if _, err := setting.ParseOp(string(op)); err != nil {
			all = append(all, complain("ops", "%v", err).at(i))
		} else if slices.Contains(ops[:i], op) {
			all = append(all, complain("ops", "%s is there twice: each operation is measured once", op).at(i))
		}
	}
	return all
}

// extentComplaints is about how long a run goes on.
func (l *Lifecycle) extentComplaints() []complaint {
	all := roundsComplaints(l.Rounds)
	if l.Warmup < 0 || l.Warmup > MaxRounds {
		all = append(all, complain("warmup", "%d is not a number of rounds: from 0 to %d are allowed", l.Warmup, MaxRounds))
	}
	if l.Precision != 0 && !validPrecision(l.Precision) {
		all = append(all, complain("precision", "%g is not a precision: it has to be above 0 and below 1, such as 0.05", l.Precision))
	}
	return append(all, timesComplaints(l.Budget, l.Timeout)...)
}

func roundsComplaints(rounds int) []complaint {
	if rounds < 1 || rounds > MaxRounds {
		return []complaint{complain("rounds", "%d is not a number of rounds: from 1 to %d are allowed", rounds, MaxRounds)}
	}
	return nil
}

func timesComplaints(budget, timeout time.Duration) []complaint {
	var all []complaint
	if budget <= 0 {
		all = append(all, complain("budget", "%v leaves no time to measure: write more than 0s, such as 10m", budget))
	}
	if timeout < time.Millisecond {
		all = append(all, complain("timeout", "%v would fail every operation: write 1ms or more, such as 60s", timeout))
	}
	return all
}
