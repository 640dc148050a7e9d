package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestWhatIsNotTakenOfARecordIsSaidAndAFileThatCannotBeWrittenOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := must.Read(t, stored(t, dir, "docker/runc", false))
	cut := filepath.Join(dir, "cut.jsonl")
	must.Write(t, cut, text[:strings.LastIndex(text, `{"type":"end"`)-20])
	full := filepath.Join(dir, "full.jsonl")
	must.OK(t, os.Symlink("/dev/full", full))
	for _, verb := range []string{"join", "redact"} {
		ends(t, ExitDone, "breaks off within a line", verb, cut, "-o", filepath.Join(dir, verb+".jsonl"))
		code, _, stderr := tare(t, verb, cut, "-o", full)
		if code != ExitUsage || strings.Count(stderr, "no space left") != 1 || !strings.Contains(stderr, "nothing of it is kept") || strings.Contains(stderr, "lines before") {
			t.Errorf("%s to where there is no room: exit %d, %s", verb, code, stderr)
		}
		if _, err := os.Lstat(full); err != nil {
			t.Errorf("%s removes what is no file: %v", verb, err)
		}
	}
}

func TestAnImportThatCannotBeWrittenIsToldOfOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notes, full := filepath.Join(dir, "notes.txt"), filepath.Join(dir, "full.jsonl")
	must.Write(t, notes, keptNotes)
	must.OK(t, os.Symlink("/dev/full", full))
	if _, stderr := ends(t, ExitUsage, "no space left", "import", notes, "-o", full); strings.Count(stderr, "no space left") != 1 {
		t.Error(stderr)
	}
}

func TestARunThatIsInAFileTwiceIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, both := stored(t, dir, "runc", false), filepath.Join(dir, "both.jsonl")
	ends(t, ExitDone, "is there more than once", "join", path, path, "-o", both)
	if _, stderr := ends(t, ExitDone, "", "report", both); strings.Count(stderr, "more than once: it counts once") != 1 {
		t.Error(stderr)
	}
}

func TestAFileThatCannotBeWrittenIsCalledByTheNameThatWasGiven(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none", "x.html")
	if err := replaceFile(path, nil, 0o644); err == nil || !strings.HasPrefix(err.Error(), "open "+path+": no such file") {
		t.Error(err)
	}
	refuses(t, []string{"report", stored(t, t.TempDir(), "runc", false), "--format", "csv", "-o", path}, "no such file or directory; name another file with -o")
}

func TestADocumentThatAnotherWritesMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.md")
	must.OK(t, writeNew(path, []byte("theirs")))
	err := writeNew(path, []byte("mine"))
	if text, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "another writes a document there") || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}
