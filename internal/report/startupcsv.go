package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
)

// startupColumns never change their order; new ones come last. A row is a figure of
// a whole start ("start"), a step of it in order ("step"), its time by what was at
// work ("phase"), or a gap ("gap"), whose name is whose it is. What does not exist
// is an empty cell. Starts are those that the median is of.
var startupColumns = []string{
	"row", "target", "n", "name", "kind", "median_ns", "lo_ns", "hi_ns", "share", "cpu_ns", "times", "starts", "failed",
	"after", "before", "timer", "nominal_ns",
}

func writeStartupCSV(w io.Writer, v *judge.Startup) error {
	rows := [][]string{startupColumns}
	for i := range v.Targets {
		t := &v.Targets[i]
		rows = append(rows, startRows(t)...)
		rows = append(rows, stepRows(t, "step", t.Table, t.Same)...)
		rows = append(rows, stepRows(t, "phase", t.Phases, t.Starts)...)
		for j := range t.Gaps {
			rows = append(rows, gapRow(t, j))
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func startRows(t *judge.StartupTarget) (rows [][]string) {
	for i, of := range []struct {
		name string
		e    judge.Estimate
	}{{"wall", t.Wall}, {"first instruction", t.First}, {"runtime calls", t.Calls}, {"credits to the engine", t.Credits}, {"cpu", t.CPU}} {
		row := startupRow(t, "start", i, of.name, "", of.e, t.Starts)
		row[12] = strconv.Itoa(t.Failed)
		rows = append(rows, row)
	}
	return rows
}

func stepRows(t *judge.StartupTarget, row string, steps []judge.StartupStep, starts int) (rows [][]string) {
	for i := range steps {
		s := &steps[i]
		cells := startupRow(t, row, i, s.Name, s.Kind, s.Took, starts)
		if s.Took.Known {
			cells[8] = fixed(s.Share, 6)
		}
		if s.CPU.Known {
			cells[9] = exact(s.CPU.Value)
		}
		cells[10] = exact(s.Times)
		rows = append(rows, cells)
	}
	return rows
}

func gapRow(t *judge.StartupTarget, i int) []string {
	g := &t.Gaps[i]
	cells := startupRow(t, "gap", i, g.In, "", g.Took, g.Seen)
	if g.CPU >= 0 {
		cells[9] = strconv.FormatInt(g.CPU, 10)
	}
	cells[13], cells[14] = harmless(g.After), harmless(g.Before)
	if g.Wait != nil {
		cells[15], cells[16] = harmless(g.Wait.Timer), strconv.FormatInt(g.Wait.Nominal, 10)
	}
	return cells
}

func startupRow(t *judge.StartupTarget, row string, n int, name, kind string, e judge.Estimate, starts int) []string {
	cells := make([]string, len(startupColumns))
	copy(cells, []string{row, harmless(t.Target), strconv.Itoa(n + 1), harmless(name), harmless(kind)})
	copy(cells[5:], estimateCells(e))
	cells[11] = strconv.Itoa(starts)
	return cells
}
