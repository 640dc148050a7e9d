package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileThatCannotBeWrittenIsCalledByTheNameThatWasGiven(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none", "x.html")
	if err := replaceFile(path, nil, 0o644); err == nil || !strings.HasPrefix(err.Error(), "open "+path+": no such file") {
		t.Error(err)
	}
	code, _, stderr := tare(t, "report", stored(t, t.TempDir(), "runc", false), "--format", "csv", "-o", path)
	if code != ExitUsage || !strings.Contains(stderr, "no such file or directory; name another file with -o") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestADocumentThatAnotherWritesMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.md")
	if err := writeNew(path, []byte("theirs")); err != nil {
		t.Fatal(err)
	}
	err := writeNew(path, []byte("mine"))
	if text, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "another writes a document there") || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}
