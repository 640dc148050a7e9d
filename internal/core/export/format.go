package export

import (
	"io"
	"slices"
	"strings"
)

// Format is a form of all figures of any experiments, for programs.
type Format struct {
	Name   string // its word behind --format
	Help   string // what reads it
	Binary bool   // it is for files: no terminal can show it
	Write  func(io.Writer, []Document) error
}

// Formats are all of them. docs/formats.md says what each holds and what it cannot
// express.
var Formats = []Format{
	{Name: "json", Help: "everything, see tare schema figures", Write: JSON},
	{Name: "csv", Help: "spreadsheets", Write: CSV},
	{Name: "parquet", Help: "DuckDB, pandas, Spark", Binary: true, Write: Parquet},
	{Name: "benchfmt", Help: "benchstat", Write: Benchfmt},
	{Name: "hyperfine", Help: "scripts for hyperfine's JSON", Write: Hyperfine},
	{Name: "openmetrics", Help: "Prometheus", Write: OpenMetrics},
	{Name: "otlp-metrics", Help: "OpenTelemetry", Write: OTLP},
	{Name: "junit", Help: "CI systems", Write: JUnit},
	{Name: "customSmallerIsBetter", Help: "github-action-benchmark, of what is better when less", Write: SmallerIsBetter},
	{Name: "customBiggerIsBetter", Help: "github-action-benchmark, of what is better when more", Write: BiggerIsBetter},
	{Name: "bencher", Help: "Bencher", Write: Bencher},
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
