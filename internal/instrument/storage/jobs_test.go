package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"

	"github.com/tare-bench/tare/record"
)

func TestParseVolume(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/volumes.txt", func(t *testing.T, text string) (any, error) {
		v, err := ParseVolume(text)
		check.That(t, err == nil || v == (Volume{}), "%q is refused, but returns %+v", text, v)
		return v, err
	})
	tooLong := "device=/dev/" + long(4_096)
	_, err := ParseVolume(tooLong)
	check.Error(t, err, "at most 4095 are allowed")
}

// The meaning of each value in fio 3.33 was determined from the files that it created.
func TestSizesAndTimesMatchFio(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/sizes.txt", func(t *testing.T, text string) (any, error) {
		switch {
		case strings.Contains(t.Name(), "times"):
			return ParseFioTime(text)
		case strings.Contains(t.Name(), "fio's"):
			return ParseFioSize(text)
		}
		n, err := parseSize(text)
		again, wrong := parseSize(FormatSize(n))
		check.That(t, err != nil || wrong == nil && again == n, "%d is written %s, which is %d, %v", n, FormatSize(n), again, wrong)
		return n, err
	})
	for bytes, want := range map[int64]string{512: "512", 1000: "1000", 1 << 10: "1k", 1536 << 10: "1536k", 1 << 30: "1G", 5 << 40: "5T", 0: "0"} {
		check.Equal(t, bytes, FormatSize(bytes), want)
	}
}

func TestJobNameHasDirectionAndBlockSize(t *testing.T) {
	t.Parallel()
	o, err := asked("--jobs", "randread, rndrw", "--bs", "512k, 4k", "--size", "1G")
	want := []Job{
		{Name: "randread 512k", Tool: ToolFio, RW: RWRandRead, BS: 512 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "randread 4k", Tool: ToolFio, RW: RWRandRead, BS: 4 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "rndrw 512k", Tool: ToolFio, RW: RWRandRW, BS: 512 << 10, Size: 1 << 30, NumJobs: 8},
		{Name: "rndrw 4k", Tool: ToolFio, RW: RWRandRW, BS: 4 << 10, Size: 1 << 30, NumJobs: 8},
	}
	check.That(t, err == nil && reflect.DeepEqual(o.Jobs, want), "%+v, %v", o.Jobs, err)
	for args, want := range map[string]string{
		"--jobs= --tool=dd": `--jobs: "" is not a job: write randread, read`, "--jobs=randrw": `--jobs: "randrw" is not a job`,
		"--jobs=read,read": `--jobs: "read 512k" is there twice`, "--tool=dd --jobs=randread": "dd is sequential",
		"--tool=iozone": "--tool: unknown tool", "--bs=": "is not a size", "--bs=4k,4096": "--bs: 4k is there twice", "--bs=1000": "--bs: 1000 bytes are not a block size", "--bs=2G": "--bs: 2147483648 bytes are not a block size",
	} {
		_, err := asked(strings.Fields(args)...)
		check.That(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", args, err)
	}
}

// asked returns the options of a command line.
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

// Package plan tests invalid plan files. This test has invalid options that only a program
// can create, and valid options.
func TestJobOptionsAreValidated(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/jobs.txt", func(t *testing.T, text string) (any, error) {
		var j Job
		must.OK(t, option.Unmarshal([]byte(text), &j))
		return "a job", option.Check(&j)
	})
	fio := func(name string, sections ...Section) Job { return Job{Name: name, Tool: ToolFio, Options: sections} }
	for want, j := range map[string]Job{
		`"a\xff" is not one line`:                   fio("a\xff"),
		"101 characters long":                       fio(strings.Repeat("ä", 101)),
		"options: 101 sections are too":             fio("a", make([]Section, 101)...),
		"options: there are more than 1000 options": fio("a", Section{"a", make([]FioOption, 1001)}),
		`cannot be used: it is 5000 bytes`:          fio("a", Section{"s", []FioOption{{"bs", long(5000)}}}),
	} {
		check.Error(t, option.Check(&j), want)
	}
}

func TestDeviceMustBeNamedByTheSamePath(t *testing.T) {
	t.Parallel()
	s := Defaults()
	s.Volumes = []string{"device=/dev/vdb"}
	for _, destroys := range [][]string{nil, {"/dev/vdb1"}, {"/dev/VDB"}, {"/dev/./vdb"}, {"vdb"}} {
		s.Destroys = destroys
		if err := option.Check(&s); err == nil || !strings.Contains(err.Error(), "everything on /dev/vdb would be destroyed") || !strings.Contains(err.Error(), "--i-know-this-destroys /dev/vdb") {
			t.Errorf("%q: got %v", destroys, err)
		}
	}
	s.Destroys = []string{"vde", "/dev/vdb", "/dev/vdb"}
	if err := option.Check(&s); err == nil || !strings.Contains(err.Error(), `"vde" is not a device`) || !strings.Contains(err.Error(), "/dev/vdb is there twice") {
		t.Errorf("got %v", err)
	}
	s.Destroys = []string{"/dev/vdc", "/dev/vdb"}
	check.Error(t, option.Check(&s), "")
}

func TestResolvedJobHasAllDefaults(t *testing.T) {
	t.Parallel()
	// The inputs are a scale and a job.
	golden.Cases(t, "testdata/resolved.txt", func(t *testing.T, input string) string {
		s := Defaults()
		scale, text, _ := strings.Cut(input, "\n")
		s.Jobs = make([]Job, 1)
		must.OK(t, json.Unmarshal([]byte(scale), &s.Scale))
		must.OK(t, option.Unmarshal([]byte(text), &s.Jobs[0]))
		must.OK(t, option.Check(&s))
		volumes, jobs, err := s.Resolved()
		must.That(t, err == nil && len(jobs) == 1 && len(volumes) == len(s.Volumes), "%d volumes: got jobs %+v, %v", len(volumes), jobs, err)
		check.Error(t, option.Check(&jobs[0]), "")
		check.Equal(t, "resolved twice", must.Get(jobs[0].resolved(1))(t), jobs[0])
		return string(must.JSON(t, jobs[0]))
	})
}

func TestJobWithoutSizeIsTimeBased(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]Job{
		"":                               {RW: RWRandRead, Size: 256 << 20, Runtime: 1500 * time.Millisecond, TimeBased: true},
		"--bs=4k":                        {RW: RWRandRead, BS: 4 << 10, Size: 256 << 20, Runtime: 1500 * time.Millisecond, TimeBased: true},
		"--runtime-limit=9s --numjobs=8": {RW: RWRandRead, Size: 256 << 20, Runtime: 9 * time.Second, TimeBased: true},
		"--size=1G":                      {RW: RWRandRead, Size: 1 << 30},
		"--jobs=plan":                    {RW: RWRandRead, Size: 1 << 30},
		"--tool=sysbench":                {RW: RWRandRW, Size: 1 << 30, Runtime: 10 * time.Second},
	} {
		o, err := asked(strings.Fields(args)...)
		must.OK(t, err)
		j := &o.Jobs[0]
		check.Equal(t, args, Job{RW: j.RW, BS: want.BS, Size: j.Size, Runtime: j.Runtime, TimeBased: j.TimeBased}, want)
	}
}

func TestDefaultRoundsDependOnComparisons(t *testing.T) {
	t.Parallel()
	o := Defaults()
	for targets, want := range map[int]int{1: 6, 2: 7, 3: 8, 5: 9} {
		check.Equal(t, fmt.Sprintf("%d targets", targets), o.Enough(o.Rounds, o.Comparisons(targets)), want)
	}
	check.Equal(t, "requested", o.Enough(3, o.Comparisons(5)), 3)
}

func TestTooLargeScaleIsRefused(t *testing.T) {
	t.Parallel()
	s := Defaults()
	s.Scale, s.Jobs[1].Size = 1000, 16<<40
	check.Error(t, option.Check(&s), `jobs: "write 512k": with a scale of 1000 its files exceed 16T`)
	_, _, err := s.Resolved()
	check.That(t, err != nil, "options with a too large scale were resolved")
}

func TestJobFileIsNotScaled(t *testing.T) {
	t.Parallel()
	s := Defaults()
	s.Jobs = []Job{{Name: "file", Tool: ToolFio, Options: []Section{{"a", []FioOption{{"size", "1g"}}}}}}
	_, jobs, err := s.Resolved()
	check.That(t, err == nil && reflect.DeepEqual(jobs, s.Jobs), "without a scale: %+v, %v", jobs, err)
	s.Scale = 0.5
	check.Error(t, option.Check(&s), "a job file is not scaled")
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
		again, wrong := parseVolumes(strings.Split(v.Name, ","))
		must.That(t, len(wrong) == 0 && len(again) == 1 && again[0] == v, "%+v parsed as a list: %+v, %v", v, again, wrong)
		must.That(t, !strings.ContainsAny(s, ",\n \x00") && !strings.Contains(v.Source, "/../") &&
			(v.Kind == record.VolumeDevice) == strings.HasPrefix(v.Source, "/dev/"), "%+v", v)
	})
}
