package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
)

func TestEveryFieldOfAnOverheadIsRead(t *testing.T) {
	got, err := Parse("a", []byte(`
version: 1
measure:
  - overhead:
      title: everything
      targets: [runc, mine=/opt/a=b/runc, docker/crun]
      missing: skip
      via: [cli]
      engines: {docker: {address: /run/d.sock}}
      phases: [10M, idle, "hold   64MiB", spin 0.5cpu]
      sandboxes: [1, 5, 20]
      rounds: 7
      hold: 1m
      interval: 250ms
      settle: 0s
      budget: 1h30m
      timeout: 500ms
      patience: 2h
      seed: 18446744073709551615
      limits: {memory: 1Gi, pids: 100, cpu_shares: 512, cpu: 1500m}
      check: {cpu: 250m, memory: 160Mi}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Overhead{
		Title: "everything", Targets: []string{"runc", "mine=/opt/a=b/runc", "docker/crun"}, Missing: MissingSkip, Via: []string{"cli"},
		Engines: Engines{"docker": {Address: "/run/d.sock"}},
		Phases:  []string{"10M", "idle", "hold 64MiB", "spin 0.5cpu"}, Sandboxes: []int{1, 5, 20}, Rounds: 7,
		Hold: time.Minute, Interval: 250 * time.Millisecond, Budget: 90 * time.Minute, Timeout: 500 * time.Millisecond, Patience: 2 * time.Hour,
		Seed: 1<<64 - 1, Limits: subject.Limits{Memory: 1 << 30, Pids: 100, CPUShares: 512, CPU: 1.5}, Check: &PodFixed{CPU: 250, Memory: 160 << 20},
	}
	if !reflect.DeepEqual(got.Measure[0], Measure{Overhead: want}) {
		t.Errorf("got  %+v\nwant %+v", got.Measure[0].Overhead, want)
	}
}

func TestAnOverheadThatSaysNothingIsTheDefault(t *testing.T) {
	for _, text := range []string{"overhead:", "overhead: {}", "overhead: {phases: [idle]}"} {
		got, err := Parse("a", []byte("version: 1\nmeasure:\n- "+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		want := DefaultsOfOverhead()
		if !reflect.DeepEqual(got.Measure[0], Measure{Overhead: &want}) {
			t.Errorf("%s: %+v", text, got.Measure[0].Overhead)
		}
	}
	o := DefaultsOfOverhead()
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	if o.Limits != (subject.Limits{}) {
		t.Errorf("limits by default: %+v", o.Limits)
	}
}

func TestIdleComesFirstWhereItIsMissing(t *testing.T) {
	for text, want := range map[string][]string{
		"10M, 1G":       {"idle", "10M", "1G"},
		"10M, idle, 1G": {"10M", "idle", "1G"},
		"' idle ', 10M": {"idle", "10M"},
	} {
		got, err := Parse("a", []byte("version: 1\nmeasure: [overhead: {phases: ["+text+"]}]"))
		if err != nil || !slices.Equal(got.Measure[0].Overhead.Phases, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	// A plan made by a program gets the same phases.
	o := DefaultsOfOverhead()
	o.Phases = []string{"spin 1"}
	phases, err := o.Resolved()
	if want := []Phase{{Name: "idle", Kind: PhaseIdle}, {Name: "spin 1", Kind: PhaseSpin, CPUs: 1}}; err != nil || !slices.Equal(phases, want) {
		t.Errorf("%+v, %v", phases, err)
	}
	o.Phases = []string{"spun 1"}
	if _, err := o.Resolved(); err == nil || !strings.Contains(err.Error(), "is not a phase") {
		t.Errorf("got %v", err)
	}
}

func TestTheOverheadOfARecordIsAPlanFile(t *testing.T) {
	full := DefaultsOfOverhead()
	full.Targets, full.Phases, full.Seed = []string{"runc", "crun=/opt/crun"}, []string{"idle", "10M", "hold 64MiB", "spin 0.5cpu"}, 1<<64-1
	full.Limits, full.Check = subject.Limits{Memory: 1 << 30, CPU: 0.333}, &PodFixed{CPU: 250, Memory: 160<<20 + 1}
	full.Hold, full.Settle = 1500*time.Millisecond, 0
	whole := DefaultsOfOverhead()
	whole.Check = &PodFixed{CPU: 2000, Memory: 1 << 30}
	plain := DefaultsOfOverhead()
	want := &Plan{Version: 1, Name: "n", Measure: []Measure{{Overhead: &full}, {Overhead: &plain}, {Overhead: &whole}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"hold":"1.5s"`, `"patience":"30m"`, `"targets":[]`, `"check":{"cpu":"250m","memory":167772161}`, `"check":{"cpu":"2000m","memory":"1024Mi"}`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	got, err := Parse("record.json", text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("as a file: %+v, %v", got, err)
	}
	read := new(Plan)
	if err := json.Unmarshal(text, read); err != nil || !reflect.DeepEqual(read, want) {
		t.Errorf("as JSON: %+v, %v", read, err)
	}
}

func TestOverheadsThatCannotBeReadFromJSONSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		`{"hold":"soon"}`:               `hold: "soon" is not a duration`,
		`{"patience":"5"}`:              `patience: "5" has no unit`,
		`{"check":{"cpu":"much"}}`:      `check.cpu: "much" is not an amount of CPU`,
		`{"check":{"memory":"much"}}`:   `check.memory: "much" is not an amount`,
		`{"check":{"memory":[1]}}`:      `check.memory: "[1]" is not an amount`,
		`{"check":{"cpu":250}}`:         `cannot unmarshal number`,
		`{"check":{"memory":"160Mi\""}`: `unexpected end`,
	} {
		if err := json.Unmarshal([]byte(text), new(Overhead)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestPhasesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]Phase{
		"idle":           {"idle", PhaseIdle, 0, 0},
		"10M":            {"10M", PhaseFio, 10 << 20, 0},
		" 1G ":           {"1G", PhaseFio, 1 << 30, 0},
		"512K":           {"512K", PhaseFio, 512 << 10, 0},
		"16T":            {"16T", PhaseFio, 16 << 40, 0},
		"hold 64MiB":     {"hold 64MiB", PhaseHold, 64 << 20, 0},
		"hold  64M":      {"hold 64M", PhaseHold, 64e6, 0},
		"hold 1048576":   {"hold 1048576", PhaseHold, 1 << 20, 0},
		"spin 0.5cpu":    {"spin 0.5cpu", PhaseSpin, 0, 0.5},
		"spin 0.5":       {"spin 0.5", PhaseSpin, 0, 0.5},
		"spin 2 cpus":    {"spin 2 cpus", PhaseSpin, 0, 2},
		"spin\t.25 cpu ": {"spin .25 cpu", PhaseSpin, 0, 0.25},
	} {
		if got, err := ParsePhase(text); err != nil || got != want {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                     "write idle, the size of a file",
		"busy":                 "write idle, the size of a file",
		"10":                   "write idle, the size of a file", // bytes
		"10485760":             "write idle, the size of a file",
		"10MiB":                "write idle, the size of a file", // 10^6 to fio
		"10MB":                 "write idle, the size of a file",
		"10m":                  "write idle, the size of a file",
		"1.5G":                 "write idle, the size of a file",
		"-1M":                  "write idle, the size of a file",
		"+1M":                  "write idle, the size of a file",
		"M":                    "write idle, the size of a file",
		"1GG":                  "write idle, the size of a file",
		"9223372036854775808K": "from 512K",
		"9223372036854775807T": "from 512K, which is one block, to 16T",
		"511K":                 "from 512K",
		"17T":                  "to 16T",
		"hold":                 "is not an amount of memory",
		"hold -1":              "is not an amount of memory",
		"hold 1B":              "1 bytes cannot be held",
		"hold 17TiB":           "cannot be held",
		"spin":                 "is not a number of CPUs",
		"spin 0":               "from 0.01 to 1024 are allowed",
		"spin -1":              "is not a number of CPUs",
		"spin NaN":             "is not a number of CPUs",
		"spin 1e2":             "is not a number of CPUs",
		"spin 0x1p4":           "is not a number of CPUs",
		"spin 1025":            "is not a number of CPUs",
		"spin 0.5 gpu":         "is not a number of CPUs",
		"spin 1.2.3":           "is not a number of CPUs",
	} {
		if got, err := ParsePhase(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
}

func TestListsOfPhasesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string][]string{
		"idle,10M,1G,10G":          {"idle", "10M", "1G", "10G"},
		"10M , hold 64MiB":         {"idle", "10M", "hold 64MiB"},
		"spin 0.25cpu,spin 1, 1G ": {"idle", "spin 0.25cpu", "spin 1", "1G"},
	} {
		if got, err := ParsePhases(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                               "is not a phase",
		"idle,":                          "is not a phase",
		"idle,idle":                      "idle is there twice",
		"1G,1024M":                       "1024M is 1G once more",
		"spin 1,spin 1.0cpu":             "spin 1.0cpu is spin 1 once more",
		strings.Repeat("1G,", 99) + "1G": "101 are too many: at most 100",
	} {
		if got, err := ParsePhases(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
}

func TestSandboxesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string][]int{"1": {1}, "1,5,20": {1, 5, 20}, " 1 , 1000 ": {1, 1000}} {
		if got, err := ParseSandboxes(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":       "is not a list of sandboxes: write whole numbers with commas between, such as 1,5,20",
		"1,":     "is not a list of sandboxes",
		"0":      "0 is not a number of sandboxes: from 1 to 1000",
		"1001":   "1001 is not a number of sandboxes",
		"1,5,5":  "5 is there twice",
		"5,20,1": "the counts have to ascend: write 1,5,20",
	} {
		if got, err := ParseSandboxes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

func TestPodFixedIsReadAsKubernetesWritesIt(t *testing.T) {
	for text, want := range map[string]PodFixed{
		"250m,160Mi":             {250, 160 << 20},
		"160Mi,250m":             {250, 160 << 20},
		" 1Gi , 0.25 ":           {250, 1 << 30},
		"1,128M":                 {1000, 128e6},
		"128M,1":                 {1000, 128e6},
		"250m,167772160":         {250, 167772160},
		"167772160,250m":         {250, 167772160},
		"0.001,0":                {1, 0},
		"0m,160Mi":               {0, 160 << 20},
		"cpu=1,memory=167772160": {1000, 167772160},
		"memory=160Mi, cpu = 2":  {2000, 160 << 20},
	} {
		if got, err := ParsePodFixed(text); err != nil || got != want {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                "it has 1 parts and needs 2",
		"250m":            "it has 1 parts and needs 2",
		"250m,160Mi,1":    "it has 3 parts",
		"1,2":             "which of the two is memory has no sign",
		"250m,0.5":        "both parts are cpu",
		"1Gi,160Mi":       "both parts are memory",
		"250m,1.5Gi":      `"1.5Gi" is not an amount of memory`,
		"0.0001,160Mi":    "no finer than 1m",
		"0.5m,160Mi":      `"0.5m" is not an amount of CPU`,
		"2000000m,160Mi":  "is not an amount of CPU",
		"-1,160Mi":        "both parts are memory",
		"cpu=-1,160Mi":    "is not an amount of CPU",
		"cpu=1e3,160Mi":   "is not an amount of CPU",
		"0,0Mi":           "it reserves nothing",
		"250m,much":       "is not an amount of memory",
		"cpu=1,cpu=2":     "both parts are cpu",
		"disk=1Gi,160Mi":  "both parts are memory",
		"250m,memory=1.5": "is not an amount of memory",
	} {
		if got, err := ParsePodFixed(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "such as 250m,160Mi") {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
}

func TestLimitsAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]subject.Limits{
		"cpu=1,memory=1Gi,pids=100":  {CPU: 1, Memory: 1 << 30, Pids: 100},
		" memory = 1Gi , cpu = 500m": {CPU: 0.5, Memory: 1 << 30},
		"cpu=0.333":                  {CPU: 0.333},
		"cpu_shares=512":             {CPUShares: 512},
		"memory=0":                   {},
	} {
		if got, err := ParseLimit(text); err != nil || got != want {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":             `unknown limit "" in "": write cpu=1,memory=1Gi`,
		"cpu=1,":       "unknown limit",
		"disk=1":       `unknown limit "disk"`,
		"cpu=1,cpu=2":  `"cpu" is there twice`,
		"cpu":          `"" is not a number of CPUs`,
		"cpu=-1":       "is not a number of CPUs",
		"cpu=NaN":      "is not a number of CPUs",
		"cpu=1025":     "limits.cpu: 1025 is not a number of CPUs: from 0.01 to 1024",
		"cpu=0.001":    "limits.cpu: 0.001",
		"memory=1":     "limits.memory: 1 bytes start no container",
		"memory=much":  "is not an amount of memory",
		"pids=few":     `"few" is not a whole number`,
		"pids=-1":      "limits.pids: -1",
		"cpu_shares=1": "limits.cpu_shares: 1 is not a weight",
	} {
		if got, err := ParseLimit(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
}

func TestALifecyclesLimitsStayNeededAndItsCPUFree(t *testing.T) {
	l := Defaults()
	l.Limits.CPU = 1024
	if err := l.Validate(); err != nil {
		t.Error(err)
	}
	for _, limits := range []subject.Limits{{}, {Memory: 1 << 30, Pids: 1, CPUShares: 2, CPU: -1}, {Memory: 1 << 30, Pids: 1, CPUShares: 2, CPU: 1025}} {
		l.Limits = limits
		if err := l.Validate(); err == nil {
			t.Errorf("%+v was taken", limits)
		}
	}
}

// The seed of this is a report's matrix: see the plan's own source.
func TestTheKataPlanIsTheReportsMatrix(t *testing.T) {
	p, err := Load("../../plans/kata-overhead.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Measure) != 1 || p.Measure[0].Overhead == nil {
		t.Fatalf("%+v", p.Measure)
	}
	o := p.Measure[0].Overhead
	if want := []string{"cri+containerd/runc", "cri+containerd/kata", "cri+containerd/kata-sandbox-cgroup-only"}; !slices.Equal(o.Targets, want) {
		t.Errorf("targets %v", o.Targets)
	}
	if want := []string{"idle", "10M", "1G", "10G"}; !slices.Equal(o.Phases, want) {
		t.Errorf("phases %v", o.Phases)
	}
	if want := (subject.Limits{CPU: 1, Memory: 1 << 30}); o.Limits != want {
		t.Errorf("limits %+v", o.Limits)
	}
	if o.Missing != MissingSkip || o.Check == nil || *o.Check != (PodFixed{CPU: 250, Memory: 160 << 20}) || !slices.Equal(o.Sandboxes, []int{1}) {
		t.Errorf("%+v", o)
	}
	for _, name := range o.Targets {
		if o.Engines.Of(name).Network != subject.NetworkBridge {
			t.Errorf("%s has no network of its own, which Kata needs", name)
		}
	}
}
