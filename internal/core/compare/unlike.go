package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

// Kind is the kind of a difference between records.
type Kind string

// The kinds of differences.
const (
	Machine       Kind = "machine"
	Kernel        Kind = "kernel"
	System        Kind = "system"        // configuration of the machine
	Version       Kind = "version"       // version of a target
	Configuration Kind = "configuration" // configuration of a target
	Definition    Kind = "definition"    // definition of what was timed
	Option        Kind = "options"
	Instrument    Kind = "tare"
)

// Difference is a circumstance that differs between records.
type Difference struct {
	Kind   Kind
	Target string // target that differs; "" for the whole record
	Field  string
	A, B   string
	sides  [2]string
}

// String formats a difference as "kernel: 6.1.0 (old), 6.18.0 (new)".
func (d *Difference) String() string {
	return fmt.Sprintf("%s: %s (%s), %s (%s)", d.Field, page.Known(d.A), d.sides[0], page.Known(d.B), d.sides[1])
}

// fact is a circumstance of a run.
type fact struct {
	kind          Kind
	target, field string
	value         string
	part          bool // compared only if both sides have it
}

// about returns a note on the kinds of circumstances that differ between the records of a pair.
// forbidden is the reason if no verdict is possible: the effect of another machine, instrument
// or definition cannot be separated from the effect of a runtime.
func (c *Comparison) about(p pair) (about []string, forbidden string) {
	var kinds []string
	for _, a := range c.kinds(p.base.runs) {
		for _, b := range c.kinds(p.cell.runs) {
			for _, d := range c.between(a, b) {
				if d.Target == "" || d.Target == p.figure.Labels.Get("target") || d.Target == p.base.Labels.Get("target") {
					if kinds = append(kinds, string(d.Kind)); d.Kind == Machine || d.Kind == Instrument || d.Kind == Definition {
						forbidden = cmp.Or(forbidden, "no verdict: the records differ in their "+string(d.Kind)+" ("+d.String()+")")
					}
				}
			}
		}
	}
	for _, f := range slices.Concat(p.base.of, p.cell.of) {
		if first := p.base.of[0]; f.Until != first.Until && f.Until != "" && first.Until != "" && (f.Labels.Get("target") == first.Labels.Get("target") || f.Until == untilFirst || first.Until == untilFirst) {
			forbidden = cmp.Or(forbidden, fmt.Sprintf("no verdict: the times end with different stamps (%s, %s), since some rounds lack one", first.Until, f.Until))
		}
	}
	if kinds = slices.Compact(slices.Sorted(slices.Values(kinds))); len(kinds) > 0 {
		about = []string{"on " + strings.Join(kinds, " and ") + ", in which the records differ"}
	}
	if forbidden != "" {
		about = []string{forbidden}
	}
	return about, forbidden
}

// ErrUnlike is returned for records of different circumstances.
var ErrUnlike = errors.New("these records are unlike, so a difference could have more than one cause")

// check finds the differences between all compared or joined records. It returns an error
// unless the options allow them.
func (c *Comparison) check(o Options) error {
	seen := map[string]bool{}
	for _, p := range c.pairs {
		for _, run := range slices.Concat(p.base.runs, p.cell.runs) {
			for _, d := range c.between(p.base.runs[0], run) {
				if text := string(d.Kind) + d.Target + d.String(); !seen[text] {
					seen[text] = true
					c.Differences = append(c.Differences, d)
				}
			}
		}
	}
	var refused []string
	for i := range c.Differences {
		if d := &c.Differences[i]; d.Kind != Version || !o.Versions {
			refused = append(refused, d.String())
		}
	}
	if len(refused) == 0 || o.Unlike {
		return nil
	}
	return fmt.Errorf("%w:\n%s\nUse --unlike to compare them anyway; the verdicts then depend on the differences", ErrUnlike, strings.Join(refused, "\n"))
}

// kinds returns a representative run for each set of circumstances. A thousand machines may
// have only a few types.
func (c *Comparison) kinds(runs []int) (out []int) {
	for _, run := range runs {
		out = page.Union(out, c.runs[run].like)
	}
	return out
}

// circumstances returns everything that [differences] compares, as one text.
func (c *Comparison) circumstances(run *Run) string {
	e, facts := &run.Header.Environment, options(run)
	for i := range run.Targets {
		facts = append(facts, target(&run.Targets[i])...)
	}
	return fmt.Sprintf("%d %q %#v", ofMemory(&c.memories, e.Memory), run.Labels.Get(machineLabel)+" "+run.Header.Experiment+" "+run.Header.Version, append(facts, environment(e)...))
}

// ofMemory returns the index of an amount of memory among the distinct sizes.
func ofMemory(met *[]int64, memory int64) int {
	i := slices.IndexFunc(*met, func(m int64) bool { return SameMemory(m, memory) })
	if i < 0 {
		i = len(*met)
		*met = append(*met, memory)
	}
	return i
}

// between returns the differences of two runs.
func (c *Comparison) between(a, b int) []Difference {
	if a, b = c.runs[a].like, c.runs[b].like; a == b {
		return nil
	}
	known, ok := c.unlike[[2]int{a, b}]
	if !ok {
		known = differences(&c.runs[a], &c.runs[b])
		c.unlike[[2]int{a, b}] = known
	}
	return known
}

// SameMemory reports whether two machines may have the same memory size. The reported size
// varies because a kernel reserves some memory before it counts.
func SameMemory(a, b int64) bool { return math.Abs(float64(a-b)) <= 0.02*float64(a) }

// machineLabel is the label that names the machine of a record. An imported record without it
// has an unknown machine. Two such records may be from the same machine.
const machineLabel = "machine"

// unknown returns a line that counts the runs on unknown machines, or "" if there are none.
func (c *Comparison) unknown() string {
	n := 0
	for _, run := range c.runs {
		if run.Header.Environment.Kernel == "" && run.Labels.Get(machineLabel) == "" {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("the machine of %d of %s is unknown and may be the reason for a difference: name it with tare label RECORD machine=NAME", n, page.Amount(len(c.runs), "run"))
}

func differences(a, b *sided) (out []Difference) {
	add := func(kind Kind, target, field, was, is string) {
		if kind == Option {
			was, is = cmp.Or(was, "not given"), cmp.Or(is, "not given")
		}
		out = append(out, Difference{kind, target, field, was, is, [2]string{a.side, b.side}})
	}
	ea, eb := &a.Header.Environment, &b.Header.Environment
	known, other, was, is := ea.Kernel != "", eb.Kernel != "", a.Labels.Get(machineLabel), b.Labels.Get(machineLabel)
	switch {
	case known && other && (was == is || was == "" || is == ""):
		if !SameMemory(ea.Memory, eb.Memory) {
			add(Machine, "", "memory", page.Size(float64(ea.Memory)), page.Size(float64(eb.Memory)))
		}
		differ(environment(ea), environment(eb), add)
	case was != is || was == "" && known != other:
		add(Machine, "", machineLabel, cmp.Or(was, ea.CPUModel), cmp.Or(is, eb.CPUModel))
	}
	if a.Header.Version != b.Header.Version {
		add(Instrument, "", "tare", a.Header.Version, b.Header.Version)
	}
	for _, was := range a.Targets {
		for _, is := range b.Targets {
			if was.Name == is.Name {
				differ(target(&was), target(&is), add)
			}
		}
	}
	if a.Header.Experiment == b.Header.Experiment {
		differ(options(a.Run), options(b.Run), add)
	}
	return out
}

// differ reports the facts that are not equal. A missing fact is "".
func differ(a, b []fact, add func(kind Kind, target, field, was, is string)) {
	is := map[string]string{}
	for _, f := range b {
		is[f.field] = f.value
	}
	for _, f := range a {
		if _, both := is[f.field]; f.value != is[f.field] && (both || !f.part) {
			add(f.kind, f.target, f.field, f.value, is[f.field])
		}
		delete(is, f.field)
	}
	for _, f := range b {
		if v := is[f.field]; v != "" && !f.part {
			add(f.kind, f.target, f.field, "", v)
		}
	}
}

// environment returns the facts of a machine. Facts that depend on the kernel have the kind Kernel.
func environment(e *record.Environment) []fact {
	facts := []fact{
		{Machine, "", "arch", e.Arch, false}, {Machine, "", "CPU", e.CPUModel, false}, {Machine, "", "CPUs", strconv.Itoa(e.CPUs), false}, {Machine, "", "hypervisor", e.Virtual, false},
		{Kernel, "", "kernel", e.Kernel, false}, {Kernel, "", "kernel build", e.KernelBuild, false}, {Kernel, "", "clock source", e.ClockSource, false},
		{System, "", "OS", e.OS, false}, {System, "", "cgroup", e.Cgroup, false}, {System, "", "controllers", strings.Join(e.Controllers, " "), false},
		{System, "", "governor", e.Governor, false}, {System, "", "swap", page.Size(float64(e.Swap)), false}, {System, "", "root file system", e.RootFS, false},
		{System, "", "missing capabilities", strings.Join(e.MissingCaps, " "), false}, {System, "", "lanes", e.Lanes, false},
	}
	for _, name := range slices.Sorted(maps.Keys(e.Mitigations)) {
		facts = append(facts, fact{Kernel, "", "mitigation " + name, e.Mitigations[name], false})
	}
	return facts
}

// target returns the facts of a target. Its path is not part of the timed command.
func target(t *record.Target) []fact {
	facts := []fact{{Version, t.Name, t.Name + " version", t.Version, false}, {Version, t.Name, t.Name + " digest", t.Digest, false}, {Version, t.Name, t.Name + " spec", t.SpecVersion, false},
		{Definition, t.Name, t.Name + " clock", t.Clock, false}}
	for _, op := range slices.Sorted(maps.Keys(t.Operations)) {
		o := t.Operations[op]
		command := o.Command
		if t.Path != "" {
			command = strings.ReplaceAll(command, t.Path, t.Name)
		}
		facts = append(facts, fact{Definition, t.Name, t.Name + " " + op, page.Dotted(command, string(o.Done), o.Means, o.Absent), true})
	}
	for _, key := range slices.Sorted(maps.Keys(t.Config)) {
		facts = append(facts, fact{Configuration, t.Name, t.Name + " " + key, t.Config[key], false})
	}
	return facts
}

// extent lists options for the amount, the targets and the order of measurements. They do not
// change the meaning of a figure.
var extent = []string{"title", "targets", "missing", "rounds", "seed", "precision", "budget", "baseline", "subject", "margin", "adjust"}

// options returns the options of a run. Swept values are left out, since they are in the labels
// of the figures. Named items are compared only if both sides have them.
func options(run *Run) (facts []fact) {
	var plan map[string]json.RawMessage
	if json.Unmarshal(run.Header.Plan, &plan) != nil {
		return []fact{{Option, "", "options", string(run.Header.Plan), false}}
	}
	for _, key := range slices.Sorted(maps.Keys(plan)) {
		var named []map[string]any
		switch {
		case slices.Contains(extent, key), swept(key, plan[key], run):
		case json.Unmarshal(plan[key], &named) == nil:
			for _, one := range named {
				name, _ := one["name"].(string)
				text, _ := json.Marshal(one) // it was decoded from JSON
				facts = append(facts, fact{Option, "", key + " " + name, string(text), true})
			}
		default:
			var value any
			_ = json.Unmarshal(plan[key], &value) // part of valid JSON
			text, _ := json.Marshal(value)        // sorts keys and normalizes numbers
			facts = append(facts, fact{Option, "", "option " + key, string(text), false})
		}
	}
	return facts
}

// swept reports whether an option is a list of values of a label: lanes, ops, volumes.
func swept(key string, value json.RawMessage, run *Run) bool {
	var list []any
	if json.Unmarshal(value, &list) != nil {
		return false
	}
	for _, v := range list {
		if _, object := v.(map[string]any); object {
			return false
		}
	}
	return slices.ContainsFunc(run.Figures, func(f figure.Figure) bool {
		return f.Labels.Get(key) != "" || f.Labels.Get(strings.TrimSuffix(key, "s")) != ""
	})
}
