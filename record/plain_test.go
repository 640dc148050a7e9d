package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// both reads a text as a type of line in both ways. What is plain, JSON reads the same.
func both(t *testing.T, of *LineType, text string) (plain bool) {
	t.Helper()
	got, want := reflect.New(of.of), reflect.New(of.of)
	if !readPlain([]byte(text), of.tags, got.Elem()) {
		return false
	}
	if err := measure([]byte(text), of.word, of.tags); err != nil {
		t.Errorf("%s holds more than is read: %v\n%.300s", of.word, err, text)
	}
	if err := json.Unmarshal([]byte(text), want.Interface()); err != nil {
		t.Errorf("%s is no JSON: %v\n%.300s", of.word, err, text)
	}
	if !reflect.DeepEqual(got.Interface(), want.Interface()) {
		t.Errorf("%s is\n%+v, JSON reads\n%+v of\n%.300s", of.word, got, want, text)
	}
	return true
}

func TestWhatIsPlainIsReadAsJSONReadsIt(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/v1/*.jsonl")
	if err != nil || files == nil {
		t.Fatal(files, err)
	}
	all, are := map[Type]int{}, map[Type]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			line = bytes.TrimSpace(line)
			word, err := lineType(line)
			if err != nil || standard().byWord[word] == nil {
				continue
			}
			all[word]++
			if both(t, standard().byWord[word], string(line)) {
				are[word]++
			}
		}
	}
	for word, always := range map[Type]bool{TypeBatch: true, TypeNode: true, TypeEnd: true, TypeHeader: false, TypeTarget: false} {
		if n := are[word]; all[word] == 0 || always && n != all[word] || !always && n != 0 {
			t.Errorf("%d of %d lines %s are plain", n, all[word], word)
		}
	}
}

func TestWhatIsNotPlainIsLeftToJSON(t *testing.T) {
	t.Parallel()
	const begin, end = `{"type":"batch","phase":"measure","round":1,"order":0,"target":"runc","op":"run","lanes":1,"released":5`, `}`
	for name, test := range map[string]struct {
		text  string
		plain bool
	}{
		"the form of the writer":       {`,"samples":[{"lane":0,"start":6,"failure":{"kind":"exit","detail":"x","exit":-1}}],"own_cpu":7`, true},
		"a list of nothing":            {`,"samples":[]`, true},
		"a fraction":                   {`,"samples":[],"summary":{"count":2,"seconds":1.5e-3}`, true},
		"true":                         {`,"samples":[],"unproven":true`, true},
		"a blank":                      {`, "samples":[]`, false},
		"no list at all":               {`,"samples":null`, false},
		"a name that is not known":     {`,"samples":[],"later":1`, false},
		"a name in capitals":           {`,"Samples":[]`, false},
		"a name twice":                 {`,"samples":[],"samples":[]`, false},
		"another order":                {`,"own_cpu":7,"samples":[]`, false},
		"an escape":                    {`,"samples":[],"source":"a\tb"`, false},
		"a letter beyond ASCII":        {`,"samples":[],"source":"µ"`, false},
		"a byte that is no letter":     {",\"samples\":[],\"source\":\"\xff\"", false},
		"a whole number as a fraction": {`,"samples":[],"lost":1.0`, false},
		"one with a power of ten":      {`,"samples":[],"lost":1e3`, false},
		"one that begins with 0":       {`,"samples":[],"lost":01`, false},
		"one that may be too long":     {`,"samples":[],"lost":1234567890123456789`, false},
		"a sign alone":                 {`,"samples":[],"lost":-`, false},
		"a number that JSON has not":   {`,"samples":[],"summary":{"count":2,"seconds":0x1p-2}`, false},
		"a number that is none":        {`,"samples":[],"summary":{"count":2,"seconds":nan}`, false},
		"one that no float holds":      {`,"samples":[],"summary":{"count":2,"seconds":1e999}`, false},
		"a comma behind the last":      {`,"samples":[],`, false},
		"one in a list":                {`,"samples":[{"lane":0},]`, false},
		"a list that does not end":     {`,"samples":[{"lane":0}`, false},
		"more lanes than are read":     {`,"samples":[` + strings.Repeat(`{},`, MaxLanes) + `{}]`, false},
		"something behind the end":     {`}{`, false},
	} {
		if got := both(t, standard().byWord[TypeBatch], begin+test.text+end); got != test.plain {
			t.Errorf("%s: plain is %v", name, got)
		}
	}
}

func TestALaneThatIsThereTwiceIsFoundInAnyOrder(t *testing.T) {
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

func FuzzPlain(f *testing.F) {
	for _, line := range examples(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, of := range standard().types {
			both(t, of, text)
		}
	})
}
