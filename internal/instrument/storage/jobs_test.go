package storage

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"

	"github.com/tare-bench/tare/record"
)

// lineByLine holds what a function makes of each line of a file's cases, which may be quoted.
func lineByLine(t *testing.T, path string, read func(t *testing.T, text string) (any, error)) {
	t.Helper()
	golden.Cases(t, path, func(t *testing.T, lines string) string {
		var out []string
		for line := range strings.SplitSeq(lines, "\n") {
			if quoted, err := strconv.Unquote(line); err == nil {
				line = quoted
			}
			if v, err := read(t, line); err != nil {
				out = append(out, err.Error())
			} else {
				out = append(out, fmt.Sprintf("%q is %v", line, v))
			}
		}
		return strings.Join(out, "\n")
	})
}

func TestVolumesAreReadStrictly(t *testing.T) {
	t.Parallel()
	lineByLine(t, "testdata/volumes.txt", func(t *testing.T, text string) (any, error) {
		v, err := ParseVolume(text)
		if err != nil && v != (Volume{}) {
			t.Errorf("%q is refused and gives %+v", text, v)
		}
		return v, err
	})
	tooLong := "device=/dev/" + long(4_096)
	if _, err := ParseVolume(tooLong); err == nil || !strings.Contains(err.Error(), "at most 4095 are allowed") {
		t.Errorf("%v", err)
	}
}

// What each is to fio 3.33 was seen from the files that it made.
func TestSizesAndTimesAreReadAsFioReadsThem(t *testing.T) {
	t.Parallel()
	lineByLine(t, "testdata/sizes.txt", func(t *testing.T, text string) (any, error) {
		switch {
		case strings.Contains(t.Name(), "times"):
			return ParseFioTime(text)
		case strings.Contains(t.Name(), "fio's"):
			return ParseFioSize(text)
		}
		n, err := parseSize(text)
		if again, wrong := parseSize(FormatSize(n)); err == nil && (wrong != nil || again != n) {
			t.Errorf("%d is written %s, which is %d, %v", n, FormatSize(n), again, wrong)
		}
		return n, err
	})
	for bytes, want := range map[int64]string{512: "512", 1000: "1000", 1 << 10: "1k", 1536 << 10: "1536k", 1 << 30: "1G", 5 << 40: "5T", 0: "0"} {
		if got := FormatSize(bytes); got != want {
			t.Errorf("%d is %s", bytes, got)
		}
	}
}

func TestJobsAreNamedByWhatTheyDo(t *testing.T) {
	t.Parallel()
	o, err := asked("--jobs", "randread, rndrw", "--bs", "512k, 4k")
	want := []Job{
		{Name: "randread 512k", Tool: ToolFio, RW: RWRandRead, BS: 512 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "randread 4k", Tool: ToolFio, RW: RWRandRead, BS: 4 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "rndrw 512k", Tool: ToolFio, RW: RWRandRW, BS: 512 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "rndrw 4k", Tool: ToolFio, RW: RWRandRW, BS: 4 << 10, Size: 1 << 30, NumJobs: 8},
	}
	if err != nil || !reflect.DeepEqual(o.Jobs, want) {
		t.Errorf("%+v, %v", o.Jobs, err)
	}
	for args, want := range map[string]string{
		"--jobs= --tool=dd": `--jobs: "" is not a job: write randread, read`, "--jobs=randrw": `--jobs: "randrw" is not a job`,
		"--jobs=read,read": `--jobs: "read 512k" is there twice`, "--tool=dd --jobs=randread": "dd goes from the first block to the last",
		"--tool=iozone": "--tool: unknown tool", "--bs=": "is not a size", "--bs=4k,4096": "--bs: 4k is there twice", "--bs=1000": "--bs: 1000 bytes are no block", "--bs=2G": "are no block",
	} {
		if _, err := asked(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// asked are the options of a command line.
func asked(args ...string) (Options, error) {
	o := Defaults()
	set := option.Of(&o)
	flags := pflag.NewFlagSet("storage", pflag.ContinueOnError)
	set.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, set.Finish(context.Background())
}

func long(n int) string { return strings.Repeat("x", n) }

// The mistakes of plan files are in testdata/storage-jobs-*; here are those that
// only a program can make, and what has to be taken.
func TestJobsThatMakeSenseAreTaken(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]Job{
		"fio with as many requests as its engine takes": {Tool: ToolFio, RW: RWRandRead, BS: 512, Size: 512, IODepth: MaxIODepth, Engine: "io_uring", NumJobs: MaxNumJobs},
		"fio that syncs":                   {Tool: ToolFio, RW: RWRandRW, BS: 4096, Size: 1 << 20, Fsync: 1, EndFsync: true},
		"fio with the largest blocks":      {Tool: ToolFio, RW: RWRead, BS: MaxBlock, Size: MaxFile},
		"dd that syncs at its end":         {Tool: ToolDD, RW: RWWrite, BS: 1 << 20, Count: 5, EndFsync: true},
		"dd with what everyone has one of": {Tool: ToolDD, RW: RWRead, BS: 1 << 20, Size: 1 << 20, Files: 1, NumJobs: 1, IODepth: 1},
		"sysbench that syncs in between":   {Tool: ToolSysbench, RW: RWRandRW, BS: 16384, FileSize: 1 << 20, Files: 128, Fsync: 100, NumJobs: 16},
		"a size said in two ways":          {Tool: ToolFio, RW: RWRead, BS: 4096, Size: 3 << 20, FileSize: 1 << 20, Files: 3},
	} {
		j.Name = name
		if err := option.Check(&j); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJobsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	fio := func(change func(*Job)) Job {
		j := Job{Name: "a", Tool: ToolFio, RW: RWRandWrite, BS: 4096, Size: 1 << 20}
		change(&j)
		return j
	}
	options := func(o FioOption) Job {
		return Job{Name: "a", Tool: ToolFio, Options: []Section{{"s", []FioOption{o}}}}
	}
	for want, j := range map[string]Job{
		"name: it has none":                           fio(func(j *Job) { j.Name = "" }),
		"101 characters long":                         fio(func(j *Job) { j.Name = strings.Repeat("ä", 101) }),
		`"a\nb" is not one line`:                      fio(func(j *Job) { j.Name = "a\nb" }),
		`" a" is not one line`:                        fio(func(j *Job) { j.Name = " a" }),
		`"a\xff" is not one line`:                     fio(func(j *Job) { j.Name = "a\xff" }),
		"size: -1 is not an amount that can be":       fio(func(j *Job) { j.Size = -1 }),
		"files: 100001 is not a number that can be":   fio(func(j *Job) { j.Files = 100_001 }),
		"num_jobs: -1 is not a number that can be":    fio(func(j *Job) { j.NumJobs = -1 }),
		"file_size: the files together":               fio(func(j *Job) { j.Size, j.FileSize, j.Files = 0, MaxFile, 2 }),
		"in 300 files are less than a block":          fio(func(j *Job) { j.Files = 300 }),
		"count: fio has no such setting":              fio(func(j *Job) { j.Size, j.Count = 0, 5 }),
		"requests: fio has no such setting":           fio(func(j *Job) { j.Requests = 5 }),
		"io_depth: psync has one request":             fio(func(j *Job) { j.IODepth = 2 }),
		"io_depth: 65537 is not a number that can be": fio(func(j *Job) { j.Engine, j.IODepth = "libaio", 65_537 }),
		`engine: "exec" is not known`:                 fio(func(j *Job) { j.Engine = "exec" }),
		"end_fsync: a job that does not write":        fio(func(j *Job) { j.RW, j.EndFsync = RWRead, true }),
		"files: each of 8 threads has files":          fio(func(j *Job) { j.Files, j.NumJobs, j.Size = 20_000, 8, 1<<30 }),
		"volumes: bind is there twice":                fio(func(j *Job) { j.Volumes = []string{"bind", "bind"} }),
		"rw: dd goes from the first":                  {Name: "a", Tool: ToolDD, RW: RWRandRW, BS: 4096, Size: 1 << 20},
		"runtime: dd has no such setting":             {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Size: 1 << 20, Runtime: 1e9},
		"files: dd has one file":                      {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Size: 1 << 20, Files: 2},
		"io_depth: dd has one file":                   {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Size: 1 << 20, IODepth: 2},
		"count: the files together":                   {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Count: 1 << 44},
		"count: size, file_size and count":            {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Count: 2, Size: 4096},
		"end_fsync: sysbench syncs at its end":        {Name: "a", Tool: ToolSysbench, RW: RWWrite, BS: 4096, Size: 1 << 20, EndFsync: true},
		"time_based: sysbench has no such":            {Name: "a", Tool: ToolSysbench, RW: RWWrite, BS: 4096, Size: 1 << 20, Runtime: 1e9, TimeBased: true},
		"fsync: a job that does not write":            {Name: "a", Tool: ToolSysbench, RW: RWRead, BS: 4096, Size: 1 << 20, Fsync: 1},
		"tool: \"dd\" reads no job file":              {Name: "a", Tool: ToolDD, Options: []Section{{Name: "a"}}},
		"options: 101 sections are too many":          {Name: "a", Tool: ToolFio, Options: make([]Section, 101)},
		"options: they are more than 1000":            {Name: "a", Tool: ToolFio, Options: []Section{{"a", make([]FioOption, 1001)}}},
		"options: it has no job":                      {Name: "a", Tool: ToolFio, Options: []Section{{Name: "global"}}},
		`options: section "": a name has from 1 to`:   {Name: "a", Tool: ToolFio, Options: []Section{{Name: ""}}},
		`options: section "a]b": files are named`:     {Name: "a", Tool: ToolFio, Options: []Section{{Name: "a]b"}}},
		`options: section "/dev/sda": files are`:      {Name: "a", Tool: ToolFio, Options: []Section{{Name: "/dev/sda"}}},
		`options: section "-a": files are named by`:   {Name: "a", Tool: ToolFio, Options: []Section{{Name: "-a"}}},
		`options: section "s": option "a=b"`:          options(FioOption{"a=b", ""}),
		`options: section "s": option "exec_prerun"`:  options(FioOption{"exec_prerun", "true"}),
		`"/dev/sda" cannot be used: a value is a`:     options(FioOption{"filename", "/dev/sda"}),
		`cannot be used: a value is a number or a`:    options(FioOption{"bs", "4k\nexec_prerun=sh"}),
		`cannot be used: it is not one line`:          options(FioOption{"description", "a\x1b[2J"}),
		`cannot be used: it is 5000 bytes`:            options(FioOption{"bs", long(5000)}),
	} {
		if err := option.Check(&j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestADeviceIsNamedByTheVerySamePath(t *testing.T) {
	t.Parallel()
	s := Defaults()
	s.Volumes = []string{"device=/dev/vdb"}
	for _, destroys := range [][]string{nil, {"/dev/vdb1"}, {"/dev/VDB"}, {"/dev/./vdb"}, {"vdb"}} {
		s.Destroys = destroys
		if err := option.Check(&s); err == nil || !strings.Contains(err.Error(), "all that is on /dev/vdb would be destroyed") || !strings.Contains(err.Error(), "--i-know-this-destroys /dev/vdb") {
			t.Errorf("%q: got %v", destroys, err)
		}
	}
	s.Destroys = []string{"vde", "/dev/vdb", "/dev/vdb"}
	if err := option.Check(&s); err == nil || !strings.Contains(err.Error(), `"vde" is not a device`) || !strings.Contains(err.Error(), "/dev/vdb is there twice") {
		t.Errorf("got %v", err)
	}
	s.Destroys = []string{"/dev/vdc", "/dev/vdb"}
	if err := option.Check(&s); err != nil {
		t.Error(err)
	}
}

func TestAResolvedJobSaysEverything(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scale     float64
		job, want Job
	}{
		"fio's one file is all of its size": {0,
			Job{Name: "a", Tool: ToolFio, RW: RWRead, BS: 4 << 10, Size: 1 << 30},
			Job{Name: "a", Tool: ToolFio, RW: RWRead, BS: 4 << 10, Size: 1 << 30, FileSize: 1 << 30, Files: 1, NumJobs: 1, IODepth: 1, Engine: "psync"}},
		"the size of each file gives that of all": {1,
			Job{Name: "a", Tool: ToolFio, RW: RWRandRead, BS: 4 << 10, FileSize: 10 << 20, Files: 100, Engine: "libaio", IODepth: 8, NumJobs: 2},
			Job{Name: "a", Tool: ToolFio, RW: RWRandRead, BS: 4 << 10, FileSize: 10 << 20, Size: 1000 << 20, Files: 100, Engine: "libaio", IODepth: 8, NumJobs: 2}},
		"a size goes down to whole blocks in each file": {1,
			Job{Name: "a", Tool: ToolSysbench, RW: RWRandRW, BS: 16 << 10, Size: 100_000, Files: 3},
			Job{Name: "a", Tool: ToolSysbench, RW: RWRandRW, BS: 16 << 10, Size: 6 * 16 << 10, FileSize: 2 * 16 << 10, Files: 3, NumJobs: 1}},
		"dd's count gives its size": {1,
			Job{Name: "a", Tool: ToolDD, RW: RWWrite, BS: 4096, Count: 1_024_000},
			Job{Name: "a", Tool: ToolDD, RW: RWWrite, BS: 4096, Count: 1_024_000, Size: 4_194_304_000, FileSize: 4_194_304_000, Files: 1, NumJobs: 1}},
		"and its size its count": {0.01,
			Job{Name: "a", Tool: ToolDD, RW: RWWrite, BS: 4096, Size: 4_194_304_000},
			Job{Name: "a", Tool: ToolDD, RW: RWWrite, BS: 4096, Count: 10_240, Size: 41_943_040, FileSize: 41_943_040, Files: 1, NumJobs: 1}},
		"threads keep a block each": {0.000001,
			Job{Name: "a", Tool: ToolFio, RW: RWRead, BS: 512 << 10, Size: 1 << 30, NumJobs: 8, Runtime: time.Minute},
			Job{Name: "a", Tool: ToolFio, RW: RWRead, BS: 512 << 10, Size: 4 << 20, FileSize: 4 << 20, Files: 1, NumJobs: 8, IODepth: 1, Engine: "psync", Runtime: MinRuntime}},
		"but not where nothing is scaled": {1,
			Job{Name: "a", Tool: ToolFio, RW: RWRead, BS: 512 << 10, Size: 512 << 10, NumJobs: 8},
			Job{Name: "a", Tool: ToolFio, RW: RWRead, BS: 512 << 10, Size: 512 << 10, FileSize: 512 << 10, Files: 1, NumJobs: 8, IODepth: 1, Engine: "psync"}},
		"requests and times are scaled, the fsyncs are not": {0.01,
			Job{Name: "a", Tool: ToolSysbench, RW: RWRandRW, BS: 16 << 10, Size: 5 << 30, Files: 10, NumJobs: 16, Requests: 5000, Fsync: 100, Runtime: time.Minute},
			Job{Name: "a", Tool: ToolSysbench, RW: RWRandRW, BS: 16 << 10, Size: 53_575_680, FileSize: 5_357_568, Files: 10, NumJobs: 16, Requests: 50, Fsync: 100, Runtime: 600 * time.Millisecond}},
		"one request is left": {0.0001,
			Job{Name: "a", Tool: ToolSysbench, RW: RWRandRW, BS: 16 << 10, Size: 5 << 30, Requests: 5},
			Job{Name: "a", Tool: ToolSysbench, RW: RWRandRW, BS: 16 << 10, Size: 524_288, FileSize: 524_288, Files: 1, NumJobs: 1, Requests: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Defaults()
			s.Jobs, s.Scale = []Job{test.job}, test.scale
			must.OK(t, option.Check(&s))
			volumes, jobs, err := s.Resolved()
			if err != nil || !reflect.DeepEqual(jobs, []Job{test.want}) || len(volumes) != len(s.Volumes) {
				t.Fatalf("on %d volumes, got  %+v\nwant %+v, %v", len(volumes), jobs, test.want, err)
			}
			if err := option.Check(&jobs[0]); err != nil {
				t.Errorf("as it is run it is wrong: %v", err)
			}
			if again, err := jobs[0].resolved(1); err != nil || !reflect.DeepEqual(again, jobs[0]) {
				t.Errorf("resolved again it is %+v, %v", again, err)
			}
		})
	}
}

func TestAScaleThatMakesFilesTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	s := Defaults()
	s.Scale, s.Jobs[1].Size = 1000, 16<<40
	if err := option.Check(&s); err == nil || !strings.Contains(err.Error(), `jobs: "read 512k": by a scale of 1000 its files are larger than 16T`) {
		t.Errorf("got %v", err)
	}
	if _, _, err := s.Resolved(); err == nil {
		t.Error("it was resolved")
	}
}

func TestAJobFileIsScaledLineByLine(t *testing.T) {
	t.Parallel()
	file := func(lines ...string) Job {
		j := Job{Name: "file", Tool: ToolFio}
		for _, line := range lines {
			if name, ok := strings.CutPrefix(line, "["); ok {
				j.Options = append(j.Options, Section{Name: strings.TrimSuffix(name, "]")})
				continue
			}
			name, value, _ := strings.Cut(line, "=")
			last := &j.Options[len(j.Options)-1]
			last.Options = append(last.Options, FioOption{name, value})
		}
		return j
	}
	before := file("[global]", "bs=64k", "size=1g", "runtime=60", "time_based", "[a]", "rw=read", "[b]", "blocksize=4k,8k", "io_size=10M", "size=1MiB", "number_ios=1000", "runtime=2m", "numjobs=8")
	s := Defaults()
	s.Jobs, s.Scale = []Job{before}, 0.01
	_, jobs, err := s.Resolved()
	want := file("[global]", "bs=64k", "size=10432k", "runtime=600ms", "time_based", "[a]", "rw=read", "[b]", "blocksize=4k,8k", "io_size=96k", "size=8k", "number_ios=10", "runtime=1200ms", "numjobs=8")
	if err != nil || !reflect.DeepEqual(jobs, []Job{want}) {
		t.Errorf("got %+v, %v", jobs, err)
	}
	if s.Jobs[0].Options[0].Options[1].Value != "1g" {
		t.Error("the plan's own job was changed")
	}
	s.Jobs, s.Scale = []Job{file("[a]", "size=1g", "runtime=2d", "[b]", "timeout=1h", "size=1m")}, 20
	_, jobs, err = s.Resolved()
	want = file("[a]", "size=20G", "runtime=2592000000ms", "[b]", "timeout=72000000ms", "size=20M")
	if err != nil || !reflect.DeepEqual(jobs, []Job{want}) {
		t.Errorf("up to 30 days: %+v, %v", jobs, err)
	}
	if err := option.Check(&jobs[0]); err != nil {
		t.Errorf("as it is run it is wrong: %v", err)
	}
	for line, why := range map[string]string{"number_ios=many": "it is no number", "bssplit=4k/50:8k/50": "its blocks are of several sizes"} {
		s.Jobs, s.Scale = []Job{file("[a]", line, "size=1g")}, 0.5
		if _, _, err := s.Resolved(); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "or no scale") {
			t.Errorf("%s: %v", line, err)
		}
		s.Scale = 1
		if _, jobs, err := s.Resolved(); err != nil || !reflect.DeepEqual(jobs, s.Jobs) {
			t.Errorf("%s without a scale: %+v, %v", line, jobs, err)
		}
	}
}

func FuzzParseVolume(f *testing.F) {
	for _, s := range []string{"rootfs", "nfs=server:/path", "nfs=[fd00::1]:/a", "device=/dev/vdb", "device=/dev/../a", "nfs=-o:/a,b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVolume(s)
		if err != nil {
			return
		}
		if again, wrong := parseVolumes(strings.Split(v.Name, ",")); len(wrong) > 0 || len(again) != 1 || again[0] != v {
			t.Fatalf("%+v in a list is %+v, %v", v, again, wrong)
		}
		if strings.ContainsAny(s, ",\n \x00") || strings.Contains(v.Source, "/../") || (v.Kind == record.VolumeDevice) != strings.HasPrefix(v.Source, "/dev/") {
			t.Fatalf("%+v", v)
		}
	})
}
