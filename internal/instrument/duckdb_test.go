package instrument_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/thousand"
	"github.com/tare-bench/tare/record"
)

// answer is a result row of the queries in docs/formats.md.
type answer struct {
	Target, Op, Kernel, Node string
	CPU                      string `json:"cpu_model"`
	MS, Lo, Hi, MiB, Percent *float64
	Rounds                   int
}

// duckdb runs a query in a folder with the DuckDB from scripts/install-tests.
func duckdb(t *testing.T, dir, sql string) (rows []answer) {
	t.Helper()
	need.Tools(t, "DuckDB")
	cache := must.Get(os.UserCacheDir())(t)
	found, _ := filepath.Glob(filepath.Join(cache, "tare", "duckdb-*", "bin", "duckdb"))
	must.That(t, found != nil, "no DuckDB in the user's cache: run scripts/install-tests tools")
	cmd := exec.CommandContext(t.Context(), slices.Max(found), "-init", os.DevNull, "-json", "-c", sql)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &rows)
	}
	must.That(t, err == nil, "%v of %s\n%s", err, sql, out)
	return rows
}

func TestDuckDBQueriesMatchReports(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("../../docs/formats.md"))(t)
	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	must.That(t, len(queries) == 3, "%d queries in docs/formats.md", len(queries))
	dir := t.TempDir()
	of := map[string]*record.Record{"figures": load(t, "lifecycle"), "overhead": load(t, "overhead"), "storage": load(t, "storage")}
	for name, rec := range of {
		must.OK(t, os.WriteFile(filepath.Join(dir, name+".parquet"), []byte(report(t, rec, "parquet", page.Options{})), 0o600))
	}
	same := func(got *float64, want float64, there bool) bool {
		return (got != nil) == there && (!there || near(*got, want))
	}
	timed := map[string]figure.Figure{}
	for _, f := range valued(t, of["figures"]) {
		if f.Quantity == "latency" && f.Labels.Get("lanes") == "1" {
			timed[f.Labels.Get("target")+" "+f.Labels.Get("op")] = f
		}
	}
	for i, query := range queries[:2] {
		rows := duckdb(t, dir, query[1])
		for _, r := range rows {
			f := timed[r.Target+" "+r.Op]
			if !same(r.MS, f.Value/1e6, true) || i == 0 && (!same(r.Lo, f.Lo/1e6, f.Bounded) || !same(r.Hi, f.Hi/1e6, f.Bounded)) || i == 1 && r.Rounds != len(f.Rounds) {
				t.Errorf("%+v is %+v", r, f)
			}
		}
		if len(rows) != len(timed) || len(rows) == 0 {
			t.Errorf("%d rows of %d figures by%s", len(rows), len(timed), query[1])
		}
	}
	held := map[string][]float64{}
	for _, f := range valued(t, of["overhead"]) {
		if f.Quantity == "memory" && f.Labels.Get("phase") == "idle" {
			held[f.Labels.Get("target")] = append(held[f.Labels.Get("target")], f.Value)
		}
	}
	env := of["overhead"].Header.Environment
	rows := duckdb(t, dir, queries[2][1])
	for _, r := range rows {
		check.That(t, same(r.MiB, figure.MedianOf(held[r.Target]).Value/1048576, true) && r.Kernel == env.Kernel && r.CPU == env.CPUModel,
			"%+v has labels %v", r, held[r.Target])
	}
	check.That(t, len(rows) == len(held) && len(rows) != 0, "%d rows of %d targets", len(rows), len(held))
}

func TestDuckDBFindsNodeOutliers(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("../../docs/compare.md"))(t)
	query := regexp.MustCompile("(?s)```sql\n(.*?)```").FindStringSubmatch(string(text))
	must.That(t, query != nil, "no query in docs/compare.md")
	dir, fleet := t.TempDir(), thousand.Fleet{Nodes: 30, Lanes: []int{1}, Rounds: 6}
	must.OK(t, fleet.Write(filepath.Join(dir, "nodes")))
	files, err := filepath.Glob(filepath.Join(dir, "nodes/*/*.jsonl"))
	if err != nil || len(files) != fleet.Nodes {
		t.Fatal(files, err)
	}
	for _, file := range files {
		rec := must.Get(record.Load(file))(t)
		must.OK(t, os.WriteFile(file+".parquet", []byte(report(t, rec, "parquet", page.Options{})), 0o600))
	}
	unlike, found := fleet.Unlike(), map[string]bool{}
	for _, r := range duckdb(t, dir, query[1]) {
		if found[r.Node] = true; unlike[r.Node] == "" || r.Percent == nil || math.Abs(*r.Percent) < 20 {
			t.Errorf("unexpected outlier %+v", r)
		}
	}
	check.That(t, len(found) == len(unlike), "found %v of %v", found, unlike)
}
