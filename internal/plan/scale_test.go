package plan

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAResolvedJobSaysEverything(t *testing.T) {
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
			s := DefaultsOfStorage()
			s.Jobs, s.Scale = []Job{test.job}, test.scale
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			_, jobs, err := s.Resolved()
			if err != nil || !reflect.DeepEqual(jobs[0], test.want) {
				t.Errorf("got  %+v\nwant %+v, %v", jobs[0], test.want, err)
			}
			if err := checkResolved(&s); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAScaleThatMakesFilesTooLargeIsRefused(t *testing.T) {
	s := DefaultsOfStorage()
	s.Scale, s.Jobs[1].Size = 1000, 16<<40
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), `jobs: "read 512k": by a scale of 1000 its files are larger than 16T`) {
		t.Errorf("got %v", err)
	}
	if _, _, err := s.Resolved(); err == nil {
		t.Error("it was resolved")
	}
}

func TestAJobFileIsScaledLineByLine(t *testing.T) {
	file := func(lines ...string) Job {
		j := Job{Name: "file", Tool: ToolFio}
		for _, line := range lines {
			if name, ok := strings.CutPrefix(line, "["); ok {
				j.Options = append(j.Options, Section{Name: strings.TrimSuffix(name, "]")})
				continue
			}
			name, value, _ := strings.Cut(line, "=")
			last := &j.Options[len(j.Options)-1]
			last.Options = append(last.Options, Option{name, value})
		}
		return j
	}
	before := file("[global]", "bs=64k", "size=1g", "runtime=60", "time_based", "[a]", "rw=read", "[b]", "blocksize=4k,8k", "io_size=10M", "size=1MiB", "number_ios=1000", "runtime=2m", "numjobs=8")
	s := DefaultsOfStorage()
	s.Jobs, s.Scale = []Job{before}, 0.01
	_, jobs, err := s.Resolved()
	want := file("[global]", "bs=64k", "size=10432k", "runtime=600ms", "time_based", "[a]", "rw=read", "[b]", "blocksize=4k,8k", "io_size=96k", "size=8k", "number_ios=10", "runtime=1200ms", "numjobs=8")
	if err != nil || !reflect.DeepEqual(jobs, []Job{want}) {
		t.Errorf("got %+v, %v", jobs, err)
	}
	if s.Jobs[0].Options[0].Options[1].Value != "1g" {
		t.Error("the plan's own job was changed")
	}
	for line, why := range map[string]string{
		"size=1g-2g": "is not one size", "size=50%": "a percentage", "runtime=1:30": "is no time", "number_ios=many": "it is no number", "io_size=4x": "is not one size",
	} {
		s.Jobs = []Job{file("[a]", line)}
		s.Scale = 0.5
		if _, _, err := s.Resolved(); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "or no scale") {
			t.Errorf("%s: %v", line, err)
		}
		s.Scale = 1
		if _, jobs, err := s.Resolved(); err != nil || !reflect.DeepEqual(jobs, s.Jobs) {
			t.Errorf("%s without a scale: %+v, %v", line, jobs, err)
		}
	}
	s.Jobs, s.Scale = []Job{file("[a]", "bssplit=4k/50:8k/50", "size=1g")}, 0.5
	if _, _, err := s.Resolved(); err == nil || !strings.Contains(err.Error(), "its blocks are of several sizes") {
		t.Errorf("got %v", err)
	}
}
