package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// both reads a text as a type of line, and has encoding/json read it. What is read they
// read the same, and what JSON alone reads is refused for a reason of ours.
func both(t *testing.T, of *LineType, text string) error {
	t.Helper()
	got, want := reflect.New(of.of), reflect.New(of.of)
	err, wrong := of.fill([]byte(text), got), json.Unmarshal([]byte(text), want.Interface())
	switch {
	case err == nil && wrong != nil:
		t.Errorf("%s is no JSON: %v\n%.300s", of.word, wrong, text)
	case err == nil && !reflect.DeepEqual(got.Interface(), want.Interface()):
		t.Errorf("%s is\n%+v, JSON reads\n%+v of\n%.300s", of.word, got, want, text)
	case err != nil && wrong == nil && !ours.MatchString(err.Error()):
		t.Errorf("%s cannot be read: %v\n%.300s", of.word, err, text)
	}
	return err
}

// ours are the reasons for which JSON is not believed.
var ours = regexp.MustCompile(`there twice|and the name is|^more than|is not a list|is not an object`)

func TestALineIsReadAsJSONReadsIt(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/v1/*.jsonl")
	if err != nil || files == nil {
		t.Fatal(files, err)
	}
	all := map[Type]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.OK(t, err)
		for line := range bytes.Lines(text) {
			word, err := lineType(line)
			if err != nil || standard().byWord[word] == nil {
				continue
			}
			all[word]++
			if err := both(t, standard().byWord[word], string(line)); err != nil {
				t.Errorf("%s: %v", word, err)
			}
		}
	}
	if len(all) < 15 {
		t.Errorf("stored records have lines of %v only", all)
	}
	const begin, end = `{"type":"batch","phase":"measure","round":1,"order":0,"target":"runc","op":"run","lanes":1,"released":5`, `}`
	for name, test := range map[string]struct{ text, refused string }{
		"the form of the writer":       {`,"samples":[{"lane":0,"start":6,"failure":{"kind":"exit","detail":"x","exit":-1}}],"own_cpu":7`, ""},
		"a list of nothing":            {`,"samples":[]`, ""},
		"a fraction":                   {`,"samples":[],"summary":{"count":2,"seconds":1.5e-3}`, ""},
		"true":                         {`,"samples":[],"unproven":true`, ""},
		"a blank":                      {` , "samples" : [ { "lane" : 0 } , { } ] `, ""},
		"no list at all":               {`,"samples":null,"summary":null,"source":null,"lost":null`, ""},
		"nothing in a list":            {`,"samples":[null,{"lane":1}]`, ""},
		"a name that is not known":     {`,"samples":[],"later":[{"a":[1,"]"]}]`, ""},
		"another order":                {`,"own_cpu":7,"samples":[]`, ""},
		"an escape":                    {`,"samples":[],"sour\u0063e":"a\tb"`, ""},
		"a letter beyond ASCII":        {`,"samples":[],"source":"µ"`, ""},
		"a byte that is no letter":     {",\"samples\":[],\"source\":\"\xff\"", ""},
		"a number of 19 digits":        {`,"samples":[],"lost":1234567890123456789`, ""},
		"an object of numbers":         {`,"samples":[{"told":{"Ready":5,"a":null}}]`, ""},
		"a name in capitals":           {`,"Samples":[]`, `"Samples" is there, and the name is "samples"`},
		"a name twice":                 {`,"samples":[],"samples":[]`, `"samples" is there twice`},
		"a name of an object twice":    {`,"samples":[{"told":{"a":5,"a":6}}]`, `told: "a" is there twice`},
		"a whole number as a fraction": {`,"samples":[],"lost":1.0`, "batch: lost cannot hold a number 1.0"},
		"one with a power of ten":      {`,"samples":[{"lane":1e3}]`, "batch: samples.lane cannot hold a number 1e3"},
		"one that no field holds":      {`,"samples":[],"lost":12345678901234567890`, "lost cannot hold a number"},
		"a text in place of an object": {`,"samples":["a"]`, "samples cannot hold a string"},
		"an object in place of a text": {`,"samples":[],"source":{}`, "source cannot hold a object"},
		"one that begins with 0":       {`,"samples":[],"lost":01`, "invalid character"},
		"a sign alone":                 {`,"samples":[],"lost":-`, "invalid character"},
		"a number that JSON has not":   {`,"samples":[],"summary":{"count":2,"seconds":0x1p-2}`, "invalid character"},
		"a number that is none":        {`,"samples":[],"summary":{"count":2,"seconds":nan}`, "invalid character"},
		"one that no float holds":      {`,"samples":[],"summary":{"count":2,"seconds":1e999}`, "summary.seconds cannot hold a number 1e999"},
		"a comma behind the last":      {`,"samples":[],`, "invalid character"},
		"one in a list":                {`,"samples":[{"lane":0},]`, "invalid character"},
		"a list that does not end":     {`,"samples":[{"lane":0}`, "invalid character"},
		"a text that does not end":     {`,"samples":[],"source":"a`, "unexpected end"},
		"a wrong bracket":              {`,"samples":[],"later":[1,2}`, "invalid character"},
		"more lanes than are read":     {`,"samples":[` + strings.Repeat(`{},`, MaxLanes) + `{}]`, "more than 10000 samples in one batch"},
		"something behind the end":     {`}{`, "invalid character"},
	} {
		err := both(t, standard().byWord[TypeBatch], begin+test.text+end)
		if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v", name, err)
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
