package notes

import (
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/record"
)

const us = int64(time.Microsecond)

// told is a start as a test says it: its figures in µs.
type told struct {
	title, source, command, target string
	parts                          []string
	took                           []int64
	wall                           int64
	claims                         map[string]int64
}

func toldBy(t *testing.T, s *record.Start) told {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if s.Method != record.MethodNotes || s.Clock != record.ClockNone || s.Began != 0 {
		t.Errorf("method %q on clock %q from %d", s.Method, s.Clock, s.Began)
	}
	got := told{title: s.Name, source: s.Source, command: s.Command, target: s.Target, wall: s.Ended / us, claims: map[string]int64{}}
	at := int64(0)
	for _, x := range s.Spans {
		if x.Began != at {
			t.Errorf("%s begins at %d and the one before it ended at %d", x.Name, x.Began, at)
		}
		at = x.Ended
		got.parts = append(got.parts, x.Kind+" "+x.Name)
		got.took = append(got.took, (x.Ended-x.Began)/us)
	}
	for _, c := range s.Claims {
		got.claims[c.Name] = c.Value / us
	}
	return got
}

func TestPublishedReportIsReadToTheFigure(t *testing.T) {
	f, err := os.Open("../logs/testdata/published.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	starts, err := Read("published.txt", f)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{
		"call kata-runtime create", "engine docker", "call kata-runtime state", "engine docker", "call kata-runtime start", "engine docker", "call kata-runtime state",
	}
	const command, target = "docker run -d --runtime kata busybox top", "docker/kata"
	want := []told{
		{
			"w/ vm template", "published.txt:23", command, target, parts,
			[]int64{1700000, 390000, 9000, 12000, 13000, 10000, 4000}, 2776000, map[string]int64{"sum": 2137000, "wall": 2277600, "credits": 552600},
		},
		{
			"w/ vm template again", "published.txt:36", command, target, parts,
			[]int64{1666000, 350000, 2000, 6000, 7000, 5000, 2000}, 2370000, map[string]int64{"sum": 2047000, "wall": 2370000, "credits": 684000},
		},
		{
			"w/o vm template", "published.txt:49", command, target, parts,
			[]int64{1328000, 12000, 2000, 6000, 5700, 5000, 2000}, 1701000, map[string]int64{"sum": 1136000, "wall": 1701000, "credits": 588000},
		},
		{
			"w/o vm tempalte again", "published.txt:62", command, target, parts, //nolint:misspell // as it stands there
			[]int64{1308000, 14000, 2000, 5000, 5900, 5000, 2000}, 2009000, map[string]int64{"sum": 1343000, "wall": 2009000, "credits": 690000},
		},
	}
	if len(starts) != len(want) {
		t.Fatalf("%d starts, want %d", len(starts), len(want))
	}
	for i := range want {
		if got := toldBy(t, &starts[i]); !reflect.DeepEqual(got, want[i]) {
			t.Errorf("start %d:\ngot  %+v\nwant %+v", i, got, want[i])
		}
	}
	if id := starts[3].Containers; len(id) != 1 || !strings.HasPrefix(id[0], "d1e992ba3948") {
		t.Errorf("the container that time's command printed: %v", id)
	}
}

func TestCommasInClaimsAreDecimal(t *testing.T) {
	starts, err := Read("n", strings.NewReader("\xef\xbb\xbfruns:\nrunc create 1,5s docker 0,39s\nsum: 1,89s\ncredits to docker: 2,776 - 1,89 + 0,39 = 1,276s\n"))
	if err != nil || len(starts) != 1 {
		t.Fatalf("%+v, %v", starts, err)
	}
	if got, want := toldBy(t, &starts[0]).claims, (map[string]int64{"sum": 1890000, "wall": 2776000, "credits": 1276000}); !reflect.DeepEqual(got, want) || starts[0].Name != "runs" {
		t.Errorf("%v of %q, want %v", got, starts[0].Name, want)
	}
}

func TestFiguresAreReadInEveryForm(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		parts []string
		took  []int64
		wall  int64
	}{
		"decimal commas": {
			"kata-runtime create -> 1,7s, docker -> 0,39s, kata-runtime state 9,5 ms\nreal 0m2,776s\nsum: 2,1s\n",
			[]string{"call kata-runtime create", "engine docker", "call kata-runtime state"}, []int64{1700000, 390000, 9500}, 2776000,
		},
		"a byte order mark": {"\xef\xbb\xbfrunc create 1s docker 2s", []string{"call runc create", "engine docker"}, []int64{1000000, 2000000}, 0},
		"without arrows":    {"runc create 30ms docker 12 ms runc start 5000 µs", []string{"call runc create", "engine docker", "call runc start"}, []int64{30000, 12000, 5000}, 0},
		"arrows after each part": {
			"runc create 30ms -> docker 12ms → runc start 5 ms", []string{"call runc create", "engine docker", "call runc start"}, []int64{30000, 12000, 5000}, 0,
		},
		"one on each line": {
			"runc create -> 1.5s\n\ndocker -> 12us\n* runc start -> 2 seconds\n", []string{"call runc create", "engine docker", "call runc start"}, []int64{1500000, 12, 2000000}, 0,
		},
		"verbs alone":            {"create 1.7 s → docker 0.39 s → state 0.009 s", []string{"call create", "engine docker", "call state"}, []int64{1700000, 390000, 9000}, 0},
		"real of bash":           {"runc create 1s docker 1s\nreal\t0m2.776s\n", []string{"call runc create", "engine docker"}, []int64{1000000, 1000000}, 2776000},
		"real of bash for hours": {"runc create 1s docker 1s\nreal\t1h1m2,5s\n", []string{"call runc create", "engine docker"}, []int64{1000000, 1000000}, 3662500000},
		"real of POSIX":          {"runc create 1s docker 1s\nreal 2.77\nuser 0.04\n", []string{"call runc create", "engine docker"}, []int64{1000000, 1000000}, 2770000},
		"total of zsh": {
			"runc create 1s docker 1s\ndocker run busybox  0.04s user 0.01s system 2% cpu 2.776 total\n",
			[]string{"call runc create", "engine docker"}, []int64{1000000, 1000000}, 2776000,
		},
		"total of zsh, minutes": {
			"runc create 1s docker 1s\ndocker run busybox  0.04s user 0.01s system 2% cpu 1:02.776 total\n",
			[]string{"call runc create", "engine docker"}, []int64{1000000, 1000000}, 62776000,
		},
		"elapsed of GNU time": {
			"runc create 1s docker 1s\n0.04user 0.01system 0:02.77elapsed 1%CPU\n", []string{"call runc create", "engine docker"}, []int64{1000000, 1000000}, 2770000,
		},
		"the first wall time counts": {"runc create 1s docker 1s\nreal 0m2.000s\nreal 0m3.000s\n", []string{"call runc create", "engine docker"}, []int64{1000000, 1000000}, 2000000},
		"a wall time far below is another's": {
			"runc create 1s docker 1s\n" + strings.Repeat("text\n", near+1) + "real 0m3.000s\n", []string{"call runc create", "engine docker"}, []int64{1000000, 1000000}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			starts, err := Read("n", strings.NewReader(test.text))
			if err != nil || len(starts) != 1 {
				t.Fatalf("%d starts, %v", len(starts), err)
			}
			got := toldBy(t, &starts[0])
			if !reflect.DeepEqual(got.parts, test.parts) || !reflect.DeepEqual(got.took, test.took) || got.wall != test.wall {
				t.Errorf("got %v %v, wall %d", got.parts, got.took, got.wall)
			}
			if missing := len(starts[0].Missing) == 1; missing != (test.wall == 0) {
				t.Errorf("missing %v with a wall time of %d", starts[0].Missing, test.wall)
			}
		})
	}
}

func TestTextWithoutFiguresGivesNothing(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                   "",
		"prose":                     "It costs about 1.459s, or 500ms for the other case, and create takes long.",
		"one figure":                "kata-runtime create -> 1.7s",
		"figures of no runtime":     "docker 1s containerd 2s",
		"sums alone":                "sum: 2s\nreal 0m2.776s\ncredits to docker: 2 - 1 = 1s",
		"figures with words around": "kata-runtime create was slow with 1.7s, then docker came with 0.39s",
		"a time beyond any":         "runc create 999999999s docker 999999999s",
		"one endless line":          strings.Repeat("runc create 1s docker 1s ", maxLine/8),
		"binary":                    "\x00\xff\xfe runc\x00create",
	} {
		t.Run(name, func(t *testing.T) {
			if starts, err := Read("n", strings.NewReader(text)); err != nil || len(starts) != 0 {
				t.Errorf("%d starts, %v: %+v", len(starts), err, starts)
			}
		})
	}
}

func TestLogsAreNoNotes(t *testing.T) {
	for _, name := range []string{"cripod.kata.log", "cripod.containerd.log", "one.kata.log", "cri-o-1.34-info.log", "containerd-2.4-info.log", "runsc-boot.txt", "runsc-create.txt"} {
		f, err := os.Open("../logs/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if starts, err := Read(name, f); err != nil || len(starts) != 0 {
			t.Errorf("%s: %d starts, %v: %+v", name, len(starts), err, starts)
		}
		f.Close()
	}
}

func TestTitleIsTheShortLineAbove(t *testing.T) {
	const figures = "runc create 1s docker 1s"
	for name, test := range map[string]struct{ text, title string }{
		"a line with a colon":         {"cold:\n\n" + figures, "cold"},
		"a heading":                   {"## With a template\n" + figures, "With a template"},
		"on the same line":            {"warm: " + figures, "warm"},
		"too long":                    {strings.Repeat("word ", 30) + "\n" + figures, "n:2"},
		"none":                        {figures, "n:1"},
		"a line of a log":             {"time=1 level=info\n" + figures, "n:2"},
		"of a command is none":        {"$ time docker run\n" + figures, "n:2"},
		"a word before is none":       {"cold\n" + "see " + figures, "cold"},
		"figures of the one before":   {"a:\n" + figures + "\nreal 0m1.0s\n\n" + figures, "n:5"},
		"only the nearest one counts": {"cold:\n" + strings.Repeat("word ", 30) + "\n" + figures, "n:3"},
	} {
		t.Run(name, func(t *testing.T) {
			starts, err := Read("n", strings.NewReader(test.text))
			if err != nil || len(starts) == 0 || starts[len(starts)-1].Name != test.title {
				t.Errorf("%+v, %v; want %q", starts, err, test.title)
			}
		})
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	if _, err := Read("n", io.LimitReader(zeros{}, maxSize+1)); err == nil || !strings.Contains(err.Error(), "8 MiB") {
		t.Errorf("%v", err)
	}
	if _, err := Read("n", io.MultiReader(strings.NewReader("x"), broken{})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	starts, err := Read("n", strings.NewReader(strings.Repeat("runc create 1s docker 1s\nx\n", maxStarts+10)))
	if err != nil || len(starts) != maxStarts {
		t.Errorf("%d starts, %v", len(starts), err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("../logs/testdata/published.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text[:4000]))
	f.Add("runc create 1s docker 1s\nreal 0m2.776s\nsum: 2s\ncredits to docker: 2 - 1 + 1 = 2s")
	f.Add("a:\nruntime create -> 1,7s → 5 ms docker => 1us\n0.04user 0.01system 0:02.77elapsed")
	f.Fuzz(func(t *testing.T, text string) {
		starts, err := Read("n", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for i := range starts {
			if err := starts[i].Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}
