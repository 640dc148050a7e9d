package export

import (
	"io"
	"slices"
	"strings"
)

// Format is a form of all figures of any experiments, for programs.
type Format struct {
	Name   string // its word behind --format
	Binary bool   // it is for files: no terminal can show it
	Write  func(io.Writer, []Document) error
}

// Formats are all of them. docs/formats.md says what each holds and what it cannot
// express; behind each stands what reads it.
var Formats = []Format{
	{Name: "json", Write: JSON},                             // everything, see tare schema figures
	{Name: "csv", Write: CSV},                               // spreadsheets
	{Name: "parquet", Binary: true, Write: Parquet},         // DuckDB, pandas, Spark
	{Name: "benchfmt", Write: Benchfmt},                     // benchstat
	{Name: "hyperfine", Write: Hyperfine},                   // scripts for hyperfine's JSON
	{Name: "openmetrics", Write: OpenMetrics},               // Prometheus
	{Name: "otlp-metrics", Write: OTLP},                     // OpenTelemetry
	{Name: "junit", Write: JUnit},                           // CI systems
	{Name: "customSmallerIsBetter", Write: SmallerIsBetter}, // github-action-benchmark, of what is better when less
	{Name: "customBiggerIsBetter", Write: BiggerIsBetter},   // github-action-benchmark, of what is better when more
	{Name: "bencher", Write: Bencher},                       // Bencher
}

// FormatOf finds a format by its word.
func FormatOf(name string) (Format, bool) {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return Formats[i], true
}

// FormatNames are the words of all.
func FormatNames() string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}
