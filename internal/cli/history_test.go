package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tare-bench/tare/internal/core/export"
)

// commits writes the records of so many, of which the second half took longer.
func commits(t *testing.T, dir string, n int) {
	t.Helper()
	text, err := os.ReadFile(stored(t, t.TempDir(), "docker/runc", false))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		returned := 42_000_000 + 100_000*(i*7%5) + 4_000_000*(2*i/n)
		one := strings.NewReplacer(`"idd"`, fmt.Sprintf(`"id%d"`, i), "42001000", fmt.Sprint(returned), `"kernel":""`, `"kernel":"6.1.0"`).Replace(string(text))
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", i))
		if err := os.WriteFile(path, []byte(one), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := tare(t, "label", path, fmt.Sprintf("commit=%d", 100+i)); code != ExitDone {
			t.Fatal(stderr)
		}
	}
}

func TestAHistoryEndsWithWhetherAnythingBecameWorse(t *testing.T) {
	dir := t.TempDir()
	commits(t, dir, 24)
	t.Chdir(dir)
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{". ", ExitRegressed, "111 and 112"},
		{". --since 112", ExitRegressed, "exit status is of changes at 112"},
		{". --since 113", ExitDone, "111 and 112"},
		{"0.jsonl 1.jsonl 2.jsonl", ExitDone, "too few points"},
		{". --format md", ExitRegressed, "| 111 and 112 |"},
		{". --since none", ExitUsage, `no record is of "none"`},
		{". --filter op:stop", ExitUsage, "no figure has a value"},
		{"0.jsonl 0.jsonl", ExitDone, "it counts once"},
		{"none.jsonl", ExitUsage, "none.jsonl"},
	} {
		if code, out, stderr := tare(t, append([]string{"history"}, words(tt.args)...)...); code != tt.code || !strings.Contains(out+stderr, tt.says) {
			t.Errorf("tare history %s: exit %d\n%s\n%s", tt.args, code, out, stderr)
		}
	}
	_, out, _ := tare(t, "history", ".", "--format", "csv")
	if rows, err := csv.NewReader(strings.NewReader(out)).ReadAll(); err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v\n%s", len(rows), err, out)
	}
	_, out, _ = tare(t, "history", ".", "--format", "json")
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(string(export.Schema)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("figures.json", schema); err != nil {
		t.Fatal(err)
	}
	var d any
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if err := c.MustCompile("figures.json").Validate(d); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
