package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// threeRuns creates three records in the default folder. The latest is "abcd3333".
func threeRuns(t *testing.T) {
	t.Helper()
	place(t)
	dir := must.Get(recordsFolder())(t)
	must.OK(t, os.MkdirAll(dir, 0o755))
	text := must.Read(t, stored(t, t.TempDir(), "docker/runc", false))
	for id, began := range map[string]string{"abcd2222": "2026-01-01", "xyzw4444": "2026-01-02", "abcd3333": "2026-01-03"} {
		one := strings.NewReplacer(`"run_id":"idd"`, `"run_id":"`+id+`","started":"`+began+`T00:00:00Z"`).Replace(text)
		must.Write(t, filepath.Join(dir, "lifecycle-20260101T000000Z-"+id+".jsonl"), one)
	}
}

func TestEveryCommandAcceptsARunName(t *testing.T) {
	threeRuns(t)
	commands(t, "named", nil)
}

func TestShellCompletion(t *testing.T) {
	threeRuns(t)
	for _, row := range must.Rows(t, filepath.Join(testdata, "completed.tsv")) {
		_, out, _ := tare(t, append([]string{"__complete"}, strings.Split(row[0], " ")...)...)
		for part := range strings.SplitSeq(row[1], "|") {
			check.Contains(t, row[0], "\n"+out, "\n"+part)
		}
	}
}
