package notes

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestPublishedReportIsReadAsItWasMeant pins every result of the published
// report: whose it is, which job's, and its figures.
func TestPublishedReportIsReadAsItWasMeant(t *testing.T) {
	g := Gather(readFile(t, "published.md", Options{}))
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	for _, c := range g.Cells {
		if err := encoder.Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range g.Findings {
		if err := encoder.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "published.jsonl", got.Bytes())
}

func readFile(t *testing.T, name string, o Options) *Notes {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := Read(name, f, o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs%s; go test ./tool/notes -update, and look at git diff", path, firstDifference(got, want))
	}
}

func firstDifference(got, want []byte) string {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf(" from line %d: %s", i+1, a[i])
		}
	}
	return fmt.Sprintf(" after line %d", len(a))
}
