package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/testing/must"
)

// commits writes the records of so many, of which the second half took longer.
func commits(t *testing.T, dir string, n int) {
	t.Helper()
	text := must.Read(t, stored(t, t.TempDir(), "docker/runc", false))
	for i := range n {
		returned := 42_000_000 + 100_000*(i*7%5) + 4_000_000*(2*i/n)
		one := strings.NewReplacer(`"idd"`, fmt.Sprintf(`"id%d"`, i), "42001000", fmt.Sprint(returned), `"kernel":""`, `"kernel":"6.1.0"`).Replace(text)
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", i))
		must.Write(t, path, one)
		ends(t, ExitDone, "", "label", path, fmt.Sprintf("commit=%d", 100+i))
	}
}

func TestAHistoryEndsWithWhetherAnythingBecameWorse(t *testing.T) {
	dir := t.TempDir()
	commits(t, dir, 24)
	t.Chdir(dir)
	commands(t, "history", nil)
	_, out, _ := tare(t, "history", ".", "--format", "csv")
	if rows, err := csv.NewReader(strings.NewReader(out)).ReadAll(); err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v\n%s", len(rows), err, out)
	}
	_, out, _ = tare(t, "history", ".", "--format", "json")
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(string(export.Schema)))
	must.OK(t, err)
	c := jsonschema.NewCompiler()
	must.OK(t, c.AddResource("figures.json", schema))
	var d any
	must.OK(t, json.Unmarshal([]byte(out), &d))
	if err := c.MustCompile("figures.json").Validate(d); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
