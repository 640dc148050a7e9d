package proctree

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/record"
)

// The results are kinds, names and ids.
func TestACommandLineIsReadAsEnginesAndPeopleWriteIt(t *testing.T) {
	golden.Cases(t, "testdata/commands.txt", func(t *testing.T, lines string) string {
		var out []string
		for line := range strings.SplitSeq(ids.Replace(lines), "\n") {
			s := &script{now: 1e9}
			s.run(1, 3, "containerd-shim-runc-v2 -id c1")
			s.run(1, 2, line)
			k := Gather(s.events, Asked{
				Began: 1e9, Ended: s.now, Roots: []Root{{Pid: 1, Kind: record.KindOther, Name: "somebody"}},
				Containers: []string{"c1", "c.1_+", "kk", idA},
			})
			if len(k.Processes) != 3 {
				t.Fatalf("%+v", k.Processes)
			}
			p := k.Processes[2]
			out = append(out, p.Kind+" "+p.Name+" "+p.Container)
		}
		return names.Replace(strings.Join(out, "\n"))
	})
}

// Arguments may hold secrets: nothing of them is kept but ids.
func TestNothingOfTheArgumentsIsKept(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "docker run -e PASSWORD=hunter2 busybox")
	s.run(50, 51, "sh -c hunter2")
	s.run(50, 52, "runc exec -e hunter2 c1 hunter2")
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
	if text := strings.Join(told(k), "\n"); strings.Contains(text, "hunter2") || len(k.Processes) != 3 {
		t.Error(text)
	}
	for _, p := range k.Processes {
		if strings.Contains(p.Program+p.Verb+p.Name+p.Container, "hunter2") {
			t.Errorf("%+v", p)
		}
	}
}

func TestNamesAreCleanAndShort(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[2Jrm\n": "[2Jrm", strings.Repeat("é", 500): strings.Repeat("é", 32), "a\xffb": "ab", "\u202eevil": "evil", " \t": "",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
