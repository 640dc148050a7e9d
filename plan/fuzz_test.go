package plan

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Whatever is in a file, it is a plan that can be run and written down again,
// or there is a mistake with a place in the file.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "../plans/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(`{"version":1,"measure":[{"lifecycle":{"lanes":[1,50],"budget":"10m","limits":{"memory":536870912}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("fuzz.yaml", data)
		if err != nil {
			checkMistakes(t, err)
			return
		}
		for _, m := range p.Measure {
			if m.Lifecycle == nil {
				t.Fatal("an entry without an experiment")
			}
			if err := m.Lifecycle.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again := new(Plan)
		if err := json.Unmarshal(text, again); err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%+v is %+v after JSON: %v", p, again, err)
		}
	})
}

func checkMistakes(t *testing.T, err error) {
	var all Mistakes
	if !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("an error without a place: %v", err)
	}
	for _, m := range all {
		if m.File != "fuzz.yaml" || m.Line < 1 || m.Column < 1 || m.Message == "" {
			t.Fatalf("%+v", m)
		}
	}
}
