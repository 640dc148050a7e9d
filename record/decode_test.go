package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// both decodes a text as a line type with this package and with encoding/json. Accepted
// texts must decode equally. A text that only encoding/json accepts must be refused for
// one of our reasons.
func both(t *testing.T, of *LineType, text string) error {
	t.Helper()
	got, want := reflect.New(of.of), reflect.New(of.of)
	err, wrong := of.fill([]byte(text), got), json.Unmarshal([]byte(text), want.Interface())
	switch {
	case err == nil && wrong != nil:
		t.Errorf("%s is not JSON: %v\n%.300s", of.word, wrong, text)
	case err == nil && !reflect.DeepEqual(got.Interface(), want.Interface()):
		t.Errorf("%s is\n%+v, JSON reads\n%+v of\n%.300s", of.word, got, want, text)
	case err != nil && wrong == nil && !ours.MatchString(err.Error()):
		t.Errorf("%s cannot be read: %v\n%.300s", of.word, err, text)
	}
	return err
}

// ours are the reasons to refuse valid JSON.
var ours = regexp.MustCompile(`duplicate|the name is|^more than|is not a list|is not an object`)

func TestDecoderAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/v1/*.jsonl")
	if err != nil || files == nil {
		t.Fatal(files, err)
	}
	all := map[Type]int{}
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		for line := range bytes.Lines(text) {
			word, err := lineType(line)
			if err != nil || standard().byWord[word] == nil {
				continue
			}
			all[word]++
			must.OK(t, both(t, standard().byWord[word], string(line)))
		}
	}
	if len(all) < 15 {
		t.Errorf("stored records only have lines of %v", all)
	}
	const begin, end = `{"type":"batch","phase":"measure","round":1,"order":0,"target":"runc","op":"run","lanes":1,"released":5`, `}`
	golden.Cases(t, "testdata/batches.txt", func(t *testing.T, input string) string {
		if err := both(t, standard().byWord[TypeBatch], begin+input+end); err != nil {
			return err.Error()
		}
		return "taken"
	})
	lanes := `,"samples":[` + strings.Repeat(`{},`, MaxLanes) + `{}]`
	check.Error(t, both(t, standard().byWord[TypeBatch], begin+lanes+end), "more than 10000 samples in one batch")
}

func TestDuplicateLanesAreFoundInAnyOrder(t *testing.T) {
	t.Parallel()
	for lanes, wrong := range map[string]bool{"0 1 2": false, "2 0 1": false, "0 0": true, "1 2 1": true, "2 1 0 1": true} {
		b := Batch{Phase: PhaseMeasure, Target: "runc", Op: "run", Lanes: 3, Released: 1}
		for n := range strings.FieldsSeq(lanes) {
			b.Samples = append(b.Samples, Sample{Lane: int(n[0] - '0'), Start: 2})
		}
		if b.Lanes = max(3, len(b.Samples)); (Validate(&b) != nil) != wrong {
			t.Errorf("lanes %s: %v", lanes, Validate(&b))
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, line := range examples(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, of := range standard().types {
			_ = both(t, of, text)
		}
	})
}

// Records of schema 1 as written by released versions. Every later version must open them
// and write them back unchanged.
func TestStoredRecordsRoundTrip(t *testing.T) {
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
			text := must.Get(os.ReadFile(filepath.Join("testdata", "v1", name+".jsonl")))(t)
			got, again, err := rewritten(text)
			must.OK(t, err)
			check.Equal(t, "content", got, want)
			if !bytes.Equal(again, text) {
				t.Error("the record written again differs")
			}
		})
	}
}

// rewritten reads a record and writes it again. It counts the lines of each type, in
// order of first appearance.
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
