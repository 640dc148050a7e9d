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
	f.Add([]byte(`{"version":1,"measure":[{"overhead":{"phases":["10M","hold 64MiB","spin 0.5cpu"],"sandboxes":[1,5],"hold":"10s","check":{"cpu":"250m","memory":"160Mi"}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("fuzz.yaml", data)
		if err != nil {
			checkMistakes(t, err)
			return
		}
		for _, m := range p.Measure {
			var err error
			switch {
			case m.Lifecycle != nil:
				err = m.Lifecycle.Validate()
			case m.Overhead != nil:
				if err = m.Overhead.Validate(); err == nil {
					_, err = m.Overhead.Resolved()
				}
			default:
				t.Fatal("an entry without an experiment")
			}
			if err != nil {
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

// What was read as a phase can be written and read again, and is the same.
func FuzzParsePhase(f *testing.F) {
	for _, s := range []string{"idle", "10M", "16T", "hold 64MiB", "hold  7B", "spin 0.5cpu", "spin .5", "spin 1e9", "hold -1", "10MiB", "\x1b[2J"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePhase(s)
		if err != nil {
			return
		}
		if again, err := ParsePhase(p.Name); err != nil || again != p {
			t.Fatalf("%+v is %+v, %v", p, again, err)
		}
		switch {
		case p.Kind == PhaseIdle && (p.Bytes != 0 || p.CPUs != 0),
			p.Kind == PhaseFio && (p.Bytes < MinFile || p.Bytes > MaxFile),
			p.Kind == PhaseHold && (p.Bytes < MinHold || p.Bytes > MaxHold),
			p.Kind == PhaseSpin && !(p.CPUs >= MinSpin && p.CPUs <= MaxCPU):
			t.Fatalf("%+v", p)
		}
	})
}
