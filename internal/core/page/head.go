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

// Ran identifies the run: version, run ID, machine and outcome. It begins with the targets
// whose VMs are emulated.
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
	return prefixed("EMULATED VM, no KVM: ", strings.Join(slow, ", "))
}

// Identity identifies the run in one line: its experiment, rounds, machine, run ID and outcome.
func Identity(rec *record.Record, rounds int) string {
	env := &rec.Header.Environment
	return Dotted(emulated(rec), Known(rec.Header.Experiment), Amount(rounds, "round"), "Linux "+Known(env.Kernel), Amount(env.CPUs, "CPU"), "run "+Known(rec.Header.RunID), Outcome(rec))
}

// Head identifies the run and lists the user's own workloads.
func Head(rec *record.Record, rounds int) []string {
	return append([]string{Identity(rec, rounds)}, Workload(rec)...)
}

// Run returns the section with the details of a run. If verbose is set, it includes the
// machine and the configuration of each target.
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

// NodeMemory returns the memory size of the node, or "" if it is unknown.
func NodeMemory(rec *record.Record) string {
	n := rec.Header.Environment.Memory
	if n <= 0 {
		return ""
	}
	return "memory " + Size(float64(n))
}

// Workload describes the user's own workload and each neighbour, one per line. It returns
// nothing if the run used the built-in probe.
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
	variables, stop := prefixed("with ", Listed(w.Env)), prefixed("stopped by ", Heading(w.Stop))
	return what + ": " + Dotted(Middle(Heading(source), 2*LongestName), Heading(digest), Middle(strings.Join(words, " "), 2*LongestName), "user "+Heading(w.User), variables, stop)
}

// prefixed adds a prefix to a text that is not empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// Imported is [Head] for an imported record. The sources are files with line numbers. The
// argument unknown lists what such a record lacks.
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

// Labels lists the labels that were added to the record after the run.
func Labels(rec *record.Record) []string {
	var all []string
	for _, l := range rec.Labelled() {
		all = append(all, Heading(l.Key)+"="+Heading(l.Value))
	}
	return Filled(prefixed("labels: ", Dotted(all...)))
}

// Outcome returns how the run ended, after how long, and why. A record without an end was cut
// off.
func Outcome(rec *record.Record) string {
	if rec.End == nil {
		return "cut off"
	}
	s := Known(rec.End.Status)
	if rec.End.Elapsed > 0 {
		s += " after " + Duration(float64(rec.End.Elapsed))
	}
	if rec.End.Why != "" {
		s += " (" + rec.End.Why + ")"
	}
	return s
}

// Targets lists the targets with their versions and marks the baseline.
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

// Kata describes the configuration of a Kata target, or returns "" for other targets. The
// configuration decides which cgroup is charged for a sandbox and whether its VM boots.
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

// Processor returns the CPU model and the number of CPUs.
func Processor(env *record.Environment) string {
	if env.CPUModel == "" {
		return fmt.Sprintf("%d CPUs", env.CPUs)
	}
	return fmt.Sprintf("%s × %d", env.CPUModel, env.CPUs)
}

// Cgroups returns the cgroup mode of the machine.
func Cgroups(mode string) string {
	if mode == "none" {
		return "no cgroups"
	}
	return "cgroup " + Known(mode)
}

// Date returns the start of the run, or "" if it is unknown.
func Date(h *record.Header) string {
	if h.Started.IsZero() {
		return ""
	}
	return h.Started.UTC().Format(time.RFC3339)
}

// Surroundings returns the rest of the environment for verbose output: the machine and the
// configuration of each target.
func Surroundings(rec *record.Record) []string {
	h, env := &rec.Header, &rec.Header.Environment
	lines := []string{Dotted(Date(h), env.OS, env.Arch,
		prefixed("governor ", env.Governor), prefixed("virtual ", env.Virtual), prefixed("root file system ", env.RootFS),
		prefixed("clock ", env.ClockSource), prefixed("missing capabilities ", strings.Join(env.MissingCaps, " ")),
		"memory "+Size(float64(env.Memory)), fmt.Sprintf("load %.2f at the start", env.LoadStart))}
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
