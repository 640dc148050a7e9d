package plan

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func TestEveryFieldOfAStorageIsRead(t *testing.T) {
	got, err := Parse("a", []byte(`
version: 1
measure:
  - storage:
      title: everything
      targets: [host, mine=/opt/a=b/runc]
      missing: skip
      via: [cli]
      engines: {docker: {address: /run/d.sock}}
      volumes: [rootfs, "nfs=server:/a", device=/dev/vdb]
      cache: [buffered, direct]
      jobs:
        - " rndrw  4k"
        - name: all of fio
          rw: randwrite
          bs: 4k
          file_size: 10M
          files: 3
          num_jobs: 2
          io_depth: 32
          engine: libaio
          fsync: 5
          end_fsync: true
          runtime: 60s
          time_based: true
          caches: [direct]
          volumes: [rootfs, nfs]
        - {tool: dd, rw: write, bs: 4096, count: 10}
        - {name: sb, tool: sysbench, rw: randrw, bs: 16k, size: 5g, requests: 5000, volumes: [nfs]}
        - {name: file, options: [{name: global, options: [{name: bs, value: 4k}, {name: thread}]}, {name: a, options: [{name: size, value: 1048576}]}, {name: b}]}
      scale: 1%
      rounds: 7
      runtime_limit: 1m30s
      ceiling: 0s
      settle: 0s
      drop: files
      budget: 1h
      timeout: 500ms
      seed: 5
      limits: {memory: 1Gi, cpu: 500m}
      root: some/root
      programs: {fio: /bin/fio}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Storage{
		Title: "everything", Targets: []string{"host", "mine=/opt/a=b/runc"}, Missing: MissingSkip, Via: []string{"cli"},
		Engines: Engines{"docker": {Address: "/run/d.sock"}},
		Volumes: []string{"rootfs", "nfs=server:/a", "device=/dev/vdb"}, Cache: []string{"buffered", "direct"},
		Jobs: []Job{
			{Name: "rndrw 4k", Tool: ToolFio, RW: RWRandRW, BS: 4 << 10, Size: 1 << 30, NumJobs: 8},
			{Name: "all of fio", Tool: ToolFio, RW: RWRandWrite, BS: 4 << 10, FileSize: 10 << 20, Files: 3, NumJobs: 2, IODepth: 32, Engine: "libaio",
				Fsync: 5, EndFsync: true, Runtime: time.Minute, TimeBased: true, Caches: []string{"direct"}, Volumes: []string{"rootfs", "nfs"}},
			{Name: "dd write 4k", Tool: ToolDD, RW: RWWrite, BS: 4096, Count: 10},
			{Name: "sb", Tool: ToolSysbench, RW: RWRandRW, BS: 16 << 10, Size: 5 << 30, Requests: 5000, Volumes: []string{"nfs"}},
			{Name: "file", Tool: ToolFio, Options: []Section{
				{"global", []Option{{"bs", "4k"}, {"thread", ""}}}, {"a", []Option{{"size", "1048576"}}}, {"b", []Option{}},
			}},
		},
		Scale: 0.01, Rounds: 7, RuntimeLimit: 90 * time.Second, Drop: DropFiles, Budget: time.Hour, Timeout: 500 * time.Millisecond, Seed: 5,
		Limits: subject.Limits{Memory: 1 << 30, CPU: 0.5}, Root: "some/root", Programs: map[string]string{"fio": "/bin/fio"},
	}
	if !reflect.DeepEqual(got.Measure[0], Measure{Storage: want}) {
		t.Errorf("got  %+v\nwant %+v", got.Measure[0].Storage, want)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"runtime":"1m"`, `"runtime_limit":"1m30s"`, `"bs":4096`, `"scale":0.01`, `"ceiling":"0s"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	// The plan of a record is a plan file.
	again, err := Parse("a", text)
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("as a file: %+v, %v", again, err)
	}
	read := new(Plan)
	if err := json.Unmarshal(text, read); err != nil || !reflect.DeepEqual(read, got) {
		t.Errorf("as JSON: %+v, %v", read, err)
	}
}

// Whoever passes a plan on must not be able to have a device overwritten by it.
func TestOnlyTheCommandLineGivesADeviceAway(t *testing.T) {
	const text = "version: 1\nmeasure:\n- storage:\n    volumes: [device=/dev/vdb]\n"
	p, err := Parse("a", []byte(text))
	if err != nil {
		t.Fatalf("a plan with a device cannot be read: %v", err)
	}
	s := p.Measure[0].Storage
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "--i-know-this-destroys /dev/vdb") {
		t.Errorf("nobody gave the device away, and the plan is as it should be: %v", err)
	}
	for _, value := range []string{"[/dev/vdb]", "[]", "", "/dev/vdb"} {
		_, err := Parse("a", []byte(text+"    i_know_this_destroys: "+value+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "a:5:") || !strings.Contains(err.Error(), "--i-know-this-destroys /dev/NAME") {
			t.Errorf("%q: got %v", value, err)
		}
	}
	s.Destroys = []string{"/dev/vdb"}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	stored, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(stored), `"i_know_this_destroys":["/dev/vdb"]`) {
		t.Errorf("a record keeps %s, %v", stored, err)
	}
	read := new(Plan)
	if err := json.Unmarshal(stored, read); err != nil || !reflect.DeepEqual(read, p) {
		t.Errorf("of a record: %+v, %v", read, err)
	}
}

func TestAStorageThatSaysNothingIsTheDefault(t *testing.T) {
	for _, text := range []string{"storage:", "storage: {}", "storage: {via: [], engines: {}, programs: {}}"} {
		got, err := Parse("a", []byte("version: 1\nmeasure:\n- "+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		want := DefaultsOfStorage()
		if !reflect.DeepEqual(got.Measure[0], Measure{Storage: &want}) {
			t.Errorf("%s: %+v", text, got.Measure[0].Storage)
		}
	}
	s := DefaultsOfStorage()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func TestStoragesThatCannotBeReadFromJSONSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		`{"runtime_limit":"soon"}`:       `runtime_limit: "soon" is not a duration`,
		`{"settle":"5"}`:                 `settle: "5" has no unit`,
		`{"jobs":[{"runtime":"soon"}]}`:  `runtime: "soon" is not a duration`,
		`{"jobs":[{"bs":"4k"}]}`:         `cannot unmarshal string`,
		`{"jobs":["randread"]}`:          `cannot unmarshal string`,
		`{"jobs":[{"runtime":60}]}`:      `cannot unmarshal number`,
		`{"programs":{"fio":["a","b"]}}`: `cannot unmarshal array`,
	} {
		if err := json.Unmarshal([]byte(text), new(Storage)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestVolumesAreReadStrictly(t *testing.T) {
	for text, want := range map[string]Volume{
		"rootfs":                        {"rootfs", record.VolumeRootfs, ""},
		"bind":                          {"bind", record.VolumeBind, ""},
		"tmpfs":                         {"tmpfs", record.VolumeTmpfs, ""},
		"nfs=server:/path":              {"nfs=server:/path", record.VolumeNFS, "server:/path"},
		"nfs=10.0.0.1:/":                {"nfs=10.0.0.1:/", record.VolumeNFS, "10.0.0.1:/"},
		"nfs=[fd00::1]:/a/b:c":          {"nfs=[fd00::1]:/a/b:c", record.VolumeNFS, "[fd00::1]:/a/b:c"},
		"device=/dev/vdb":               {"device=/dev/vdb", record.VolumeDevice, "/dev/vdb"},
		"device=/dev/disk/by-id/a=b@1":  {"device=/dev/disk/by-id/a=b@1", record.VolumeDevice, "/dev/disk/by-id/a=b@1"},
		"device=/dev/mapper/vg-lv%2F_x": {"device=/dev/mapper/vg-lv%2F_x", record.VolumeDevice, "/dev/mapper/vg-lv%2F_x"},
	} {
		if got, err := ParseVolume(text); err != nil || got != want {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                           "write rootfs, bind, tmpfs, nfs=server:/path or device=/dev/…",
		" rootfs":                    "write rootfs",
		"Rootfs":                     "write rootfs",
		"rootfs=":                    "tare makes the rootfs itself",
		"tmpfs=64M":                  "tare makes the tmpfs itself",
		"nfs":                        "write the server and what it exports",
		"nfs=server":                 "write the server and what it exports",
		"nfs=server:path":            "write the server and what it exports",
		"nfs=:/path":                 "is not the name or address of a server",
		"nfs=-o:/path":               "is not the name or address of a server",
		"nfs=a/b:/path":              "is not the name or address of a server",
		"nfs=fd00::1:/path":          "is not the name or address of a server",
		"nfs=[10.0.0.1]:/a":          "is not an IPv6 address",
		"nfs=[fe80::1%eth0]:/a":      "is not an IPv6 address",
		"nfs=[fd00::1:/a":            "is not an IPv6 address",
		"nfs=server:/a/../b":         "write /b",
		"nfs=server:/a/":             "write /a",
		"nfs=server:/a b":            "has a comma, a blank",
		"nfs=server:/a,ro":           "has a comma",
		"device":                     "write the path of a block device",
		"device=vdb":                 "write the path of a block device",
		"device=/dev/":               "write /dev",
		"device=/dev/../etc/passwd":  "write /etc/passwd",
		"device=/dev//vdb":           "write /dev/vdb",
		"device=/dev/a\x1b[2J":       "has a comma, a blank or a sign",
		"device=/dev/a\n":            "has a comma, a blank or a sign",
		"device=/dev/ä":              "that is not ASCII",
		"device=/dev/" + long(4_096): "at most 4095 are allowed",
	} {
		if got, err := ParseVolume(text); err == nil || !strings.Contains(err.Error(), want) || got != (Volume{}) {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func FuzzParseVolume(f *testing.F) {
	for _, s := range []string{"rootfs", "nfs=server:/path", "nfs=[fd00::1]:/a", "device=/dev/vdb", "device=/dev/../a", "nfs=-o:/a,b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVolume(s)
		if err != nil {
			return
		}
		if again, err := ParseVolumes(v.Name); err != nil || !slices.Equal(again, []string{s}) {
			t.Fatalf("%+v in a list is %q, %v", v, again, err)
		}
		if strings.ContainsAny(s, ",\n \x00") || strings.Contains(v.Source, "/../") || (v.Kind == record.VolumeDevice) != strings.HasPrefix(v.Source, "/dev/") {
			t.Fatalf("%+v", v)
		}
	})
}

func TestListsOfVolumesAndCachesAreReadAsPeopleWriteThem(t *testing.T) {
	got, err := ParseVolumes("rootfs, bind,nfs=server:/path")
	if err != nil || !slices.Equal(got, []string{"rootfs", "bind", "nfs=server:/path"}) {
		t.Errorf("%q, %v", got, err)
	}
	got, err = ParseCaches(" buffered ,direct")
	if err != nil || !slices.Equal(got, []string{"buffered", "direct"}) {
		t.Errorf("%q, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                       "is not a volume",
		"rootfs,":                "is not a volume",
		"bind,bind":              "bind is there twice",
		"nfs=a:/b,nfs=a:/b":      "nfs=a:/b is there twice",
		strings.Repeat("a,", 20): "21 are too many: at most 20",
	} {
		if got, err := ParseVolumes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"": `"" is not known`, "direct,direct": "direct is there twice", "O_DIRECT": "write direct, buffered or both"} {
		if got, err := ParseCaches(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
}

func TestSizesAreReadAsFioReadsThem(t *testing.T) {
	for text, want := range map[string]int64{
		"512k": 512 << 10, "512K": 512 << 10, "4k": 4 << 10, "1G": 1 << 30, "1g": 1 << 30, "10m": 10 << 20, "16T": 16 << 40, "4096": 4096, "1": 1, "010": 10,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q gives %d, %v", text, got, err)
		}
		if again, err := ParseSize(FormatSize(want)); err != nil || again != want {
			t.Errorf("%d is written %s, which is %d, %v", want, FormatSize(want), again, err)
		}
	}
	for _, text := range []string{"", "k", "0", "0k", "-1", "+1", "1.5G", "4KiB", "4kB", "4 k", " 4k", "4kk", "17T", "9223372036854775808", "99999999999999999999k", "0x10", "1e3", "4k\n"} {
		if got, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), "is not a size: write it as fio does") {
			t.Errorf("%q gives %d, %v", text, got, err)
		}
	}
	for bytes, want := range map[int64]string{512: "512", 1000: "1000", 1 << 10: "1k", 1536 << 10: "1536k", 1 << 30: "1G", 5 << 40: "5T", 0: "0"} {
		if got := FormatSize(bytes); got != want {
			t.Errorf("%d is %s", bytes, got)
		}
	}
	if got, err := ParseBlockSizes("512k, 4k"); err != nil || !slices.Equal(got, []int64{512 << 10, 4 << 10}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{"": "is not a size", "4k,4096": "4k is there twice", "1000": "1000 bytes are no block", "2G": "are no block"} {
		if got, err := ParseBlockSizes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

func TestScalesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]float64{"0.01": 0.01, "1%": 0.01, " 2 % ": 0.02, "1": 1, "1000": 1000, "0.000001": 0.000001, "0": 0} {
		if got, err := ParseScale(text); err != nil || got != want {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "%", "-1", "1e-2", "NaN", "Inf", "1001", "0.0000001", "half", "1/100"} {
		if got, err := ParseScale(text); err == nil || !strings.Contains(err.Error(), "is not a scale: write one from 0.000001 to 1000") {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
	for _, scale := range []float64{-1, math.NaN(), math.Inf(1), 1001} {
		s := DefaultsOfStorage()
		s.Scale = scale
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "scale: ") {
			t.Errorf("%g: %v", scale, err)
		}
	}
}

func TestJobsAreNamedByWhatTheyDo(t *testing.T) {
	got, err := ParseJobs("randread, rndrw", []int64{512 << 10, 4 << 10}, ToolFio, 1<<30, 8)
	want := []Job{
		{Name: "randread 512k", Tool: ToolFio, RW: RWRandRead, BS: 512 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "randread 4k", Tool: ToolFio, RW: RWRandRead, BS: 4 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "rndrw 512k", Tool: ToolFio, RW: RWRandRW, BS: 512 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "rndrw 4k", Tool: ToolFio, RW: RWRandRW, BS: 4 << 10, Size: 1 << 30, NumJobs: 8},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseJobs("write", []int64{4 << 10}, ToolDD, 1<<30, 8); err != nil || got[0].NumJobs != 0 {
		t.Errorf("dd: %+v, %v", got, err)
	}
	for names, want := range map[string]string{
		"":          `"" is not a job: write randread, read`,
		"randrw":    `"randrw" is not a job`,
		"read,read": `"read 4k" is there twice`,
		"randread":  "dd goes from the first block to the last",
	} {
		if got, err := ParseJobs(names, []int64{4 << 10}, ToolDD, 1<<30, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %+v, %v", names, got, err)
		}
	}
	if _, err := ParseJobs("read", []int64{4 << 10}, "iozone", 1<<30, 1); err == nil || !strings.Contains(err.Error(), "write fio, dd or sysbench") {
		t.Errorf("got %v", err)
	}
}

// The published report's own jobs, by what it ran.
func TestTheKataIOPlanIsTheReportsTables(t *testing.T) {
	p, err := Load("../../plans/kata-io.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Measure) != 1 || p.Measure[0].Storage == nil {
		t.Fatalf("%+v", p.Measure)
	}
	s := p.Measure[0].Storage
	if want := []string{"host", "containerd/runc", "containerd/kata"}; !slices.Equal(s.Targets, want) || s.Missing != MissingSkip {
		t.Errorf("targets %v, missing %s", s.Targets, s.Missing)
	}
	s.Volumes = append(s.Volumes, "nfs=server:/export")
	_, jobs, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range jobs {
		where := ""
		for _, kind := range []string{record.VolumeRootfs, record.VolumeBind, record.VolumeNFS} {
			for _, cache := range caches {
				if j.Takes(kind, cache) {
					where += " " + kind + "/" + cache
				}
			}
		}
		got = append(got, strings.Join([]string{j.Tool, j.RW, FormatSize(j.BS), FormatSize(j.Size), j.Engine}, " ")+where)
	}
	want := []string{
		"dd write 4k 4000M  rootfs/direct bind/direct nfs/direct",
		"dd write 4k 40000M  rootfs/direct bind/direct nfs/direct",
		"fio randread 512k 1G libaio rootfs/direct",
		"fio read 512k 1G psync rootfs/direct",
		"fio randwrite 512k 1G psync rootfs/direct",
		"fio write 512k 1G psync rootfs/direct",
		"fio randread 4k 1000M psync rootfs/direct rootfs/buffered nfs/direct nfs/buffered",
		"fio randread 4k 5G psync rootfs/direct rootfs/buffered nfs/direct nfs/buffered",
		"fio randread 4k 10G psync rootfs/direct rootfs/buffered",
		"sysbench randrw 16k 5G  rootfs/direct",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if small := jobs[6]; small.Files != 100 || small.FileSize != 10<<20 || small.Runtime != time.Minute || !small.TimeBased {
		t.Errorf("%+v", small)
	}
	if s := jobs[9]; s.Files != 10 || s.NumJobs != 16 || s.Requests != 5000 || s.Fsync != 0 {
		t.Errorf("%+v", s)
	}
	// The largest at the slowest that was published has to be done in time.
	if slowest := time.Duration(float64(jobs[1].Size)/16.4e6) * time.Second; s.RuntimeLimit < slowest {
		t.Errorf("dd takes %v and has %v", slowest, s.RuntimeLimit)
	}
	s.Scale = 0.01
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
