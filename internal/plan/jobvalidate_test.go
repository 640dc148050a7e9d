package plan

import (
	"fmt"
	"strings"
	"testing"
)

// The mistakes of plan files are in testdata/storage-jobs-*; here are those that
// only a program can make, and what has to be taken.
func TestJobsThatMakeSenseAreTaken(t *testing.T) {
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
		if err := j.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJobsThatMakeNoSenseAreRefused(t *testing.T) {
	fio := func(change func(*Job)) Job {
		j := Job{Name: "a", Tool: ToolFio, RW: RWRandWrite, BS: 4096, Size: 1 << 20}
		change(&j)
		return j
	}
	for want, j := range map[string]Job{
		"name: it has none":                       fio(func(j *Job) { j.Name = "" }),
		"101 characters long":                     fio(func(j *Job) { j.Name = strings.Repeat("ä", 101) }),
		`"a\nb" is not one line`:                  fio(func(j *Job) { j.Name = "a\nb" }),
		`" a" is not one line`:                    fio(func(j *Job) { j.Name = " a" }),
		`"a\xff" is not one line`:                 fio(func(j *Job) { j.Name = "a\xff" }),
		"size: -1 cannot be":                      fio(func(j *Job) { j.Size = -1 }),
		"files: 100001 cannot be":                 fio(func(j *Job) { j.Files = 100_001 }),
		"num_jobs: -1 cannot be":                  fio(func(j *Job) { j.NumJobs = -1 }),
		"file_size: the files together":           fio(func(j *Job) { j.Size, j.FileSize, j.Files = 0, MaxFile, 2 }),
		"in 300 files are less than a block":      fio(func(j *Job) { j.Files = 300 }),
		"count: fio has no such setting":          fio(func(j *Job) { j.Size, j.Count = 0, 5 }),
		"requests: fio has no such setting":       fio(func(j *Job) { j.Requests = 5 }),
		"io_depth: psync has one request":         fio(func(j *Job) { j.IODepth = 2 }),
		"io_depth: 65537 cannot be":               fio(func(j *Job) { j.Engine, j.IODepth = "libaio", 65_537 }),
		"engine: \"exec\" is not an engine":       fio(func(j *Job) { j.Engine = "exec" }),
		"end_fsync: a job that does not write":    fio(func(j *Job) { j.RW, j.EndFsync = RWRead, true }),
		"files: each of 8 threads has files":      fio(func(j *Job) { j.Files, j.NumJobs, j.Size = 20_000, 8, 1<<30 }),
		"volumes: bind is there twice":            fio(func(j *Job) { j.Volumes = []string{"bind", "bind"} }),
		"rw: dd goes from the first":              {Name: "a", Tool: ToolDD, RW: RWRandRW, BS: 4096, Size: 1 << 20},
		"runtime: dd has no such setting":         {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Size: 1 << 20, Runtime: 1e9},
		"files: dd has one file":                  {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Size: 1 << 20, Files: 2},
		"io_depth: dd has one file":               {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Size: 1 << 20, IODepth: 2},
		"count: the files together":               {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Count: 1 << 44},
		"count: size, file_size and count":        {Name: "a", Tool: ToolDD, RW: RWRead, BS: 4096, Count: 2, Size: 4096},
		"end_fsync: sysbench syncs at its end":    {Name: "a", Tool: ToolSysbench, RW: RWWrite, BS: 4096, Size: 1 << 20, EndFsync: true},
		"time_based: sysbench has no such":        {Name: "a", Tool: ToolSysbench, RW: RWWrite, BS: 4096, Size: 1 << 20, Runtime: 1e9, TimeBased: true},
		"fsync: a job that does not write":        {Name: "a", Tool: ToolSysbench, RW: RWRead, BS: 4096, Size: 1 << 20, Fsync: 1},
		"tool: \"dd\" reads no job file":          {Name: "a", Tool: ToolDD, Options: []Section{{Name: "a"}}},
		"options: 101 sections are too many":      {Name: "a", Tool: ToolFio, Options: make([]Section, 101)},
		"options: they are more than 1000":        {Name: "a", Tool: ToolFio, Options: []Section{{"a", make([]Option, 1001)}}},
		`options: "" is not the name of a sec`:    {Name: "a", Tool: ToolFio, Options: []Section{{Name: ""}}},
		`options: "a]b" is not the name of a`:     {Name: "a", Tool: ToolFio, Options: []Section{{Name: "a]b"}}},
		`options: "a=b" in section "s" is not`:    {Name: "a", Tool: ToolFio, Options: []Section{{"s", []Option{{"a=b", ""}}}}},
		`value of bs in section "s" is not one`:   {Name: "a", Tool: ToolFio, Options: []Section{{"s", []Option{{"bs", "4k\nexec_prerun=sh"}}}}},
		`value of bs in section "s" is 5000 byte`: {Name: "a", Tool: ToolFio, Options: []Section{{"s", []Option{{"bs", long(5000)}}}}},
	} {
		if err := j.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestThereAreOnlySoManyJobs(t *testing.T) {
	s := DefaultsOfStorage()
	s.Jobs = nil
	for i := range MaxJobs + 1 {
		s.Jobs = append(s.Jobs, Job{Name: fmt.Sprint("job ", i), Tool: ToolFio, RW: RWRead, BS: 4096, Size: 4096})
	}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "jobs: 101 are too many: at most 100") {
		t.Errorf("got %v", err)
	}
	s.Jobs = s.Jobs[1:]
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func TestADeviceIsNamedByTheVerySamePath(t *testing.T) {
	s := DefaultsOfStorage()
	s.Volumes = []string{"device=/dev/vdb"}
	for _, destroys := range [][]string{nil, {"/dev/vdb1"}, {"/dev/VDB"}, {"/dev/./vdb"}, {"vdb"}} {
		s.Destroys = destroys
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "all that is on /dev/vdb would be destroyed") || !strings.Contains(err.Error(), "--i-know-this-destroys /dev/vdb") {
			t.Errorf("%q: got %v", destroys, err)
		}
	}
	s.Destroys = []string{"vde", "/dev/vdb", "/dev/vdb"}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), `"vde" is not a device`) || !strings.Contains(err.Error(), "/dev/vdb is there twice") {
		t.Errorf("got %v", err)
	}
	s.Destroys = []string{"/dev/vdc", "/dev/vdb"}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
