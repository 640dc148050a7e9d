package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Whatever is in a file, it is a plan that can be run and written down again,
// or there is a mistake with a place in the file.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "../../plans/*.yaml"} {
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
	f.Add([]byte(`{"version":1,"measure":[{"bpf":{"case":"quota","datapath":"reference","connections":[1,2],"qps":0.5,"cpus":"0.5","instances":1,"heavy":[0,10],"services":5,"duration":"1s"}},{"bpf":{"datapath":"","names":["a*"],"url":"http://h/"}}]}`))
	f.Add([]byte(`{"version":1,"measure":[{"startup":{"targets":["docker/runc"],"commands":[{"name":"n","args":["docker","run",1,true]}],"rounds":3,"warmup":0,"untraced":true}}]}`))
	f.Add([]byte(`{"version":1,"measure":[{"storage":{"volumes":["rootfs","nfs=[fd00::1]:/a","device=/dev/vdb"],"cache":["direct","buffered"],"scale":"1%","jobs":["randread 4k",{"name":"n","rw":"randrw","bs":"4k","file_size":"10M","files":7,"runtime":"1s","time_based":true,"volumes":["bind"]},{"name":"o","options":[{"name":"global","options":[{"name":"bs","value":"8k"},{"name":"group_reporting"}]},{"name":"a","options":[{"name":"size","value":"1g"},{"name":"runtime","value":60}]}]},{"tool":"dd","rw":"read","bs":4096,"count":5}],"root":"/r","programs":{"fio":"/bin/fio"}}}]}`))
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
			case m.Storage != nil:
				if err = joined(m.Storage.plainComplaints()); err == nil {
					err = checkResolved(m.Storage)
				}
			case m.Startup != nil:
				err = m.Startup.Validate()
			case m.BPF != nil:
				err = m.BPF.Validate()
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

// checkResolved holds every job against what Resolved says of it: it is as right
// as the one it comes from, and resolving it once more changes nothing.
func checkResolved(s *Storage) error {
	volumes, jobs, err := s.Resolved()
	if err != nil {
		return err
	}
	if len(volumes) != len(s.Volumes) || len(jobs) != len(s.Jobs) {
		return fmt.Errorf("%d volumes and %d jobs of %+v", len(volumes), len(jobs), s)
	}
	for i := range jobs {
		j := &jobs[i]
		if err := j.Validate(); err != nil {
			return fmt.Errorf("%+v is %+v: %w", s.Jobs[i], j, err)
		}
		if len(j.Options) > 0 {
			continue
		}
		if again, err := j.resolved(1); err != nil || !reflect.DeepEqual(again, *j) {
			return fmt.Errorf("%+v is %+v when it is resolved again: %w", j, again, err)
		}
		if j.Size%j.BS != 0 || j.FileSize%j.BS != 0 || j.FileSize < j.BS || j.Size != j.FileSize*int64(j.Files) {
			return fmt.Errorf("the sizes of %+v", j)
		}
	}
	return nil
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
