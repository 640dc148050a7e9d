package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// TestEveryCommandLineOfTheDocumentsIsUnderstood holds README and the pages to the
// verbs and flags that there are. What the examples of help do is tested by doing it.
func TestEveryCommandLineOfTheDocumentsIsUnderstood(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	must.OK(t, err)
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		text := must.Read(t, page)
		for line := range strings.Lines(text) {
			line, found := strings.CutPrefix(line, "    tare ")
			if !found || strings.Contains(line, "·") { // the head of a captured report
				continue
			}
			seen++
			if err := understood(line); err != nil {
				t.Errorf("%s: tare %s: %v", filepath.Base(page), line, err)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d command lines were found", seen)
	}
}
