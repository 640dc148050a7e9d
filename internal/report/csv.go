package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// csvColumns never change their order; new ones come last. A figure that does
// not exist is an empty cell. The lanes' own latencies exist from two lanes on;
// with one the median is of them.
var csvColumns = []string{
	"lanes", "op", "target", "n", "failed", "total", "median_ns", "lo_ns", "hi_ns", "trimmed_mean_ns",
	"delta_percent", "p", "different", "p50_ns", "p90_ns", "p99_ns", "max_ns", "skew_ns", "parallelism",
}

// csvRoleColumns follow where some target has processes of its own. What a
// role used for an operation is a row of its own, whose n are its rounds.
var csvRoleColumns = []string{
	"role", "processes_before", "processes_after", "cpu_per_operation_ns", "pss_before_bytes", "pss_peak_bytes", "pss_after_bytes",
	"growth_per_container_bytes", "pss_each_bytes", "unread",
}

func writeCSV(w io.Writer, all []Weighed) error {
	heading, withRoles := csvColumns, false
	for _, one := range all {
		withRoles = withRoles || slices.ContainsFunc(one.Lifecycle.Tables, func(t judge.Table) bool { return hasRoles(&t) })
	}
	if withRoles {
		heading = slices.Concat(csvColumns, csvRoleColumns)
	}
	width := len(heading)
	if len(all) > 1 {
		heading = append(slices.Clip(heading), "run_id")
	}
	rows := [][]string{heading}
	for _, one := range all {
		for _, row := range csvRows(one.Lifecycle) {
			row = append(row, make([]string, width-len(row))...) // as many cells in every row
			if len(all) > 1 {
				row = append(row, harmless(one.Record.Header.RunID))
			}
			rows = append(rows, row)
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func csvRows(l *judge.Lifecycle) (rows [][]string) {
	for _, t := range l.Tables {
		for _, row := range t.Rows {
			for i := range row.Cells {
				c := &row.Cells[i]
				rows = append(rows, csvRow(t.Lanes, string(row.Op), c))
				for j := range c.Roles {
					rows = append(rows, csvRoleRow(t.Lanes, string(row.Op), c.Target, &c.Roles[j]))
				}
			}
		}
	}
	return rows
}

func csvRoleRow(lanes int, op, target string, r *judge.RoleFacts) []string {
	row := make([]string, len(csvColumns))
	row[0], row[1], row[2], row[3] = strconv.Itoa(lanes), harmless(op), harmless(target), strconv.Itoa(r.N)
	figures := make([]string, len(csvRoleColumns)-2)
	if r.N > 0 {
		figures = []string{fixed(r.Before, 1), fixed(r.After, 1), "", fixed(r.PSSBefore, 0), fixed(r.PSSPeak, 0), fixed(r.PSSAfter, 0), fixed(r.Growth, 0), fixed(r.Each, 0)}
		if r.CPU != nil {
			figures[2] = nanoseconds(*r.CPU)
		}
	}
	return append(append(append(row, harmless(string(r.Role))), figures...), strconv.Itoa(r.Unread))
}

func csvRow(lanes int, op string, c *judge.Cell) []string {
	row := []string{
		strconv.Itoa(lanes), harmless(op), harmless(c.Target),
		strconv.Itoa(c.Summary.N), strconv.Itoa(c.Failed), strconv.Itoa(c.Total), "", "", "", "",
	}
	if c.Summary.N > 0 {
		row[6] = nanoseconds(c.Summary.Median)
	}
	if c.Summary.Known {
		row[7], row[8] = nanoseconds(c.Summary.Lo), nanoseconds(c.Summary.Hi)
	}
	if c.Trimmed != nil {
		row[9] = nanoseconds(*c.Trimmed)
	}
	compared := []string{"", "", ""}
	if v := c.Versus; v != nil {
		compared = []string{fixed(100*v.Delta, 4), fixed(v.P, 6), strconv.FormatBool(v.Different)}
	}
	batch := make([]string, 6)
	if b := c.Batch; b != nil {
		batch = []string{nanoseconds(b.P50), nanoseconds(b.P90), nanoseconds(b.P99), nanoseconds(b.Max), nanoseconds(b.Skew), fixed(b.Parallelism, 4)}
	}
	return append(append(row, compared...), batch...)
}

func nanoseconds(v float64) string { return fixed(v, 0) }

func fixed(v float64, decimals int) string {
	if !finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// harmless keeps a spreadsheet from taking a text for a formula.
func harmless(s string) string {
	s = term.Clean(s)
	if s != "" && strings.Contains("=+-@", s[:1]) {
		return "'" + s
	}
	return s
}
