package plan

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/record"
)

func TestAMeasurementOfProgramsIsReadWithAllItsFields(t *testing.T) {
	p, err := Parse("a", []byte(`
version: 1
measure:
  - bpf:
      title: t
      case: quota
      datapath: ""
      kmesh: true
      names: [cgroup_*]
      pins: [/sys/fs/bpf/x]
      cgroups: [/mnt/kmesh_cgroup2]
      owners: [7]
      url: http://10.0.0.1:8080/
      connections: [4, 100]
      qps: 2.5
      keep_alive: true
      duration: 5s
      idle: 500ms
      rounds: 3
      cpus: 0.5
      instances: 4
      budget: 9m
      timeout: 7s
      seed: 5
  - bpf:
`))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultsOfBPF()
	want.Title, want.Case, want.Datapath, want.Kmesh, want.Names, want.Pins = "t", record.CaseQuota, "", true, []string{"cgroup_*"}, []string{"/sys/fs/bpf/x"}
	want.Cgroups, want.Owners, want.URL, want.Connections, want.QPS, want.KeepAlive = []string{"/mnt/kmesh_cgroup2"}, []int{7}, "http://10.0.0.1:8080/", []int{4, 100}, 2.5, true
	want.Duration, want.Idle, want.Rounds, want.CPUs, want.Instances, want.Services = 5*time.Second, 500*time.Millisecond, 3, 0.5, 4, []int{1}
	want.Budget, want.Timeout, want.Seed = 9*time.Minute, 7*time.Second, 5
	if got := *p.Measure[0].BPF; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := *p.Measure[1].BPF; !reflect.DeepEqual(got, DefaultsOfBPF()) {
		t.Errorf("the defaults are %+v", got)
	}
	var back BPF
	stored, _ := json.Marshal(want)
	if err := json.Unmarshal(stored, &back); err != nil || !reflect.DeepEqual(back, want) {
		t.Errorf("%v: read back as %+v", err, back)
	}
	for _, d := range []BPF{DefaultsOfBPF(), DefaultsOfQuota(), DefaultsOfMemory()} {
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", d.Case, err)
		}
	}
}

func TestWhatIsOfTheReferenceDatapathOnlyIsRefusedOfOtherPrograms(t *testing.T) {
	chosen := func(b *BPF) { b.Datapath, b.Kmesh, b.URL = "", true, "http://10.0.0.1/" }
	for name, c := range map[string]struct {
		change func(*BPF)
		want   string // "": it is right
	}{
		"chosen programs":                       {chosen, ""},
		"chosen programs, by https":             {func(b *BPF) { chosen(b); b.URL = "https://10.0.0.1/" }, ""},
		"chosen programs with services":         {func(b *BPF) { chosen(b); b.Services = []int{1, 100} }, "services: they are in the map of tare's own programs"},
		"chosen programs with one other number": {func(b *BPF) { chosen(b); b.Services = []int{9} }, "services: they are in the map of tare's own programs"},
		"the reference datapath with services":  {func(b *BPF) { b.Services = []int{1, 100} }, ""},
		"the reference datapath and a server":   {func(b *BPF) { b.URL = "http://10.0.0.1:8080/" }, ""},
		"the reference datapath, by https":      {func(b *BPF) { b.URL = "https://10.0.0.1/" }, "url: tare's own programs lead services to it"},
		"the same in capitals":                  {func(b *BPF) { b.URL = "HTTPS://10.0.0.1/" }, "url: "},
		"a request that may take a day":         {func(b *BPF) { b.Timeout = 24 * time.Hour }, "timeout: 24h"},
	} {
		b := DefaultsOfBPF()
		c.change(&b)
		err := b.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALimitIsACountOfCPUsOrOfClientsWithTheirPart(t *testing.T) {
	for _, test := range []struct {
		text      string
		cpus      float64
		instances int
		wrong     bool
	}{
		{"1", 1, 1, false}, {"0.5", 0.5, 1, false}, {"250m", 0.25, 1, false}, {"4x250m", 1, 4, false}, {" 4 x 250m ", 1, 4, false},
		{"", 0, 0, true}, {"x", 0, 0, true}, {"0x1", 0, 0, true}, {"4x", 0, 0, true}, {"1000x1", 0, 0, true}, {"-1", 0, 0, true}, {"NaN", 0, 0, true},
	} {
		cpus, instances, err := ParseCPUs(test.text)
		if (err != nil) != test.wrong || !test.wrong && (cpus != test.cpus || instances != test.instances) {
			t.Errorf("%q: %v, %d, %v", test.text, cpus, instances, err)
		}
	}
}
