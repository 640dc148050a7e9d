package overhead

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/terms"
)

// Limits of a phase's parameters, per sandbox.
const (
	minFile = 512 << 10 // bytes: fio writes blocks of 512 KiB
	maxFile = storage.MaxFile
	minHold = 4 << 10  // bytes
	maxHold = 16 << 40 // bytes
	minSpin = 0.01     // CPUs
)

// PhaseKind is the activity inside the sandboxes during a phase.
type PhaseKind string

// The kinds of phase.
const (
	PhaseIdle PhaseKind = "idle" // does nothing
	PhaseFio  PhaseKind = "fio"  // random writes of a file of Bytes: "10M", "1G"
	PhaseHold PhaseKind = "hold" // the probe holds Bytes of anonymous memory: "hold 64MiB"
	PhaseSpin PhaseKind = "spin" // the probe uses CPUs: "spin 0.5cpu"
	PhaseLoad PhaseKind = "load" // clients send requests to the workload, see [terms.Load]
)

// Phase is a parsed phase.
type Phase struct {
	Name  string // as written, with clean spaces
	Kind  PhaseKind
	Bytes int64
	CPUs  float64
}

// ParsePhase parses "idle", "load", the size of a file for fio, "hold 64MiB" or
// "spin 0.5cpu".
//
// A size uses fio's units, which are powers of 1024 ("10M" is 10 MiB), so it looks like
// fio's --size. Two forms are rejected: Mi and MiB, which are powers of 1000 in fio,
// and numbers without a unit, which are rarely meant. A hold phase uses the units of
// [terms.ParseMemory], where M is 10^6.
func ParsePhase(s string) (Phase, error) {
	p := Phase{Name: strings.Join(strings.Fields(s), " "), Kind: PhaseIdle}
	word, rest, _ := strings.Cut(p.Name, " ")
	var err error
	switch {
	case p.Name == string(PhaseIdle):
	case p.Name == string(PhaseLoad):
		p.Kind = PhaseLoad
	case word == string(PhaseHold):
		p.Kind = PhaseHold
		if p.Bytes, err = terms.ParseMemory(rest); err == nil && (p.Bytes < minHold || p.Bytes > maxHold) {
			err = fmt.Errorf("%d bytes cannot be held: from %d to %d are allowed", p.Bytes, int64(minHold), int64(maxHold))
		}
	case word == string(PhaseSpin):
		p.Kind = PhaseSpin
		p.CPUs, err = parseSpin(rest)
	default:
		p.Kind = PhaseFio
		p.Bytes, err = parseFile(p.Name)
	}
	if err != nil {
		return Phase{}, fmt.Errorf("%s is not a phase: %w", option.Quote(s), err)
	}
	return p, nil
}

// parseSpin parses "0.5cpu", "2 cpus" or "0.5".
func parseSpin(s string) (float64, error) {
	number := s
	for _, unit := range []string{"cpus", "cpu"} {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			number = strings.TrimSpace(rest)
			break
		}
	}
	n, ok := terms.ParseCPUs(number)
	if !ok || n < minSpin || n > terms.MaxCPU {
		return 0, fmt.Errorf("%s is not a number of CPUs: from %g to %d are allowed, such as spin 0.5cpu", option.Quote(s), minSpin, terms.MaxCPU)
	}
	return n, nil
}

func parseFile(s string) (int64, error) {
	number := strings.TrimRight(s, "KMGT")
	n, err := storage.ParseFioSize(s)
	switch {
	case number == "" || len(s) != len(number)+1 || strings.Trim(number, "0123456789") != "":
		return 0, errors.New("write idle, load, the size of a file that fio writes such as 10M or 1G, hold 64MiB or spin 0.5cpu")
	case err != nil || n < minFile:
		return 0, errors.New("fio's file must be from 512K (one block) to 16T")
	}
	return n, nil
}

// withIdle returns the phases with clean names. It puts idle first unless the list has
// it, because a load's cost is relative to idle. Invalid names are left unchanged.
func withIdle(phases []string) []string {
	out := make([]string, 0, len(phases)+1)
	idle := false
	for _, s := range phases {
		if p, err := ParsePhase(s); err == nil {
			s, idle = p.Name, idle || p.Kind == PhaseIdle
		}
		out = append(out, s)
	}
	if !idle {
		out = slices.Insert(out, 0, string(PhaseIdle))
	}
	return out
}

// Resolved returns the parsed phases, including idle. It skips phases that Wrong reports.
func (o *Options) Resolved() (out []Phase) {
	for _, s := range withIdle(o.Phases) {
		if p, err := ParsePhase(s); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// FioJobs is the number of fio jobs in an fio phase; each writes the whole file.
const FioJobs = 8

// Ahead returns the expected cost of the run. Loads run with the smallest number of
// sandboxes. The time of fio phases depends on the storage.
func (o *Options) Ahead(targets int) terms.Ahead {
	a := terms.Ahead{Budget: o.Budget}
	if len(o.Sandboxes) == 0 { // reported when the run begins
		return a
	}
	visits := float64(targets) * float64(o.Rounds)
	for _, p := range o.Resolved() {
		switch p.Kind {
		case PhaseIdle:
			a.Takes(visits*float64(len(o.Sandboxes)), o.Hold)
		case PhaseLoad:
			a.Takes(visits, o.Filled().Duration)
		case PhaseFio:
			a.Bytes += visits * float64(slices.Min(o.Sandboxes)) * FioJobs * float64(p.Bytes)
		default:
			a.Takes(visits, o.Hold)
		}
	}
	return a
}

// Comparisons returns the number of comparisons with the given targets, for memory and CPU.
func (o *Options) Comparisons(targets int) int {
	return 2 * max(targets-1, 0) * (len(withIdle(o.Phases)) + len(o.Sandboxes) - 1)
}

func phasesWrong(phases []string) option.FieldErrors {
	if len(phases) == 0 {
		return option.FieldErrors{option.Wrongf("phases", "the list is empty: write at least one, such as idle")}
	}
	if n := len(withIdle(phases)); n > maxPhases {
		return option.FieldErrors{option.Wrongf("phases", "%d are too many: at most %d are allowed, idle among them", n, maxPhases)}
	}
	var all option.FieldErrors
	var before []Phase
	for i, s := range phases {
		p, err := ParsePhase(s)
		if err != nil {
			all = append(all, option.Wrongf("phases", "%v", err).At(i))
			continue
		}
		if j := slices.IndexFunc(before, p.same); j >= 0 {
			again := p.Name + " is there twice"
			if p.Name != before[j].Name {
				again = fmt.Sprintf("%s is %s once more", p.Name, before[j].Name)
			}
			all = append(all, option.Wrongf("phases", "%s: each phase is measured once", again).At(i))
		}
		before = append(before, p)
	}
	return all
}

// same reports whether two phases do the same, regardless of their names.
func (p Phase) same(q Phase) bool {
	return p.Kind == q.Kind && p.Bytes == q.Bytes && p.CPUs == q.CPUs
}

// phase also accepts sizes that YAML parses as numbers. An invalid one then gets the same
// error as any other phase.
var phase = option.Written(func(s string) (string, error) { return strings.Join(strings.Fields(s), " "), nil }, nil, option.Schema{
	"type": "string", "pattern": `^\s*(idle|load|[0-9]+[KMGT]|hold\s+[0-9]+\s*([KMGT]i?B?|ki?B?|B)?|spin\s+([0-9]+\.?[0-9]*|\.[0-9]+)\s*(cpus?)?)\s*$`,
})

// scaled returns the phases with file sizes multiplied by scale, in whole blocks of fio.
// Equal results are merged.
func scaled(phases []string, scale float64) []string {
	var out []string
	for _, s := range phases {
		if p, err := ParsePhase(s); err == nil && p.Kind == PhaseFio {
			bytes := min(max(int64(float64(p.Bytes)*scale), minFile), maxFile)
			s = strings.ToUpper(storage.FormatSize(bytes / minFile * minFile))
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
