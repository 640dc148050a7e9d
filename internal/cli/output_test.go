package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

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
