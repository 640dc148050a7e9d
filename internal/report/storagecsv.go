package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
)

// storageColumns never change their order; new ones come last. One row is one
// cell and direction: "total" of every cell, those that failed or are absent too,
// and "read" and "write" of those that have such. A figure that does not exist is
// an empty cell, as are those of the whole cell in the rows of its directions:
// there they would be counted twice.
var storageColumns = slices.Concat(
	[]string{"tool", "job", "rw", "bs_bytes", "volume", "cache", "target", "direction", "verdict", "rounds", "failed", "bytes"},
	estimated("bandwidth_bytes_per_s", "iops", "mean_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns", "seconds", "workload_cpus", "runtime_cpus", "cpu_s_per_gib", "ratio", "cpu_ratio"),
	[]string{"base", "different", "reached", "seen_read_bytes", "seen_write_bytes", "because", "absent", "failure", "command"},
)

// estimated are the columns of estimates: the interval's are empty where there
// are too few rounds for one.
func estimated(names ...string) (out []string) {
	for _, name := range names {
		out = append(out, name, name+"_lo", name+"_hi")
	}
	return out
}

func writeStorageCSV(w io.Writer, v *judge.Storage) error {
	rows := [][]string{storageColumns}
	for i := range v.Tables {
		t := &v.Tables[i]
		for j := range t.Cells {
			c := &t.Cells[j]
			rows = append(rows, storageRow(t, c, "total", &c.Total))
			if flows(&c.Read) {
				rows = append(rows, storageRow(t, c, "read", &c.Read))
			}
			if flows(&c.Write) {
				rows = append(rows, storageRow(t, c, "write", &c.Write))
			}
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func storageRow(t *judge.StorageTable, c *judge.StorageCell, direction string, f *judge.StorageFlow) []string {
	row := []string{
		harmless(t.Tool), harmless(t.Job), harmless(t.RW), "", harmless(t.Volume), harmless(t.Cache), harmless(c.Target), direction,
		harmless(verdict(c)), strconv.Itoa(c.Rounds), strconv.Itoa(c.Failed), "",
	}
	if t.BS > 0 {
		row[3] = strconv.FormatInt(t.BS, 10)
	}
	if c.Rounds > 0 && flows(f) {
		row[11] = exact(f.Bytes)
	}
	for _, e := range []judge.Estimate{f.Bandwidth, f.IOPS, f.Mean, f.P50, f.P95, f.P99, f.P999} {
		row = append(row, estimateCells(e)...)
	}
	ofCell := direction == "total"
	for _, e := range []judge.Estimate{c.Seconds, c.WorkloadCPU, c.RuntimeCPU, c.CPUPerGiB, c.Ratio, c.CPURatio} {
		if !ofCell {
			e = judge.Estimate{}
		}
		row = append(row, estimateCells(e)...)
	}
	rest := make([]string, 9)
	if ofCell {
		rest[0] = harmless(t.Base)
		if c.Ratio.Known {
			rest[1] = strconv.FormatBool(c.Different)
		}
		if c.ReachedKnown {
			rest[2], rest[3], rest[4] = exact(c.Reached), exact(c.SeenRead), exact(c.SeenWrite)
		}
		if len(c.Because) > 0 {
			rest[5] = harmless(c.Because[0])
		}
		rest[6] = harmless(c.Absent)
		if c.Failure != nil {
			rest[7] = harmless(c.Failure.Detail)
		}
		rest[8] = harmless(c.Command)
	}
	return append(row, rest...)
}

func estimateCells(e judge.Estimate) []string {
	out := make([]string, 3)
	if e.Known {
		out[0] = exact(e.Value)
	}
	if e.Known && e.Bounded {
		out[1], out[2] = exact(e.Lo), exact(e.Hi)
	}
	return out
}

// exact writes all digits, so that a figure of a tool's is found again as it was.
func exact(v float64) string { return fixed(v, -1) }
