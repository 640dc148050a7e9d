package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// aside is what a document says beside a command line: a remark, or where the
// output goes.
var aside = regexp.MustCompile(`( {2,}| # | > ).*$`)

// TestEveryCommandLineOfTheDocumentsIsUnderstood holds README and the pages to the
// verbs and flags that there are. What the examples of help do is tested by doing it.
func TestEveryCommandLineOfTheDocumentsIsUnderstood(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line, found := strings.CutPrefix(line, "    tare ")
			if !found || strings.Contains(line, "·") { // the head of a captured report
				continue
			}
			seen++
			line = aside.ReplaceAllString(strings.TrimSpace(line), "")
			root := New(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
			root.InitDefaultCompletionCmd()
			verb, rest, err := root.Find(words(line))
			if err == nil && verb == root {
				err = os.ErrNotExist
			}
			if err == nil {
				err = verb.ParseFlags(rest)
			}
			if err != nil {
				t.Errorf("%s: tare %s: %v", filepath.Base(page), line, err)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d command lines were found", seen)
	}
}
