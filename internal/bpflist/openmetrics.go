package bpflist

import (
	"fmt"
	"io"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// family is an OpenMetrics metric family. value returns "" without a sample.
type family[T any] struct {
	name, kind, unit, help string
	value                  func(*T) string
}

var programFamilies = []family[Program]{
	{"tare_bpf_program_run_seconds", "counter", "seconds", "Time that the program ran, on all CPUs, while statistics were on.",
		func(p *Program) string { return fmt.Sprintf("%d.%09d", p.Time/1e9, p.Time%1e9) }},
	{"tare_bpf_program_runs", "counter", "", "Runs of the program while statistics were on.",
		func(p *Program) string { return whole(p.Runs) }},
	{"tare_bpf_program_recursion_misses", "counter", "", "Runs skipped because the program was already running on that CPU.",
		func(p *Program) string { return whole(p.Misses) }},
	{"tare_bpf_program_memory_bytes", "gauge", "bytes", "Memory of the program's instructions, without its maps.",
		func(p *Program) string { return where(p.Memory >= 0, whole(p.Memory)) }},
}

var mapFamilies = []family[record.ProgramMap]{
	{"tare_bpf_map_memory_bytes", "gauge", "bytes", "Memory of the map, without maps in it.",
		func(a *record.ProgramMap) string { return where(a.Memory >= 0, whole(a.Memory)) }},
	{"tare_bpf_map_inner_memory_bytes", "gauge", "bytes", "Memory of inner maps, each counted at one map only.",
		func(a *record.ProgramMap) string {
			return where(a.Inner > 0 && a.InnerMemory >= 0, whole(a.InnerMemory))
		}},
	{"tare_bpf_map_programs", "gauge", "", "Programs that use the map.",
		func(a *record.ProgramMap) string { return whole(a.Shared) }},
}

// writeOpenMetrics prints the counters since loading and the memory as OpenMetrics 1.0
// text, which Prometheus reads. Counters grow only while statistics are on.
func (v *View) writeOpenMetrics(w io.Writer) error {
	var all []export.Family
	for _, f := range programFamilies {
		all = append(all, f.of(v.Programs, func(p *Program) figure.Labels {
			if p.Gone {
				return nil
			}
			return figure.Labels{{Key: "id", Value: whole(p.ID)}, {Key: "name", Value: p.name()}, {Key: "kind", Value: p.Kind}, {Key: "tag", Value: p.Tag}, {Key: "owner", Value: p.Owner}}
		}))
	}
	for _, f := range mapFamilies {
		all = append(all, f.of(v.allMaps(), func(a *record.ProgramMap) figure.Labels {
			return figure.Labels{{Key: "id", Value: whole(a.ID)}, {Key: "name", Value: a.Name}, {Key: "kind", Value: a.Kind}}
		}))
	}
	return export.WriteOpenMetrics(w, all)
}

// of returns the family with a sample for each item that has labels and a value.
func (f *family[T]) of(list []T, labels func(*T) figure.Labels) export.Family {
	out := export.Family{Name: f.name, Type: f.kind, Unit: f.unit, Help: f.help}
	for i := range list {
		if value, about := f.value(&list[i]), labels(&list[i]); value != "" && about != nil {
			out.Samples = append(out.Samples, export.Sample{Labels: about, Value: value})
		}
	}
	return out
}
