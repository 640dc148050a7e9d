package run_test

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

const mib = 1 << 20

func TestTheRecordHasFiosOwnFigures(t *testing.T) {
	jobs := []storage.Job{
		{Name: "read", RW: "read", BS: 512 << 10, Size: 8 * mib, NumJobs: 2, Volumes: []string{record.VolumeBind}},
		{Name: "rndrw", RW: "randrw", BS: 32 << 10, Size: 8 * mib, Engine: "libaio", IODepth: 4},
		{Name: "write", RW: "write", BS: 64 << 10, Size: 8 * mib, Files: 4, EndFsync: true, Volumes: []string{record.VolumeRootfs}},
	}
	heard := weigh(t, storage.ToolFio, jobs, record.VolumeRootfs, record.VolumeBind)
	for i := range heard {
		heard[i].isFios(t)
	}
	if len(heard) != 2*2+2+2 {
		t.Errorf("%d cells", len(heard))
	}
}

func TestAJobFileOfFiosRunsWholeAndTheRecordHasItsFigures(t *testing.T) {
	sections, err := storage.ParseJobFile("; of two kinds\n[global]\nsize=4m\nbs=16k\n[random reads]\nrw=randread\nnumjobs=2\n[writes]\nrw=write\nbs=128k\n")
	if err != nil {
		t.Fatal(err)
	}
	heard := weigh(t, storage.ToolFio, []storage.Job{{Name: "my", Options: sections}}, record.VolumeRootfs, record.VolumeBind)
	for i := range heard {
		heard[i].isFios(t)
		if c := heard[i].cell.Reported; c.Read.Bytes != 2*4*mib || c.Write.Bytes != 4*mib {
			t.Errorf("%s: %d bytes were read, %d written", heard[i].name, c.Read.Bytes, c.Write.Bytes)
		}
	}
	if len(heard) != 4 {
		t.Errorf("%d cells", len(heard))
	}
}

func TestTheRecordHasWhatDDPrinted(t *testing.T) {
	heard := weigh(t, storage.ToolDD, []storage.Job{{Name: "write", RW: "write", BS: 4096, Count: 2048}, {Name: "read", RW: "read", BS: mib, Count: 8}}, record.VolumeRootfs)
	for _, h := range heard {
		c, flow := h.cell.Reported, h.cell.Reported.Read
		if h.cell.Job == "write" {
			flow = c.Write
		}
		// 8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.0436335 s, 192 MB/s
		lines := strings.Split(strings.TrimSpace(h.said.Stderr), "\n")
		words := strings.Fields(lines[len(lines)-1])
		whole, _, _ := strings.Cut(lines[0], "+")
		n := slices.Index(words, "copied,")
		if n < 0 {
			t.Fatalf("%s: dd printed %q", h.name, h.said.Stderr)
		}
		h.same(t, "bytes", words[0], digits(float64(flow.Bytes), 0))
		h.same(t, "records", whole, digits(float64(flow.IOs), 0))
		h.same(t, "seconds", number(t, words[n+1]), c.Seconds)
		h.same(t, "bandwidth", number(t, words[0])/number(t, words[n+1]), flow.Bandwidth)
		h.same(t, "IOPS", number(t, whole)/number(t, words[n+1]), flow.IOPS)
	}
	if len(heard) != 4 {
		t.Errorf("%d cells", len(heard))
	}
}

func TestTheRecordHasWhatSysbenchPrinted(t *testing.T) {
	heard := weigh(t, storage.ToolSysbench, []storage.Job{
		{Name: "rndrd", RW: "randread", BS: 16 << 10, Size: 8 * mib, Files: 2, NumJobs: 2, Requests: 400},
		{Name: "rndrw", RW: "randrw", BS: 16 << 10, Size: 8 * mib, Files: 2, NumJobs: 2, Requests: 400},
	}, record.VolumeRootfs)
	for _, h := range heard {
		c, printed := h.cell.Reported, map[string]string{}
		for line := range strings.Lines(h.said.Output) {
			if key, value, ok := strings.Cut(line, ":"); ok {
				printed[strings.TrimSpace(key)] = strings.TrimSpace(value)
			}
		}
		h.same(t, "reads/s", printed["reads/s"], digits(c.Read.IOPS, 2))
		h.same(t, "writes/s", printed["writes/s"], digits(c.Write.IOPS, 2))
		h.same(t, "total time", printed["total time"], digits(c.Seconds, 4)+"s")
		for _, side := range []struct {
			flow record.Flow
			said string
		}{{c.Read, printed["read, MiB/s"]}, {c.Write, printed["written, MiB/s"]}} {
			// Its own rate has two places, and is that of 16 KiB blocks.
			if off := math.Abs(number(t, side.said) - side.flow.Bandwidth/mib); off > 0.0051 {
				t.Errorf("%s: it printed %s MiB/s, the record has %v", h.name, side.said, side.flow.Bandwidth/mib)
			}
		}
		if requests := c.Read.IOs + c.Write.IOs; requests != 400 || c.Read.Bytes+c.Write.Bytes != 400*16<<10 {
			t.Errorf("%s: %d of 400 requests, %d bytes", h.name, requests, c.Read.Bytes+c.Write.Bytes)
		}
		if h.cell.Job == "rndrd" {
			// Ours is of the histogram, with three places.
			if off := math.Abs(number(t, printed["95th percentile"]) - float64(c.Read.Latency.P95)/1e6); off > 0.0056 {
				t.Errorf("%s: it printed a p95 of %s, the record has %d ns", h.name, printed["95th percentile"], c.Read.Latency.P95)
			}
			h.same(t, "max", printed["max"], digits(float64(c.Read.Latency.Max)/1e6, 2))
			h.same(t, "avg", printed["avg"], digits(float64(c.Read.Latency.Mean)/1e6, 2))
		}
	}
	if len(heard) != 4 {
		t.Errorf("%d cells", len(heard))
	}
}

// heard is a cell of the record, and what its tool said, word for word.
type heard struct {
	name string
	cell record.Cell
	said subject.Executed
}

func (h *heard) same(t *testing.T, figure string, printed, recorded any) {
	t.Helper()
	if printed != recorded {
		t.Errorf("%s: %s: it printed %v, the record has %v", h.name, figure, printed, recorded)
	}
}

// digits has a figure with as many places as its tool prints.
func digits(v float64, places int) string { return strconv.FormatFloat(v, 'f', places, 64) }

func number(t *testing.T, printed string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(printed, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// isFios compares the cell's claim with fio's JSON, whose numbers stay the text
// that they are.
func (h *heard) isFios(t *testing.T) {
	t.Helper()
	var printed struct {
		Version string `json:"fio version"`
		Jobs    []map[string]any
	}
	d := json.NewDecoder(strings.NewReader(h.said.Output))
	d.UseNumber()
	if err := d.Decode(&printed); err != nil || len(printed.Jobs) != 1 {
		t.Fatalf("%s: %d jobs, %v in\n%.2000s", h.name, len(printed.Jobs), err, h.said.Output)
	}
	h.same(t, "version", printed.Version, h.cell.Version)
	var took float64
	for side, flow := range map[string]record.Flow{"read": h.cell.Reported.Read, "write": h.cell.Reported.Write} {
		at := func(path ...string) string {
			v := printed.Jobs[0][side]
			for _, key := range path {
				in, _ := v.(map[string]any)
				v = in[key]
			}
			n, _ := v.(json.Number)
			return n.String()
		}
		took = max(took, number(t, at("runtime")))
		h.same(t, side+" bytes", at("io_bytes"), digits(float64(flow.Bytes), 0))
		h.same(t, side+" requests", at("total_ios"), digits(float64(flow.IOs), 0))
		h.same(t, side+" bandwidth", at("bw_bytes"), digits(flow.Bandwidth, 0))
		h.same(t, side+" IOPS", at("iops"), digits(flow.IOPS, 6))
		if flow.Bytes == 0 {
			continue
		}
		h.same(t, side+" mean", math.Round(number(t, at("lat_ns", "mean"))), float64(flow.Latency.Mean))
		h.same(t, side+" max", at("lat_ns", "max"), digits(float64(flow.Latency.Max), 0))
		for key, ns := range map[string]int64{"50": flow.Latency.P50, "95": flow.Latency.P95, "99": flow.Latency.P99, "99.9": flow.Latency.P999} {
			h.same(t, side+" p"+key, at("lat_ns", "percentile", digits(number(t, key), 6)), digits(float64(ns), 0))
		}
	}
	h.same(t, "run time", took, math.Round(h.cell.Reported.Seconds*1000))
}
