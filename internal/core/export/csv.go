package export

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// CSV writes a row for each figure, with a column for each label in use. A missing value is an
// empty cell. Samples over time follow their figure, one row per sample with its time in
// seconds.
func CSV(w io.Writer, all []Document) error {
	t := tableOf(all)
	out := csv.NewWriter(w)
	row := make([]string, t.inCSV)
	for i := range row {
		row[i] = harmless(t.columns[i].name)
	}
	if err := out.Write(row); err != nil {
		return err
	}
	for _, r := range t.rows {
		if r.round {
			continue
		}
		for i := range row {
			row[i] = shown(r.cells[i])
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// number formats a value with all its digits. It returns "" for NaN and infinities.
func number(v float64) string {
	if v != v || v-v != 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// harmless prevents a spreadsheet from reading a text as a formula, and a terminal from
// interpreting it.
func harmless(s string) string {
	s = term.Clean(s)
	if s != "" && strings.Contains("=+-@", s[:1]) {
		return "'" + s
	}
	return s
}
