package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// Records of schema 1, as released versions wrote them: they open for ever, and
// nothing in them is lost or changed when they are written again.
func TestStoredRecordsOpenAndWriteBackTheSame(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"lifecycle":           "Header 1, Target 3, Batch 112, Node 14, Finding 3, End 1",
		"overhead":            "Header 1, Target 2, Reading 40, Series 16, Finding 3, End 1",
		"storage":             "Header 1, Target 2, Ceiling 2, Place 4, Cell 48, Finding 5, End 1",
		"storage-import":      "Header 1, Target 3, Cell 53, Finding 4, End 1",
		"startup":             "Header 1, Target 3, Start 12, End 1",
		"startup-logs":        "Header 1, Start 1, Finding 3, Logs 1, End 1",
		"startup-logs-engine": "Header 1, Start 1, Finding 1, Logs 1, End 1",
		"bpf-load":            "Header 1, Program 2, Point 24, Finding 2, End 1",
		"bpf-quota":           "Header 1, Program 2, Point 20, Finding 4, End 1",
		"bpf-memory":          "Header 1, Program 2, Point 8, Finding 3, End 1",
		"density":             "Header 1, Target 2, Batch 10, Density 6, Reading 24, End 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", "v1", name+".jsonl"))
			must.OK(t, err)
			got, again, err := rewritten(text)
			must.OK(t, err)
			if got != want {
				t.Errorf("it holds %s, not %s", got, want)
			}
			if !bytes.Equal(again, text) {
				t.Error("written again, it is not what it was")
			}
		})
	}
}

// rewritten reads a record and writes all of it again. It counts the lines of
// each type, in the order of their first.
func rewritten(text []byte) (counts string, again []byte, err error) {
	var (
		file  bytes.Buffer
		order []string
		count = map[string]int{}
	)
	r, w := NewReader(bytes.NewReader(text)), NewWriter(&file)
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.Write(line)
		}
		if err != nil {
			return "", nil, err
		}
		name := strings.TrimPrefix(fmt.Sprintf("%T", line), "*record.")
		if count[name]++; count[name] == 1 {
			order = append(order, name)
		}
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%s %d", name, count[name])
	}
	if n := r.ProblemCount(); n > 0 {
		return "", nil, fmt.Errorf("%d problems: %v", n, r.Problems())
	}
	return strings.Join(order, ", "), file.Bytes(), nil
}
