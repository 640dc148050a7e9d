package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
)

// bpfColumns never change their order; new ones come last. A row is a point
// ("point"), a program at it ("program"), a weight of the programs under the limit
// ("quota"), or what programs and maps occupy with so many services ("memory").
// Shares are 0 to 1: of one core, or of the node. A figure that does not exist is
// an empty cell, as are those of the whole point in the rows of its programs.
var bpfColumns = slices.Concat(
	[]string{"row", "connections", "qps_asked", "keep_alive", "cpu_limit", "instances", "heavy", "services", "url", "rounds", "failed", "program_id", "program"},
	estimated("qps", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "client_core", "server_core", "node_busy", "bpf_core", "bpf_node", "bpf_ns_per_request",
		"statistics_price", "runs_per_s", "ns_per_run", "runs_per_request", "usage_core", "ticks_core", "workload_core", "throttled"),
	[]string{"errors", "open_loop", "statistics_differ", "misses", "programs_bytes", "maps_bytes", "under_load_bytes", "verdict", "because", "failure"},
)

// bpfFigures are the estimates of a row of CSV, in the order of the columns.
type bpfFigures struct {
	qps, p50, p90, p99, p999          judge.Estimate
	client, server, node              judge.Estimate
	core, ofNode, perRequest, price   judge.Estimate
	rate, run, runs                   judge.Estimate
	usage, ticks, workload, throttled judge.Estimate
}

func (f *bpfFigures) cells() (out []string) {
	for _, e := range []judge.Estimate{f.qps, f.p50, f.p90, f.p99, f.p999, f.client, f.server, f.node, f.core, f.ofNode, f.perRequest,
		f.price, f.rate, f.run, f.runs, f.usage, f.ticks, f.workload, f.throttled} {
		out = append(out, estimateCells(e)...)
	}
	return out
}

func writeBPFCSV(w io.Writer, v *judge.BPF) error {
	rows := [][]string{bpfColumns}
	for i := range v.Rows {
		r := &v.Rows[i]
		rows = append(rows, bpfPointRow(r))
		for j := range r.Programs {
			rows = append(rows, bpfProgramRow(v, r, &r.Programs[j]))
		}
	}
	if v.Quota != nil {
		for i := range v.Quota.Steps {
			rows = append(rows, bpfQuotaRow(v, &v.Quota.Steps[i]))
		}
	}
	for i := range v.Growth {
		g := &v.Growth[i]
		tail := make([]string, 10)
		for k, bytes := range []int64{g.Programs, g.Maps, g.UnderLoad} {
			if bytes >= 0 {
				tail[4+k] = strconv.FormatInt(bytes, 10)
			}
		}
		lead := make([]string, 13)
		lead[0], lead[7] = "memory", strconv.Itoa(g.Services)
		rows = append(rows, slices.Concat(lead, (&bpfFigures{}).cells(), tail))
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// bpfLead is what a point's rows begin with.
func bpfLead(row string, r *judge.BPFRow) []string {
	a := &r.Asked
	return []string{
		row, strconv.Itoa(a.Connections), exact(a.QPS), strconv.FormatBool(a.KeepAlive), exact(a.CPUs), strconv.Itoa(a.Instances), strconv.FormatInt(a.Heavy, 10),
		strconv.Itoa(a.Services), harmless(a.URL), strconv.Itoa(r.Rounds), strconv.Itoa(r.Failed), "", "",
	}
}

func bpfPointRow(r *judge.BPFRow) []string {
	f := bpfFigures{qps: r.QPS, p50: r.P50, p90: r.P90, p99: r.P99, p999: r.P999, client: r.ClientCore, server: r.ServerCore, node: r.NodeBusy,
		core: r.BPFCore, ofNode: r.BPFNode, perRequest: r.PerRequest, price: r.Price}
	tail := make([]string, 10)
	tail[0], tail[1] = strconv.FormatInt(r.Errors, 10), strconv.FormatBool(r.Open)
	if r.Price.Known {
		tail[2] = strconv.FormatBool(r.Different)
	}
	if r.Failure != nil {
		tail[9] = harmless(r.Failure.Detail)
	}
	return slices.Concat(bpfLead("point", r), f.cells(), tail)
}

func bpfProgramRow(v *judge.BPF, r *judge.BPFRow, p *judge.BPFProgramRow) []string {
	lead := bpfLead("program", r)
	lead[11], lead[12] = strconv.FormatUint(uint64(p.ID), 10), harmless(p.Name)
	f := bpfFigures{core: p.Core, ofNode: ofNode(p.Core, v.CPUs), rate: p.Rate, run: p.Each, runs: p.PerRequest}
	tail := make([]string, 10)
	tail[3] = strconv.FormatInt(p.Misses, 10)
	return slices.Concat(lead, f.cells(), tail)
}

func bpfQuotaRow(v *judge.BPF, t *judge.BPFQuotaStep) []string {
	q := v.Quota
	lead := make([]string, 13)
	lead[0], lead[4], lead[6] = "quota", exact(q.Limit), strconv.FormatInt(t.Heavy, 10)
	f := bpfFigures{qps: t.QPS, core: t.BPF, ofNode: ofNode(t.BPF, v.CPUs), usage: t.Usage, ticks: t.Ticks, workload: t.Workload, throttled: t.Throttled}
	tail := make([]string, 10)
	tail[7] = harmless(string(q.Verdict))
	if len(q.Because) > 0 {
		tail[8] = harmless(q.Because[0])
	}
	return slices.Concat(lead, f.cells(), tail)
}
