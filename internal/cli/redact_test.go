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
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"label a.jsonl commit=1a2b node=\x1b[31m", ExitDone, "commit=1a2b"},
		{"label a.jsonl target=x", ExitUsage, "choose another key"},
		{"label a.jsonl commit", ExitUsage, "write KEY=VALUE"},
		{"report a.jsonl", ExitDone, "labels: commit=1a2b · node="},
		{"report a.jsonl --format csv", ExitDone, ",1a2b,"},
		{"join a.jsonl " + filepath.Join(stored, "storage.jsonl") + " -o j.jsonl.zst", ExitDone, "2 files"},
		{"join a.jsonl -o j.jsonl.zst", ExitUsage, "exists and is not overwritten"},
		{"join a.jsonl none -o k.jsonl", ExitUsage, "none"},
		{"join a.jsonl", ExitUsage, "with -o"},
		{"report j.jsonl.zst --format csv", ExitDone, ",storage,"},
		{"redact j.jsonl.zst -o r.jsonl", ExitDone, "label     2 different, in 2 places"},
		{"redact a.jsonl", ExitUsage, "with -o"},
		{"report r.jsonl --format csv", ExitDone, ",lifecycle,"},
	} {
		if out, stderr := ends(t, c.code, c.says, words(c.args)...); strings.ContainsRune(out+stderr, 0x1b) {
			t.Errorf("%s: an escape is passed on\n%s%s", c.args, out, stderr)
		}
	}
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
