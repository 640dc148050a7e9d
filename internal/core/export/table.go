package export

import (
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// table has a row for each figure, followed by its rounds and its samples over time. A cell is
// nil, a string, an int64, a float64 or a time.
type table struct {
	columns []column
	inCSV   int // number of columns in CSV; the later ones are only in Parquet
	rows    []tableRow
}

type column struct {
	name string
	kind func() parquet.Node
}

type tableRow struct {
	cells []any
	round bool // row of a single round, which CSV omits
}

// The columns before and after the labels. New columns are appended.
var (
	columnsBefore = []column{{"run_id", parquet.String}, {"experiment", parquet.String}, {"quantity", parquet.String}, {"unit", parquet.String}}
	columnsAfter  = []column{{"at_s", real64}, {"n", whole}, {"value", real64}, {"lo", real64}, {"hi", real64},
		{"failed", whole}, {"total", whole}, {"baseline", parquet.String}, {"shift", real64}, {"shift_lo", real64}, {"shift_hi", real64},
		{"p", real64}, {"p_adjusted", real64}, {"compared", parquet.String}, {"verdict", parquet.String}}
	columnsAbout = []column{{"page_cache", parquet.String}} // about the run
	columnsMore  = []column{{"round", whole}, {"better", parquet.String}, {"reasons", parquet.String}, {"started", moment}, {"tare_version", parquet.String},
		{"kernel", parquet.String}, {"arch", parquet.String}, {"cpu_model", parquet.String}}
)

func real64() parquet.Node { return parquet.Leaf(parquet.DoubleType) }
func whole() parquet.Node  { return parquet.Leaf(parquet.Int64Type) }
func moment() parquet.Node { return parquet.Timestamp(parquet.Microsecond) }

func tableOf(all []Document) *table {
	var labels []string
	for _, d := range all {
		for _, f := range d.Figures {
			for _, l := range f.Labels {
				if !slices.Contains(labels, l.Key) {
					labels = append(labels, l.Key)
				}
			}
		}
	}
	named := make([]column, len(labels))
	for i, key := range labels {
		named[i] = column{key, parquet.String}
	}
	t := &table{columns: slices.Concat(columnsBefore, named, columnsAfter, columnsAbout, columnsMore)}
	t.inCSV = len(t.columns) - len(columnsMore)
	for _, d := range all {
		cache := string(d.Record.Header.Planned().Cache)
		for i := range d.Figures {
			t.add(d.Record, &d.Figures[i], cache, labels)
		}
	}
	return t
}

// add appends the rows of a figure.
func (t *table) add(rec *record.Record, f *figure.Figure, cache string, labels []string) {
	names := []any{text(rec.Header.RunID), text(f.Experiment), text(f.Quantity), text(string(f.Unit))}
	for _, key := range labels {
		names = append(names, text(f.Labels.Get(key)))
	}
	h := &rec.Header
	about := []any{text(cache), nil, text(string(f.Better)), text(strings.Join(f.Reasons, "; ")), nil, text(h.Version),
		text(h.Environment.Kernel), text(h.Environment.Arch), text(h.Environment.CPUModel)}
	if !h.Started.IsZero() {
		about[4] = h.Started
	}
	t.rows = append(t.rows, tableRow{cells: slices.Concat(names, estimateCells(f), about)})
	for _, r := range f.Rounds {
		values, about := make([]any, len(columnsAfter)), slices.Clone(about)
		values[2], about[1] = real(r.Value), int64(r.Round)
		t.rows = append(t.rows, tableRow{slices.Concat(names, values, about), true})
	}
	if s := f.Series; s != nil {
		for i := range min(len(s.Times), len(s.Values)) {
			values := make([]any, len(columnsAfter))
			values[0], values[2] = real(s.Times[i]), real(s.Values[i])
			t.rows = append(t.rows, tableRow{cells: slices.Concat(names, values, about)})
		}
	}
}

func estimateCells(f *figure.Figure) []any {
	row := make([]any, len(columnsAfter))
	if e := f.Estimate; e.Known() {
		row[1], row[2] = int64(e.N), real(e.Value)
		if e.Bounded {
			row[3], row[4] = real(e.Lo), real(e.Hi)
		}
	}
	if f.Total > 0 {
		row[5], row[6] = int64(f.Failed), int64(f.Total)
	}
	if v := f.Versus; v != nil {
		row[7], row[11], row[12], row[13] = text(v.Baseline), real(v.P), real(v.Adjusted), text(string(v.Verdict))
		if v.Shift.Known() {
			row[8] = real(v.Shift.Value)
		}
		if v.Shift.Bounded {
			row[9], row[10] = real(v.Shift.Lo), real(v.Shift.Hi)
		}
	}
	row[14] = text(f.Verdict)
	return row
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

func real(v float64) any {
	if !stat.Finite(v) {
		return nil
	}
	return v
}

// shown formats a cell for CSV.
func shown(cell any) string {
	switch v := cell.(type) {
	case string:
		return harmless(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return number(v)
	}
	return ""
}
