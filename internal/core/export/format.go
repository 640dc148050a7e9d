package export

import (
	"io"
	"slices"
	"strings"
)

// Format is an export format for the figures of any experiments.
type Format struct {
	Name   string // value of --format
	Binary bool   // not for terminals
	Write  func(io.Writer, []Document) error
}

// Formats are all export formats. docs/formats.md documents their contents and limits. The
// comments name the programs that read them.
var Formats = []Format{
	{Name: "json", Write: JSON},                             // everything, see tare schema figures
	{Name: "csv", Write: CSV},                               // spreadsheets
	{Name: "parquet", Binary: true, Write: Parquet},         // DuckDB, pandas, Spark
	{Name: "benchfmt", Write: Benchfmt},                     // benchstat
	{Name: "hyperfine", Write: Hyperfine},                   // scripts for hyperfine's JSON
	{Name: "openmetrics", Write: OpenMetrics},               // Prometheus
	{Name: "otlp-metrics", Write: OTLP},                     // OpenTelemetry
	{Name: "junit", Write: JUnit},                           // CI systems
	{Name: "customSmallerIsBetter", Write: SmallerIsBetter}, // github-action-benchmark; figures for which less is better
	{Name: "customBiggerIsBetter", Write: BiggerIsBetter},   // github-action-benchmark; figures for which more is better
	{Name: "bencher", Write: Bencher},                       // Bencher
}

// FormatOf returns the format with a name.
func FormatOf(name string) (Format, bool) {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return Formats[i], true
}

// FormatNames returns the names of all formats, separated by commas.
func FormatNames() string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}
