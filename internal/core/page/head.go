package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Ran is which run it was, of what, on which machine, and how it ended. First it names the
// targets whose VMs are emulated.
func Ran(rec *record.Record, seed uint64) string {
	h, env := &rec.Header, &rec.Header.Environment
	return Dotted(emulated(rec), "tare "+Known(h.Version), "run "+Known(h.RunID), "Linux "+Known(env.Kernel), Processor(env), Cgroups(env.Cgroup),
		fmt.Sprintf("seed %d", seed), Outcome(rec))
}

func emulated(rec *record.Record) string {
	var slow []string
	for i := range rec.Targets {
		if t := &rec.Targets[i]; finding.IsEmulated(rec, t) {
			slow = append(slow, t.Name)
		}
	}
	if slow == nil {
		return ""
	}
	return "EMULATED VM, no KVM: " + strings.Join(slow, ", ")
}

// Identity is which run it was, in one line: all that a reader of the answer needs.
func Identity(rec *record.Record, rounds int) string {
	env := &rec.Header.Environment
	return Dotted(emulated(rec), Known(rec.Header.Experiment), Amount(rounds, "round"), "Linux "+Known(env.Kernel), Amount(env.CPUs, "CPU"), "run "+Known(rec.Header.RunID), Outcome(rec))
}

// Head is which run it was, and the programs of the user's own that it was with.
func Head(rec *record.Record, rounds int) []string {
	return append([]string{Identity(rec, rounds)}, Workload(rec)...)
}

// Run is all that is known of a run besides what it found, for those who ask; verbose has
// the machine and how each target is set up.
func Run(rec *record.Record, seed uint64, baseline string, verbose bool) *Section {
	items := []Item{{Key: "run", Text: Ran(rec, seed)}, {Key: "targets", Text: strings.TrimPrefix(Targets(rec.Targets, baseline), "targets: ")}}
	if verbose {
		for i, line := range Surroundings(rec) {
			if i == 0 {
				items = append(items, Item{Key: "machine", Text: line})
				continue
			}
			name, set, _ := strings.Cut(line, ": ")
			items = append(items, Item{Key: name, Text: set})
		}
	}
	return &Section{Title: "the run", Style: term.Bold, Lists: []List{{Items: items}}}
}

// NodeMemory is how much memory the node has, "" where that is not known.
func NodeMemory(rec *record.Record) string {
	n := rec.Header.Environment.Memory
	if n <= 0 {
		return ""
	}
	return "memory " + Size(float64(n))
}

// Workload is the program of the user's own that the run was with, a line; none for the
// probe.
func Workload(rec *record.Record) (lines []string) {
	if w := rec.Header.Workload; w != nil {
		lines = append(lines, workload("workload", w))
	}
	for i := range rec.Header.Neighbours {
		lines = append(lines, workload("neighbour", &rec.Header.Neighbours[i]))
	}
	return lines
}

func workload(what string, w *record.Workload) string {
	source, digest := w.Source, w.Digest
	if source == "" {
		source = "tare's own image"
	} else if len(digest) > len("sha256:")+12 {
		digest = digest[:len("sha256:")+12]
	}
	words := make([]string, len(w.Command))
	for i, word := range w.Command {
		words[i] = term.Clean(word)
	}
	variables, stop := "", ""
	if len(w.Env) > 0 {
		variables = "with " + Listed(w.Env)
	}
	if w.Stop != "" {
		stop = "stopped by " + Heading(w.Stop)
	}
	return what + ": " + Dotted(Middle(Heading(source), 2*LongestName), Heading(digest), Middle(strings.Join(words, " "), 2*LongestName), "user "+Heading(w.User), variables, stop)
}

// Imported is the same of what was imported, from files and lines in them; unknown is
// what such a record lacks.
func Imported(rec *record.Record, sources []string, unknown string) []string {
	files := make([]string, len(sources))
	for i, file := range sources {
		if at := strings.LastIndexByte(file, ':'); at >= 0 {
			file = file[:at]
		}
		files[i] = Middle(term.Clean(Known(file)), 2*LongestName)
	}
	if len(files) == 0 {
		files = []string{"nothing"}
	}
	return []string{
		Dotted("tare "+Known(rec.Header.Version), "run "+Known(rec.Header.RunID), Outcome(rec)),
		"imported from " + Listed(files) + "; " + unknown,
	}
}

// Labels are what was said of the record afterwards.
func Labels(rec *record.Record) []string {
	var all []string
	for _, l := range rec.Labelled() {
		all = append(all, Heading(l.Key)+"="+Heading(l.Value))
	}
	if all == nil {
		return nil
	}
	return []string{"labels: " + Dotted(all...)}
}

// status is the run's own word on its end; a record without an end has none.
func status(rec *record.Record) string {
	if rec.End == nil {
		return "cut off"
	}
	return Known(rec.End.Status)
}

// Outcome is how the run ended, after how long, and why.
func Outcome(rec *record.Record) string {
	s := status(rec)
	if rec.End == nil {
		return s
	}
	if rec.End.Elapsed > 0 {
		s += " after " + Duration(float64(rec.End.Elapsed))
	}
	if rec.End.Why != "" {
		s += " (" + rec.End.Why + ")"
	}
	return s
}

// Targets says what was weighed.
func Targets(all []record.Target, baseline string) string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
		if t.Version != "" {
			names[i] += " " + t.Version
		}
		if of := Kata(&t); of != "" {
			names[i] += " (" + of + ")"
		}
		if baseline != "" && t.Name == baseline {
			names[i] += " (baseline)"
		}
	}
	if len(names) == 0 {
		return "no targets"
	}
	return "targets: " + Dotted(names...)
}

// Kata is what decides who is charged for a target's sandboxes, and whether they are
// booted, where they are Kata's; else "".
func Kata(t *record.Target) string {
	c := t.Config
	if c["kata config"] == "" {
		return ""
	}
	parts := []string{strings.TrimSpace("Kata " + c["kata version"])}
	if c["hypervisor"] != "" {
		parts = append(parts, strings.TrimSpace(c["hypervisor"]+" "+c["hypervisor version"]))
		if how := c["acceleration"]; how != "" {
			parts = append(parts, how)
		}
		parts = append(parts, "sandbox_cgroup_only="+c["sandbox_cgroup_only"])
	}
	if c["enable_template"] == "true" {
		parts = append(parts, "VMs from a template")
	}
	if n := c["vm_cache_number"]; n != "" && n != "0" {
		parts = append(parts, "VMs from a cache of "+n)
	}
	return strings.Join(append(parts, c["kata config"]), ", ")
}

// Processor is the machine's.
func Processor(env *record.Environment) string {
	if env.CPUModel == "" {
		return fmt.Sprintf("%d CPUs", env.CPUs)
	}
	return fmt.Sprintf("%s × %d", env.CPUModel, env.CPUs)
}

// Cgroups is the mode of the machine's.
func Cgroups(mode string) string {
	if mode == "none" {
		return "no cgroups"
	}
	return "cgroup " + Known(mode)
}

// Date is when a run began, "" where that is not known.
func Date(h *record.Header) string {
	if h.Started.IsZero() {
		return ""
	}
	return h.Started.UTC().Format(time.RFC3339)
}

// Surroundings is the rest of the environment, for those who ask: the machine, and
// how each target is set up.
func Surroundings(rec *record.Record) []string {
	h, env := &rec.Header, &rec.Header.Environment
	parts := []string{Date(h), env.OS, env.Arch}
	for _, p := range []struct{ name, value string }{
		{"governor", env.Governor}, {"virtual", env.Virtual}, {"root file system", env.RootFS},
		{"clock", env.ClockSource}, {"missing capabilities", strings.Join(env.MissingCaps, " ")},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	parts = append(parts, "memory "+Size(float64(env.Memory)), fmt.Sprintf("load %.2f at the start", env.LoadStart))
	lines := []string{Dotted(parts...)}
	for _, t := range rec.Targets {
		var set []string
		for _, key := range slices.Sorted(maps.Keys(t.Config)) {
			set = append(set, key+" "+t.Config[key])
		}
		if set != nil {
			lines = append(lines, t.Name+": "+Dotted(set...))
		}
	}
	return lines
}
