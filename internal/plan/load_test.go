package plan

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
)

var update = flag.Bool("update", false, "write the golden files")

// Each testdata/<mistake>.yaml holds mistakes, and <mistake>.golden is what
// Load says about them: the very text, since it is what people act on.
func TestMistakesAreShownWhereTheyAre(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, err := Load(file)
			if err == nil {
				t.Fatal("no mistake was found")
			}
			got := strings.ReplaceAll(err.Error(), "testdata/", "") + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestEveryFieldIsRead(t *testing.T) {
	got, err := Parse("dir/some.yaml", []byte(`
version: 1
name: all
description: |
  two
  lines
source: https://example.org
measure:
  - lifecycle:
      title: everything
      targets: [host, runc, mine=/opt/a=b/runc, docker/crun]
      missing: skip
      via: [cli]
      engines: {docker: {address: /run/d.sock, namespace: n, command: c, args: [a], env: {E: v}, root: /r, runroot: /s, network: host}}
      baseline: runc
      subject: docker/crun
      lanes: [1, 10, 100]
      ops: [run, create]
      rounds: 3
      warmup: 0
      precision: 5%
      budget: 1h30m
      timeout: 500ms
      seed: 18446744073709551615
      limits: {memory: 64MiB, pids: 32, cpu_shares: 512, cpu: 0.5}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Plan{Version: 1, Name: "all", Description: "two\nlines\n", Source: "https://example.org", Measure: []Measure{{Lifecycle: &Lifecycle{
		Title: "everything", Missing: MissingSkip, Via: []string{"cli"}, Subject: "docker/crun",
		Engines: Engines{"docker": {Address: "/run/d.sock", Namespace: "n", Command: "c", Args: []string{"a"}, Env: map[string]string{"E": "v"}, Root: "/r", RunRoot: "/s", Network: "host"}},
		Targets: []string{"host", "runc", "mine=/opt/a=b/runc", "docker/crun"}, Baseline: "runc",
		Lanes: []int{1, 10, 100}, Ops: []subject.Op{subject.Run, subject.Create}, Rounds: 3, Warmup: 0, Precision: 0.05,
		Budget: 90 * time.Minute, Timeout: 500 * time.Millisecond, Seed: 1<<64 - 1,
		Limits: subject.Limits{Memory: 64 << 20, Pids: 32, CPUShares: 512, CPU: 0.5},
	}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got.Measure[0].Lifecycle, want.Measure[0].Lifecycle)
	}
}

func TestWhatIsLeftOutIsTheDefault(t *testing.T) {
	for name, text := range map[string]string{
		"no value":       "version: 1\nmeasure:\n- lifecycle:\n",
		"an empty one":   "version: 1\nmeasure: [lifecycle: {}]\n",
		"written flow":   "{version: 1, measure: [{lifecycle: {}}]}",
		"after a BOM":    "\uFEFFversion: 1\nmeasure:\n- lifecycle:\n",
		"DOS lines":      "version: 1\r\nmeasure:\r\n- lifecycle:\r\n",
		"document marks": "---\nversion: 1\nmeasure:\n- lifecycle:\n...\n",
		"comments":       "# a\n\nversion: 1 # b\nmeasure: # c\n# d\n- lifecycle: # e\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("dir/some.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			want := Defaults()
			if got.Name != "some" || len(got.Measure) != 1 || !reflect.DeepEqual(got.Measure[0].Lifecycle, &want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestLimitsThatAreLeftOutKeepTheirDefault(t *testing.T) {
	got, err := Parse("a", []byte("version: 1\nmeasure: [lifecycle: {limits: {pids: 9}}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := subject.DefaultLimits
	want.Pids = 9
	if l := got.Measure[0].Lifecycle.Limits; l != want {
		t.Errorf("got %+v", l)
	}
}

func TestOneNumberOfLanesNeedsNoList(t *testing.T) {
	got, err := Parse("a", []byte("version: 1\nmeasure: [lifecycle: {lanes: 50}]"))
	if err != nil || !reflect.DeepEqual(got.Measure[0].Lifecycle.Lanes, []int{50}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFilesThatAreNoPlansAreRefusedQuickly(t *testing.T) {
	valid := "version: 1\nmeasure: [lifecycle: {}]\n"
	tests := map[string]struct{ text, want string }{
		"nothing":                {"", "a:1:1: the plan is empty: a plan begins with version: 1"},
		"only a comment":         {"# plan\n", "a:1:1: the plan is empty"},
		"only a mark":            {"---\n", "a:1:1: the plan is empty"},
		"more than 1 MiB":        {valid + strings.Repeat("#", 1<<20), "a:1:1: the plan is larger than 1 MiB"},
		"many keys":              {strings.Repeat("a: b\n", 100_000), "a:6667:4: the plan has more than 20000 words"},
		"deep lists":             {strings.Repeat("[", 100_000), "a:1:33: lists are nested more than 32 deep"},
		"deep mappings":          {strings.Repeat("{a: ", 100_000), "a:1:129: lists are nested more than 32 deep"},
		"deep dashes":            {strings.Repeat("- ", 100_000), "a:1:65: lists are nested more than 32 deep"},
		"a byte that is no text": {valid + "# caf\xe9", "a:3:6: the byte 0xe9 is not text"},
		"a NUL":                  {valid + "name: é\x00", "a:3:8: the byte 0x00 is not text"},
		"a list":                 {"- a\n", "a:1:1: a plan is a list: write its fields below it"},
		"a word":                 {"plan\n", `a:1:1: a plan is "plan"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, err := Parse("a", []byte(test.text))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %.200v", err)
			}
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

func TestLoadSaysWhatItTriedToRead(t *testing.T) {
	for name, path := range map[string]string{"a missing file": "testdata/none.yaml", "a folder": "testdata"} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(path)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "give the path of a plan file") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero:1:1: the plan is larger than 1 MiB") {
		t.Errorf("an endless file: %v", err)
	}
}

func TestMistakesAreValues(t *testing.T) {
	_, err := Parse("a.yaml", []byte("version: 1\nmeasure: [lifecycle: {rounds: 0}]"))
	var one *Mistake
	if !errors.As(err, &one) || one.File != "a.yaml" || one.Line != 2 || one.Column != 31 {
		t.Errorf("got %+v", one)
	}
	var all Mistakes
	if !errors.As(err, &all) || len(all) != 1 {
		t.Errorf("got %v", all)
	}
}

func TestThousandsOfMistakesAreCutShort(t *testing.T) {
	_, err := Parse("a.yaml", []byte("version: 1\nmeasure: [lifecycle: {ops: ["+strings.Repeat("x,", 1000)+"]}]"))
	text := err.Error()
	if n := strings.Count(text, "\n"); n != shownMistakes || !strings.HasSuffix(text, "a.yaml: and 980 more mistakes") {
		t.Errorf("%d lines, ending %q", n, text[len(text)-60:])
	}
}
