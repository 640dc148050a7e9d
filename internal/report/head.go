package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/tare-bench/tare/record"
)

// ran is which run it was, of what, on which machine, and how it ended.
func ran(rec *record.Record, seed uint64) string {
	h, env := &rec.Header, &rec.Header.Environment
	return dotted("tare "+known(h.Version), "run "+known(h.RunID), "Linux "+known(env.Kernel), processor(env), cgroups(env.Cgroup),
		fmt.Sprintf("seed %d", seed), outcome(rec))
}

// status is the run's own word on its end; a record without an end has none.
func status(rec *record.Record) string {
	if rec.End == nil {
		return "cut off"
	}
	return known(rec.End.Status)
}

func outcome(rec *record.Record) string {
	s := status(rec)
	if rec.End == nil {
		return s
	}
	if rec.End.Elapsed > 0 {
		s += " after " + duration(float64(rec.End.Elapsed))
	}
	if rec.End.Why != "" {
		s += " (" + rec.End.Why + ")"
	}
	return s
}

func targets(all []record.Target, baseline string) string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
		if t.Version != "" {
			names[i] += " " + t.Version
		}
		if baseline != "" && t.Name == baseline {
			names[i] += " (baseline)"
		}
	}
	if len(names) == 0 {
		return "no targets"
	}
	return "targets: " + dotted(names...)
}

func processor(env *record.Environment) string {
	if env.CPUModel == "" {
		return fmt.Sprintf("%d CPUs", env.CPUs)
	}
	return fmt.Sprintf("%s × %d", env.CPUModel, env.CPUs)
}

func cgroups(mode string) string {
	if mode == "none" {
		return "no cgroups"
	}
	return "cgroup " + known(mode)
}

// surroundings is the rest of the environment, for those who ask.
func surroundings(h *record.Header) string {
	env := &h.Environment
	parts := []string{h.Started.UTC().Format(time.RFC3339), env.OS, env.Arch}
	for _, p := range []struct{ name, value string }{
		{"governor", env.Governor}, {"virtual", env.Virtual}, {"root file system", env.RootFS},
		{"clock", env.ClockSource}, {"missing capabilities", strings.Join(env.MissingCaps, " ")},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	parts = append(parts, "memory "+size(float64(env.Memory)), fmt.Sprintf("load %.2f at the start", env.LoadStart))
	return dotted(parts...)
}

// known shows what could not be read as such.
func known(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

func dotted(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " · ")
}
