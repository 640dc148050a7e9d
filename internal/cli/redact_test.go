package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestRecordsAreLabelledJoinedAndRedacted(t *testing.T) {
	stored, err := filepath.Abs(filepath.Join("..", "..", "record", "testdata", "v1"))
	must.OK(t, err)
	place(t)
	must.Write(t, "a.jsonl", must.Read(t, filepath.Join(stored, "lifecycle.jsonl")))
	commands(t, "labels", nil, "STORED", stored)
	if _, err := os.Stat("k.jsonl"); err == nil {
		t.Error("a file of a join that failed was left")
	}
	if text, err := os.ReadFile("r.jsonl"); err != nil || strings.Contains(string(text), "1a2b") || strings.Contains(string(text), "/run/tare") {
		t.Errorf("it still tells, %v", err)
	}
}

func TestTheImageOfANeighbourIsHiddenWhereverItIsNamed(t *testing.T) {
	t.Parallel()
	text := must.Read(t, filepath.Join("..", "..", "record", "testdata", "v1", "app.jsonl"))
	const own, image = "spin 2cpu", "acme.example/secret:7 /bin/job -t hush"
	for neighbour, stays := range map[string]bool{own: true, image: false} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")
		must.Write(t, from, strings.ReplaceAll(text, own, neighbour))
		ends(t, ExitDone, "", "redact", from, "-o", to)
		if got, err := os.ReadFile(to); err != nil || strings.Contains(string(got), neighbour) != stays || strings.Contains(string(got), `"neighbour":"neighbour-1"`) == stays {
			t.Errorf("%s: it is there: %v, %v", neighbour, !stays, err)
		}
		if code, out, stderr := tare(t, "report", to); code != ExitDone || strings.Contains(out, "beside "+neighbour) != stays {
			t.Errorf("%s: exit %d, %s\n%s", neighbour, code, stderr, out)
		}
	}
}
