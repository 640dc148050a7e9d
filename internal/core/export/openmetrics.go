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

// Family is one of OpenMetrics: all of its samples stand together.
type Family struct {
	Name, Type, Unit, Help string
	Samples                []Sample
}

// Sample is one of a family. Its value is a number as OpenMetrics writes one.
type Sample struct {
	Labels figure.Labels
	Value  string
}

// WriteOpenMetrics prints families as text of OpenMetrics 1.0, the form that
// Prometheus reads.
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

// labelName keeps clear of the label that only summaries may have.
func labelName(key string) string {
	if key == "quantile" {
		return "statistic"
	}
	return metricName(key)
}

// escape writes a text as OpenMetrics asks; line ends are escaped by Clean.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(term.Clean(text))
}

// metricName is a name of ours as names of metrics and labels can be.
func metricName(of string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, of)
}

// OpenMetrics writes the estimates, and of each run what it was, when it began and how
// much of it failed: values as old as the run that they are of look like new ones.
func OpenMetrics(w io.Writer, all []Document) error {
	families := []Family{ // as gauges they are read as older text, too
		{Name: "tare_run_info", Type: "gauge", Help: "What was run, and where."},
		{Name: "tare_run_started_timestamp_seconds", Type: "gauge", Unit: "seconds", Help: "When the run began, since 1970."},
		{Name: "tare_run_attempts", Type: "gauge", Help: "Attempts of the whole run."},
		{Name: "tare_run_failed", Type: "gauge", Help: "Attempts of the whole run that failed."},
	}
	seen := map[string]bool{}
	add := func(family int, labels figure.Labels, value float64) {
		if series := families[family].Name + escaped(labels); !seen[series] { // a record may be given twice
			seen[series] = true
			families[family].Samples = append(families[family].Samples, Sample{labels, number(value)})
		}
	}
	for i, apart := range apart(all) {
		d := &all[i]
		add(0, append(about(d.Record), apart...), 1)
		if d.Record.Header.RunID == "" { // published figures are of no run
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
