package export

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// The columns around those of the labels. New ones come last.
var (
	csvBefore = []string{"run_id", "experiment", "quantity", "unit"}
	csvAfter  = []string{"at_s", "n", "value", "lo", "hi", "failed", "total", "baseline", "shift", "shift_lo", "shift_hi", "p", "p_adjusted", "compared", "verdict"}
)

// CSV writes a row for each figure, with a column for each label that some figure
// has. A value that does not exist is an empty cell. Samples over time follow
// their figure, each a row with the second it was taken at.
func CSV(w io.Writer, all []Document) error {
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
	out := csv.NewWriter(w)
	if err := out.Write(slices.Concat(csvBefore, labels, csvAfter)); err != nil {
		return err
	}
	for _, d := range all {
		for i := range d.Figures {
			f := &d.Figures[i]
			names := []string{Harmless(d.Record.Header.RunID), f.Experiment, f.Quantity, string(f.Unit)}
			for _, key := range labels {
				names = append(names, Harmless(f.Labels.Get(key)))
			}
			if err := out.Write(append(slices.Clip(names), csvFigure(f)...)); err != nil {
				return err
			}
			if err := csvSeries(out, names, f.Series); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvFigure(f *figure.Figure) []string {
	row := make([]string, len(csvAfter))
	if e := f.Estimate; e.Known() {
		row[1], row[2] = strconv.Itoa(e.N), number(e.Value)
		if e.Bounded {
			row[3], row[4] = number(e.Lo), number(e.Hi)
		}
	}
	if f.Total > 0 {
		row[5], row[6] = strconv.Itoa(f.Failed), strconv.Itoa(f.Total)
	}
	if v := f.Versus; v != nil {
		row[7], row[11], row[12], row[13] = Harmless(v.Baseline), number(v.P), number(v.Adjusted), string(v.Verdict)
		if v.Shift.Known() {
			row[8] = number(v.Shift.Value)
		}
		if v.Shift.Bounded {
			row[9], row[10] = number(v.Shift.Lo), number(v.Shift.Hi)
		}
	}
	row[14] = Harmless(f.Verdict)
	return row
}

func csvSeries(out *csv.Writer, names []string, s *figure.Series) error {
	if s == nil {
		return nil
	}
	for i := range min(len(s.Times), len(s.Values)) {
		row := make([]string, len(csvAfter))
		row[0], row[2] = number(s.Times[i]), number(s.Values[i])
		if err := out.Write(append(slices.Clip(names), row...)); err != nil {
			return err
		}
	}
	return nil
}

// number has every digit, and none where there is no number.
func number(v float64) string {
	if v != v || v-v != 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Harmless keeps a spreadsheet from taking a text for a formula, and a terminal
// from obeying it.
func Harmless(s string) string {
	s = term.Clean(s)
	if s != "" && strings.Contains("=+-@", s[:1]) {
		return "'" + s
	}
	return s
}
