package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Family is an OpenMetrics metric family. Its samples must be contiguous.
type Family struct {
	Name, Type, Unit, Help string
	Samples                []Sample
}

// Sample is one sample of a family. Its value is a number in OpenMetrics syntax.
type Sample struct {
	Labels figure.Labels
	Value  string
}

// WriteOpenMetrics writes families as OpenMetrics 1.0 text, which Prometheus reads.
func WriteOpenMetrics(w io.Writer, families []Family) error {
	out := bufio.NewWriter(w)
	for _, f := range families {
		fmt.Fprintf(out, "# TYPE %s %s\n", f.Name, f.Type)
		if f.Unit != "" {
			fmt.Fprintf(out, "# UNIT %s %s\n", f.Name, f.Unit)
		}
		fmt.Fprintf(out, "# HELP %s %s\n", f.Name, escape(f.Help))
		suffix := ""
		if f.Type == "counter" {
			suffix = "_total"
		}
		for _, s := range f.Samples {
			fmt.Fprintf(out, "%s%s{%s} %s\n", f.Name, suffix, escaped(s.Labels), s.Value)
		}
	}
	out.WriteString("# EOF\n")
	return out.Flush()
}

func escaped(labels figure.Labels) string {
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = labelName(l.Key) + `="` + escape(l.Value) + `"`
	}
	return strings.Join(parts, ",")
}

// labelName renames "quantile", which is reserved for summaries.
func labelName(key string) string {
	if key == "quantile" {
		return "statistic"
	}
	return metricName(key)
}

// escape escapes a text for OpenMetrics. Clean escapes line ends.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(term.Clean(text))
}

// metricName converts a name to valid characters for metrics and labels.
func metricName(of string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, of)
}

// OpenMetrics writes the estimates and, for each run, its description, start and number of
// failures. The start is necessary because scraped values look current even if the run is old.
func OpenMetrics(w io.Writer, all []Document) error {
	families := []Family{ // gauges are also valid in the older text format
		{Name: "tare_run_info", Type: "gauge", Help: "The run and its machine."},
		{Name: "tare_run_started_timestamp_seconds", Type: "gauge", Unit: "seconds", Help: "Start of the run, as a Unix timestamp."},
		{Name: "tare_run_attempts", Type: "gauge", Help: "Attempts of the whole run."},
		{Name: "tare_run_failed", Type: "gauge", Help: "Attempts of the whole run that failed."},
	}
	seen := map[string]bool{}
	add := func(family int, labels figure.Labels, value float64) {
		if series := families[family].Name + escaped(labels); !seen[series] { // the same record may be given twice
			seen[series] = true
			families[family].Samples = append(families[family].Samples, Sample{labels, number(value)})
		}
	}
	for i, apart := range apart(all) {
		d := &all[i]
		add(0, append(about(d.Record), apart...), 1)
		if d.Record.Header.RunID == "" { // published figures have no run
			continue
		}
		of := append(figure.Of("tare.experiment", d.Record.Header.Experiment), apart...)
		if started := d.Record.Header.Started; !started.IsZero() {
			add(1, of, float64(started.UnixMilli())/1e3)
		}
		add(2, of, float64(d.Total))
		add(3, of, float64(d.Failed))
	}
	for _, g := range gauges(slices.Concat(naming(all)...)) {
		f := Family{Type: "gauge", Unit: g.openMetrics, Help: g.help()}
		f.Name = metricName("tare_" + g.experiment + "_" + strings.TrimSuffix(g.quantity, "-"+g.openMetrics))
		for _, end := range []string{g.part, f.Unit} {
			if end != "" {
				f.Name += "_" + end
			}
		}
		for _, p := range g.points {
			f.Samples = append(f.Samples, Sample{p.of.labels, number(p.value)})
		}
		families = append(families, f)
	}
	return WriteOpenMetrics(w, families)
}
