package bpflist

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// family is one of OpenMetrics: all of its samples stand together. The value of what
// has none is "".
type family[T any] struct {
	name, kind, unit, help string
	value                  func(*T) string
}

var programFamilies = []family[Program]{
	{"tare_bpf_program_run_seconds", "counter", "seconds", "Time that the program ran, on all CPUs, while statistics were on.",
		func(p *Program) string { return fmt.Sprintf("%d.%09d", p.Time/1e9, p.Time%1e9) }},
	{"tare_bpf_program_runs", "counter", "", "Runs of the program while statistics were on.",
		func(p *Program) string { return whole(p.Runs) }},
	{"tare_bpf_program_recursion_misses", "counter", "", "Runs that were left out since the program was running on that CPU already.",
		func(p *Program) string { return whole(p.Misses) }},
	{"tare_bpf_program_memory_bytes", "gauge", "bytes", "Memory of the program's instructions, without its maps.",
		func(p *Program) string { return where(p.Memory >= 0, whole(p.Memory)) }},
}

var mapFamilies = []family[record.ProgramMap]{
	{"tare_bpf_map_memory_bytes", "gauge", "bytes", "Memory of the map, without maps in it.",
		func(a *record.ProgramMap) string { return where(a.Memory >= 0, whole(a.Memory)) }},
	{"tare_bpf_map_inner_memory_bytes", "gauge", "bytes", "Memory of the maps in a map, each at one map only.",
		func(a *record.ProgramMap) string {
			return where(a.Inner > 0 && a.InnerMemory >= 0, whole(a.InnerMemory))
		}},
	{"tare_bpf_map_programs", "gauge", "", "Programs that use the map.",
		func(a *record.ProgramMap) string { return whole(a.Shared) }},
}

// WriteOpenMetrics prints the counters since loading and the memory as text of
// OpenMetrics 1.0, the form that Prometheus reads. Counters grow while statistics
// are on only.
func (v *View) WriteOpenMetrics(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, f := range programFamilies {
		f.write(out, v.Programs, func(p *Program) string {
			if p.Gone {
				return ""
			}
			return labels("id", whole(p.ID), "name", p.name(), "kind", p.Kind, "tag", p.Tag, "owner", p.Owner)
		})
	}
	for _, f := range mapFamilies {
		f.write(out, v.allMaps(), func(a *record.ProgramMap) string { return labels("id", whole(a.ID), "name", a.Name, "kind", a.Kind) })
	}
	out.WriteString("# EOF\n")
	return out.Flush()
}

// write prints a family with a sample for each of a list that has labels and a value.
func (f *family[T]) write(out *bufio.Writer, list []T, labels func(*T) string) {
	fmt.Fprintf(out, "# TYPE %s %s\n", f.name, f.kind)
	if f.unit != "" {
		fmt.Fprintf(out, "# UNIT %s %s\n", f.name, f.unit)
	}
	fmt.Fprintf(out, "# HELP %s %s\n", f.name, f.help)
	suffix := ""
	if f.kind == "counter" {
		suffix = "_total"
	}
	for i := range list {
		if value, about := f.value(&list[i]), labels(&list[i]); value != "" && about != "" {
			fmt.Fprintf(out, "%s%s{%s} %s\n", f.name, suffix, about, value)
		}
	}
}

// labels are names and values in turn, escaped as OpenMetrics asks; line ends are
// escaped by Clean.
func labels(of ...string) string {
	var parts []string
	for i := 0; i < len(of); i += 2 {
		parts = append(parts, of[i]+`="`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(term.Clean(of[i+1]))+`"`)
	}
	return strings.Join(parts, ",")
}
