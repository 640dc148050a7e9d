package record

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// fullRecord holds one line of every type, with every kind of field in use.
func fullRecord() *Record {
	return &Record{
		Header: Header{
			Type: TypeHeader, Schema: Schema, RunID: "tare-1f", Experiment: "lifecycle",
			Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
			Command: []string{"tare", "lifecycle", "--lanes", "1,50"}, Version: "v0.1.0",
			Plan:        json.RawMessage(`{"version":1}`),
			Environment: Environment{Kernel: "6.18.0", Arch: "amd64", CPUs: 8, Memory: 1 << 34, Cgroup: "v2"},
		},
		Targets: []Target{{
			Type: TypeTarget, Name: "runc", Kind: "oci", Clock: "host",
			Operations: map[string]Operation{"create": {Command: "runc create -b a ID && true", Done: StampReturned, Means: "the command exited"}},
		}},
		Batches: []Batch{
			{Type: TypeBatch, Phase: PhaseWarmup, Target: "runc", Op: "create", Lanes: 1, Released: 1000,
				Samples: []Sample{{Start: 1100, Returned: 2000, First: 1500, Seen: 1600}}},
			{Type: TypeBatch, Phase: PhaseMeasure, Target: "runc", Op: "start", Lanes: 3, Released: 3000, Lost: 1,
				Samples: []Sample{
					{Lane: 0, Start: 3100, Returned: 4000},
					{Lane: 2, Start: 3200, Failure: &Failure{Kind: FailExit, Detail: "exit status 1", Exit: 1}},
				},
				Roles: []Usage{
					{Role: RoleDaemon, Before: 2, After: 2, CPU: 500, PSSBefore: 4096, PSSPeak: 8192, PSSAfter: 4096},
					{Role: RoleShim, After: 2, CPU: 900, PSSPeak: 12288, PSSAfter: 12288, Unread: 1},
				}},
		},
		Nodes:    []Node{{Type: TypeNode, Time: 5000, Phase: PhaseMeasure, Load1: 0.5, Known: true, Busy: 0.25}},
		Findings: []Finding{{Type: TypeFinding, Code: "failed-operations", Level: "error", Message: "1 of 3 failed", Advice: "look at it"}},
		End:      &End{Type: TypeEnd, Status: "done", Why: "rounds", Batches: 2, Failures: 1, Elapsed: 9000},
	}
}

// lines returns the record's lines in the order a run writes them.
func lines(r *Record) []any {
	all := []any{r.Header}
	for _, l := range r.Targets {
		all = append(all, l)
	}
	for _, l := range r.Batches {
		all = append(all, l)
	}
	for _, l := range r.Nodes {
		all = append(all, l)
	}
	for _, l := range r.Findings {
		all = append(all, l)
	}
	if r.End != nil {
		all = append(all, *r.End)
	}
	return all
}

// plainText is fullRecord as a file, and its lines.
func plainText(t testing.TB) (string, []string) {
	t.Helper()
	var b strings.Builder
	w := NewWriter(&b)
	for _, line := range lines(fullRecord()) {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	return b.String(), strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
}

const headerLine = `{"type":"header","schema":1}` + "\n"

const batchPrefix = `{"type":"batch","phase":"measure","target":"runc","op":"create","lanes":2,"released":1000,"samples":`
