package bpflist

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// family is one of OpenMetrics: all of its samples stand together.
type family struct {
	name, kind, unit, help string
}

// WriteOpenMetrics prints the counters since loading and the memory as text of
// OpenMetrics 1.0, the form that Prometheus reads. Counters grow while statistics
// are on only.
func (v *View) WriteOpenMetrics(w io.Writer) error {
	out := bufio.NewWriter(w)
	programs := func(f family, value func(p *Program) (string, bool)) {
		f.write(out)
		for i := range v.Programs {
			p := &v.Programs[i]
			text, ok := value(p)
			if !ok || p.Gone {
				continue
			}
			name := p.Full
			if name == "" {
				name = p.Name
			}
			f.sample(out, text, "id", strconv.FormatUint(uint64(p.ID), 10), "name", name, "kind", p.Kind, "tag", p.Tag, "owner", p.Owner)
		}
	}
	programs(family{"tare_bpf_program_run_seconds", "counter", "seconds", "Time that the program ran, on all CPUs, while statistics were on."},
		func(p *Program) (string, bool) { return seconds(p.Time), true })
	programs(family{"tare_bpf_program_runs", "counter", "", "Runs of the program while statistics were on."},
		func(p *Program) (string, bool) { return strconv.FormatUint(p.Runs, 10), true })
	programs(family{"tare_bpf_program_recursion_misses", "counter", "", "Runs that were left out since the program was running on that CPU already."},
		func(p *Program) (string, bool) { return strconv.FormatUint(p.Misses, 10), true })
	programs(family{"tare_bpf_program_memory_bytes", "gauge", "bytes", "Memory of the program's instructions, without its maps."},
		func(p *Program) (string, bool) { return strconv.FormatInt(p.Memory, 10), p.Memory >= 0 })
	v.mapMetrics(out)
	out.WriteString("# EOF\n")
	return out.Flush()
}

func (v *View) mapMetrics(out *bufio.Writer) {
	own := family{"tare_bpf_map_memory_bytes", "gauge", "bytes", "Memory of the map, without maps in it."}
	own.write(out)
	for i := range v.Maps {
		if a := &v.Maps[i]; a.Memory >= 0 {
			own.sample(out, strconv.FormatInt(a.Memory, 10), "id", strconv.FormatUint(uint64(a.ID), 10), "name", a.Name, "kind", a.Kind)
		}
	}
	inner := family{"tare_bpf_map_inner_memory_bytes", "gauge", "bytes", "Memory of the maps in a map, each at one map only."}
	inner.write(out)
	for i := range v.Maps {
		if a := &v.Maps[i]; a.Inner > 0 {
			inner.sample(out, strconv.FormatInt(a.InnerMemory, 10), "id", strconv.FormatUint(uint64(a.ID), 10), "name", a.Name, "kind", a.Kind)
		}
	}
	users := family{"tare_bpf_map_programs", "gauge", "", "Programs that use the map."}
	users.write(out)
	for i := range v.Maps {
		a := &v.Maps[i]
		users.sample(out, strconv.Itoa(a.Shared), "id", strconv.FormatUint(uint64(a.ID), 10), "name", a.Name, "kind", a.Kind)
	}
}

func (f *family) write(out *bufio.Writer) {
	out.WriteString("# TYPE " + f.name + " " + f.kind + "\n")
	if f.unit != "" {
		out.WriteString("# UNIT " + f.name + " " + f.unit + "\n")
	}
	out.WriteString("# HELP " + f.name + " " + f.help + "\n")
}

// sample writes one; labels are names and values in turn.
func (f *family) sample(out *bufio.Writer, value string, labels ...string) {
	out.WriteString(f.name)
	if f.kind == "counter" {
		out.WriteString("_total")
	}
	for i := 0; i < len(labels); i += 2 {
		mark := ","
		if i == 0 {
			mark = "{"
		}
		out.WriteString(mark + labels[i] + `="` + label.Replace(term.Clean(labels[i+1])) + `"`)
	}
	out.WriteString("} " + value + "\n")
}

// label escapes a value as OpenMetrics asks; line ends are escaped already.
var label = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// seconds writes ns exactly.
func seconds(ns uint64) string {
	s := strconv.FormatUint(ns/1e9, 10)
	rest := strconv.FormatUint(1e9+ns%1e9, 10)[1:]
	return s + "." + rest
}
