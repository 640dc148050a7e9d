package tool

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	options "github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

const reporting = " --group_reporting=1 --lat_percentiles=1 --clat_percentiles=0 --percentile_list=50:95:99:99.9"

// Each case has a job and a place: its program, its folder and other properties. The
// results are the command line and the required files.
func TestCommandLinesOfTools(t *testing.T) {
	golden.Cases(t, "testdata/cases/called.txt", func(t *testing.T, input string) string {
		text, place, _ := strings.Cut(input, "\n")
		var j storage.Job
		must.OK(t, options.Unmarshal([]byte(text), &j))
		words := strings.Fields(place)
		at := Place{Program: strings.TrimSuffix(words[0], "none"), Dir: words[1], In: probe.InArgs}
		for _, word := range words[2:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "direct":
				at.Direct = true
			case "device":
				at.Device = value
			case "limit":
				limit := must.Get(time.ParseDuration(value))(t)
				at.Limit = limit
			}
		}
		args, err := Command(j, at)
		if err != nil {
			return err.Error()
		}
		files := must.Get(Files(j, at))(t)
		if len(files) > 4 {
			return fmt.Sprintf("%s\n%d files, %v to %v", strings.Join(args, " "), len(files), files[0], files[len(files)-1])
		}
		return fmt.Sprintf("%s\nfiles %v", strings.Join(args, " "), files)
	})
}

func TestJobNamesBecomeFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"randread 512k": "randread-512k", "../../etc/passwd": "etc-passwd", "global": "job-global", "Globally": "job-Globally",
		"随机读": "job-", "a:b$c/d": "a-b-c-d", "": "job-", strings.Repeat("x", 99): strings.Repeat("x", 60),
	} {
		check.Equal(t, name, jobName(name), want)
	}
}

func TestVersionOutput(t *testing.T) {
	for _, test := range []struct {
		name           string
		exit           int
		stdout, stderr string
		want           string
	}{
		{"fio", 0, "fio-3.33\n", "", "fio-3.33"},
		{"GNU dd: first line", 0, "dd (coreutils) 9.1\nCopyright\n", "", "dd (coreutils) 9.1"},
		{"busybox: version in its usage message", 1, "", "dd: unrecognized option '--version'\nBusyBox v1.35.0 (Debian 1:1.35.0-4) multi-call binary.\n", "BusyBox v1.35.0"},
		{"error message: none", 1, "error 5\n", "", ""},
		{"text without a version: none", 0, "hello\n", "", ""},
		{"too long output: none", 0, strings.Repeat("1", 1000), "", ""},
		{"control characters are escaped", 0, "fio-3\x1b[31m\n", "", `fio-3\x1b[31m`},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Equal(t, "Version", Version(test.exit, test.stdout, test.stderr), test.want)
		})
	}
}

// exampleJobFile is a typical job file.
var exampleJobFile = kept("example.fio")

func TestJobFileIsParsedLikeFio(t *testing.T) {
	got, err := storage.ParseJobFile(exampleJobFile)
	want := []storage.Section{
		{Name: "global", Options: []storage.FioOption{{Name: "direct", Value: "1"}, {Name: "ioengine", Value: "libaio"}, {Name: "iodepth", Value: "16"}, {Name: "size", Value: "1g"}, {Name: "group_reporting"}}},
		{Name: "random read", Options: []storage.FioOption{{Name: "rw", Value: "randread"}, {Name: "bs", Value: "4k"}}},
		{Name: "global", Options: []storage.FioOption{{Name: "runtime", Value: "90s"}, {Name: "time_based"}}},
		{Name: "writers", Options: []storage.FioOption{{Name: "rw", Value: "randwrite"}, {Name: "numjobs", Value: "2"}, {Name: "filename", Value: "a:b"}}},
	}
	check.That(t, err == nil && reflect.DeepEqual(got, want), "%+v %v\nwant %+v", got, err, want)
}

func TestLargeJobFileIsParsed(t *testing.T) {
	long := strings.Repeat("# of which most explains the rest\n", 30_000) + exampleJobFile
	check.Equal(t, fmt.Sprintf("%d bytes", len(long)), len(must.Get(storage.ParseJobFile(long))(t)), 4)
}

// jobOf returns the job of a job file.
func jobOf(t *testing.T, text string) storage.Job {
	t.Helper()
	sections, err := storage.ParseJobFile(text)
	must.That(t, err == nil, "%q: %v", text, err)
	return storage.Job{Name: "file", Tool: storage.ToolFio, Options: sections}
}

func TestTaresOptionsFollowThoseOfEachJob(t *testing.T) {
	j := jobOf(t, exampleJobFile)
	at := Place{Program: "/usr/bin/fio", Dir: "/data", Limit: time.Minute}
	ours := " --direct=0" + reporting + " --runtime=60"
	want := "/usr/bin/fio --output-format=json --name=global --directory=/data --ioengine=libaio --iodepth=16 --size=1g --name=random read --directory=/data --rw=randread --bs=4k" + ours +
		" --name=global --directory=/data --runtime=90s --time_based=1 --name=writers --directory=/data --rw=randwrite --numjobs=2 --filename=a:b" + ours
	check.Equal(t, "command", strings.Join(must.Get(Command(j, at))(t), " "), want)
	files, err := Files(j, at)
	check.That(t, err == nil && reflect.DeepEqual(files, []File{{"/data/random read.0.0", 1 << 30}, {"/data/a", 512 << 20}, {"/data/b", 512 << 20}}),
		"%v %v", files, err)
}

// The size of a job's writes must be known before the run, or they may fill the disk.
func TestJobFileSizesAreKnown(t *testing.T) {
	// The claims list the location of the files.
	golden.Cases(t, "testdata/cases/rooms.txt", func(t *testing.T, lines string) string {
		at := Place{Program: "/f", Dir: "/data"}
		if strings.HasSuffix(t.Name(), "/dev/tare") {
			at.Device = "/dev/tare"
		}
		var out []string
		for line := range strings.Lines(lines) {
			options := strings.NewReplacer(" ", "\n", "-", "").Replace(strings.TrimSpace(line))
			if files, err := Files(jobOf(t, "[a]\nrw=write\n"+options+"\n"), at); err != nil {
				out = append(out, err.Error())
			} else {
				out = append(out, fmt.Sprint(files))
			}
		}
		return strings.Join(out, "\n")
	})
}

func TestJobFileOnADeviceUsesOnlyTheDevice(t *testing.T) {
	at := Place{Program: "/f", Device: "/dev/tare", Dir: "/data"}
	args, err := Command(jobOf(t, "[a]\nfilename=mine\nsize=1m\n"), at)
	if joined := strings.Join(args, " "); err != nil || !strings.Contains(joined, "--filename=/dev/tare") || strings.Contains(joined, "mine") || strings.Contains(joined, "/data") {
		t.Errorf("%s %v", joined, err)
	}
	for _, text := range []string{"[a]\nrw=read\n", "[a]\nsize=1m\nnrfiles=2\n", "[a]\nsize=1m\ntime_based\n"} {
		args, err := Command(jobOf(t, text), at)
		check.That(t, err != nil, "%q runs as %q", text, args)
	}
}

// A job may have options that were not validated by a job file or plan.
func TestUnvalidatedOptionsAreChecked(t *testing.T) {
	at := Place{Program: "/usr/bin/fio", Dir: "/data"}
	of := func(name, value string) storage.Section {
		return storage.Section{Name: "a", Options: []storage.FioOption{{Name: "size", Value: "1m"}, {Name: name, Value: value}}}
	}
	for _, s := range []storage.Section{
		of("filename", "/dev/sda"), of("filename", "a:../b"), of("exec_prerun", "true"), of("ioengine", "exec"), of("directory", "/"),
		of("runtime", "forever"), of("runtime", "1000d"), of("time_based", "a b`"), of("numjobs", "many"),
		{Name: "/dev/sda"}, {Name: "global"}, {Name: "-a"},
	} {
		j := storage.Job{Name: "x", Tool: storage.ToolFio, Options: []storage.Section{s}}
		args, err := Command(j, at)
		check.That(t, err != nil && strings.Contains(err.Error(), `job "x": options: `), "%+v runs as %q, %v", s, args, err)
		files, err := Files(j, at)
		check.That(t, err != nil && strings.Contains(err.Error(), `job "x": options: `), "%+v: files %v, %v", s, files, err)
		o := storage.Defaults()
		o.Jobs = []storage.Job{j}
		_, jobs, err := o.Resolved()
		check.That(t, err != nil, "%+v was resolved to %+v", s, jobs)
	}
	args, err := Command(storage.Job{Name: "x", Tool: storage.ToolFio, Options: []storage.Section{of("runtime", "1d")}}, at)
	check.That(t, err == nil && strings.HasSuffix(strings.Join(args, " "), " --runtime=86400"), "valid options: %q, %v", args, err)
}

func TestJobFileCannotLeaveItsFolderOrRunPrograms(t *testing.T) {
	refused := func(line string) string {
		_, err := storage.ParseJobFile("[global]\nbs=4k\n\n[job]\n" + line + "\nrw=read\n")
		if err == nil || !strings.HasPrefix(err.Error(), "line 5 of the job file: ") || len(err.Error()) > 500 {
			t.Errorf("%.80s: %v", line, err)
			return ""
		}
		return err.Error()
	}
	golden.Cases(t, "testdata/cases/options.txt", func(t *testing.T, lines string) string {
		var out []string
		for line := range strings.SplitSeq(lines, "\n") {
			out = append(out, refused(line))
		}
		return strings.Join(out, "\n")
	})
	for line, says := range map[string]string{
		"[" + strings.Repeat("x", 200) + "]": "a name must have",
		"bs=" + strings.Repeat("4", 5000):    "bytes long",
	} {
		check.Contains(t, fmt.Sprintf("%.80s", line), refused(line), says)
	}
	for text, says := range map[string]string{
		"":                           "no job",
		"[global]\nbs=4k\n":          "no job",
		"bs=4k\n[a]\n":               "line 1 of the job file: \"bs=4k\" is before the first section",
		strings.Repeat("[a]\n", 101): "line 101 of the job file: there are more than 100 sections",
		"[a]\n" + strings.Repeat("bs=4k\n", 1001): "line 1002 of the job file: there are more than 1000 options",
		strings.Repeat("\n", 1<<20+1):             "bytes long",
	} {
		_, err := storage.ParseJobFile(text)
		check.That(t, err != nil && strings.Contains(err.Error(), says), "%.40q: %v; want %q", text, err, says)
	}
}

func FuzzParseJobFile(f *testing.F) {
	f.Add(exampleJobFile)
	f.Add("[a]\nbssplit=4k/50:8k/50\nfilename=x\nruntime=5m\noffset=1m\nsize=10%\n")
	f.Fuzz(func(t *testing.T, text string) {
		sections, err := storage.ParseJobFile(text)
		if err != nil {
			bounded(t, err)
			return
		}
		j := storage.Job{Name: "fuzz", Tool: storage.ToolFio, Options: sections}
		at := Place{Program: "/usr/bin/fio", Dir: "/data", Limit: time.Minute}
		args := must.Get(Command(j, at))(t)
		for _, a := range args[1:] {
			value, _ := strings.CutPrefix(a, "--bssplit=")
			value, _ = strings.CutPrefix(value, "--random_distribution=")
			if a != "--directory=/data" && value == a && strings.Contains(a, "/") || strings.ContainsAny(a, "$\n;#") || strings.Contains(a, "..") || !strings.HasPrefix(a, "--") {
				t.Errorf("unexpected argument %q", a)
			}
		}
		files, err := Files(j, at)
		if err != nil {
			bounded(t, err)
		}
		for _, file := range files {
			check.That(t, strings.HasPrefix(file.Path, "/data/") && !strings.Contains(file.Path, "..") && file.Size > 0, "unexpected file %+v", file)
		}
	})
}
