package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsNotTakenOfARecordIsSaidAndAFileThatCannotBeWrittenOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := os.ReadFile(stored(t, dir, "docker/runc", false))
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.jsonl")
	if err := os.WriteFile(cut, text[:bytes.LastIndex(text, []byte(`{"type":"end"`))-20], 0o600); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(dir, "full.jsonl")
	if err := os.Symlink("/dev/full", full); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"join", "redact"} {
		if code, _, stderr := tare(t, verb, cut, "-o", filepath.Join(dir, verb+".jsonl")); code != ExitDone || !strings.Contains(stderr, "breaks off within a line") {
			t.Errorf("%s: exit %d, %s", verb, code, stderr)
		}
		code, _, stderr := tare(t, verb, cut, "-o", full)
		if code != ExitUsage || strings.Count(stderr, "no space left") != 1 || !strings.Contains(stderr, "nothing of it is kept") || strings.Contains(stderr, "lines before") {
			t.Errorf("%s to where there is no room: exit %d, %s", verb, code, stderr)
		}
		if _, err := os.Lstat(full); err != nil {
			t.Errorf("%s removes what is no file: %v", verb, err)
		}
	}
}

func TestARunThatIsInAFileTwiceIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, both := stored(t, dir, "runc", false), filepath.Join(dir, "both.jsonl")
	if code, _, stderr := tare(t, "join", path, path, "-o", both); code != ExitDone || !strings.Contains(stderr, "is there more than once") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, _, stderr := tare(t, "report", both); code != ExitDone || strings.Count(stderr, "more than once: it counts once") != 1 {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
