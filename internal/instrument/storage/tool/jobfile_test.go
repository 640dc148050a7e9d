package tool

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

const exampleJobFile = `; what people have
# in job files
[global]
direct=1
ioengine = libaio   ; inline
iodepth=16
size=1g
group_reporting

[random read]
rw=randread
bs=4k

[global]
runtime=90s
time_based

[writers]
rw=randwrite
numjobs=2
filename=a:b
`

func TestAJobFileIsReadAsFioReadsIt(t *testing.T) {
	got, err := storage.ParseJobFile(exampleJobFile)
	want := []storage.Section{
		{Name: "global", Options: []storage.FioOption{{Name: "direct", Value: "1"}, {Name: "ioengine", Value: "libaio"}, {Name: "iodepth", Value: "16"}, {Name: "size", Value: "1g"}, {Name: "group_reporting"}}},
		{Name: "random read", Options: []storage.FioOption{{Name: "rw", Value: "randread"}, {Name: "bs", Value: "4k"}}},
		{Name: "global", Options: []storage.FioOption{{Name: "runtime", Value: "90s"}, {Name: "time_based"}}},
		{Name: "writers", Options: []storage.FioOption{{Name: "rw", Value: "randwrite"}, {Name: "numjobs", Value: "2"}, {Name: "filename", Value: "a:b"}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v\nwant %+v", got, err, want)
	}
}

func TestAJobFileOfUpToAMebibyteIsRead(t *testing.T) {
	long := strings.Repeat("# of which most explains the rest\n", 30_000) + exampleJobFile
	if got, err := storage.ParseJobFile(long); err != nil || len(got) != 4 {
		t.Errorf("%d bytes: %+v, %v", len(long), got, err)
	}
}

// jobOf is a job by its job file.
func jobOf(t *testing.T, text string) storage.Job {
	t.Helper()
	sections, err := storage.ParseJobFile(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return storage.Job{Name: "file", Tool: storage.ToolFio, Options: sections}
}

func TestAJobFileRunsWithWhatTareSetsAtTheEndOfEachJob(t *testing.T) {
	j := jobOf(t, exampleJobFile)
	at := Place{Program: "/usr/bin/fio", Dir: "/data", Limit: time.Minute}
	ours := " --direct=0" + reporting + " --runtime=60"
	want := "/usr/bin/fio --output-format=json --name=global --directory=/data --ioengine=libaio --iodepth=16 --size=1g --name=random read --directory=/data --rw=randread --bs=4k" + ours +
		" --name=global --directory=/data --runtime=90s --time_based=1 --name=writers --directory=/data --rw=randwrite --numjobs=2 --filename=a:b" + ours
	if args, err := Command(j, at); err != nil || strings.Join(args, " ") != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, strings.Join(args, " "), want)
	}
	files, err := Files(j, at)
	if err != nil || !reflect.DeepEqual(files, []File{{"/data/random read.0.0", 1 << 30}, {"/data/a", 512 << 20}, {"/data/b", 512 << 20}}) {
		t.Errorf("%v %v", files, err)
	}
}

// What a job writes has to be known before, or it fills the disk.
func TestHowMuchRoomAJobFileTakesIsKnown(t *testing.T) {
	files := func(lines string, at Place) ([]File, error) {
		return Files(jobOf(t, "[a]\nrw=write\n"+lines), at)
	}
	for lines, want := range map[string][]File{
		"size=400MiB\n":            {{"/data/a.0.0", 400e6}},
		"size=400MB\n":             {{"/data/a.0.0", 400 << 20}},
		"size=1m\noffset=2MB\n":    {{"/data/a.0.0", 3 << 20}},
		"size=1m\nnrfiles=2\n":     {{"/data/a.0.0", 512 << 10}, {"/data/a.0.1", 512 << 10}},
		"filesize=1m\nnumjobs=2\n": {{"/data/a.0.0", 1 << 20}, {"/data/a.1.0", 1 << 20}},
		"filename=x\nsize=1m\nnumjobs=4\noffset_increment=1g\noffset=1k\n": {{"/data/x", 3<<30 + 1<<20 + 1<<10}},
	} {
		if got, err := files(lines, Place{Program: "/f", Dir: "/data"}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q has the files %v, %v; want %v", lines, got, err, want)
		}
	}
	device := Place{Program: "/f", Dir: "/data", Device: "/dev/tare"}
	if got, err := files("size=1m\nnumjobs=3\noffset_increment=2m\n", device); err != nil || !reflect.DeepEqual(got, []File{{"/dev/tare", 5 << 20}}) {
		t.Errorf("on a device: %v, %v", got, err)
	}
	for lines, why := range map[string]string{
		"":                                      "write size=1G",
		"size=0\n":                              "write size=1G",
		"size=1m\nnumjobs=100001\n":             "too many files",
		"size=1m\nnrfiles=1000000000\n":         "1000000000 files each are too many files",
		"size=1m\nnumjobs=1000\nnrfiles=1000\n": "too many files",
		"nrfiles=1000000000\n":                  "too many files", // before its size is asked for
		"size=1m\nfilename=x\nnrfiles=1000000000\n": "too many files",
		"size=1k\nnrfiles=5000\n":                   "no byte for each of 5000 files",
		"io_size=1g\n":                              "write size=1G",
		"size=16T\noffset=1\n":                      "beyond 16T",
		"size=1m\nnumjobs=9\noffset_increment=8T\n": "beyond 16T",
	} {
		if got, err := files(lines, device); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), `section "a"`) {
			t.Errorf("%q has the files %v, %v; want %q", lines, got, err, why)
		}
	}
}

func TestAJobFileOnADeviceHasNoOtherFile(t *testing.T) {
	at := Place{Program: "/f", Device: "/dev/tare", Dir: "/data"}
	args, err := Command(jobOf(t, "[a]\nfilename=mine\nsize=1m\n"), at)
	if joined := strings.Join(args, " "); err != nil || !strings.Contains(joined, "--filename=/dev/tare") || strings.Contains(joined, "mine") || strings.Contains(joined, "/data") {
		t.Errorf("%s %v", joined, err)
	}
	for _, text := range []string{"[a]\nrw=read\n", "[a]\nsize=1m\nnrfiles=2\n", "[a]\nsize=1m\ntime_based\n"} {
		if args, err := Command(jobOf(t, text), at); err == nil {
			t.Errorf("%q runs as %q", text, args)
		}
	}
}

// A job may come with options that no job file and no plan was read for.
func TestOptionsThatNobodyCheckedBeforeAreHeldToTheSame(t *testing.T) {
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
		if args, err := Command(j, at); err == nil || !strings.Contains(err.Error(), `job "x": options: `) {
			t.Errorf("%+v runs as %q, %v", s, args, err)
		}
		if files, err := Files(j, at); err == nil || !strings.Contains(err.Error(), `job "x": options: `) {
			t.Errorf("%+v has the files %v, %v", s, files, err)
		}
		o := storage.Defaults()
		o.Jobs = []storage.Job{j}
		if _, jobs, err := o.Resolved(); err == nil {
			t.Errorf("%+v is resolved to %+v", s, jobs)
		}
	}
	if args, err := Command(storage.Job{Name: "x", Tool: storage.ToolFio, Options: []storage.Section{of("runtime", "1d")}}, at); err != nil || !strings.HasSuffix(strings.Join(args, " "), " --runtime=86400") {
		t.Errorf("what is allowed: %q, %v", args, err)
	}
}

func TestAJobFileCannotLeaveItsFolderOrRunPrograms(t *testing.T) {
	for line, says := range map[string]string{
		"filename=/dev/sda":                  "without /",
		"filename=../other":                  "without /",
		"filename=a:/etc/passwd":             "without /",
		"filename=-":                         "no name of a file",
		"filename=.hidden":                   "no name of a file",
		"directory=/":                        "folder of tare's own",
		"directory=here":                     "folder of tare's own",
		"opendir=/etc":                       "folder of tare's own",
		"filename_format=../$jobname":        "folder of tare's own",
		"exec_prerun=rm -rf /":               "runs a program",
		"exec_postrun=true":                  "runs a program",
		"include other.fio":                  "runs a program or reads another file",
		"ioengine=external:/tmp/evil.so":     "without /",
		"ioengine=exec":                      "no engine for files",
		"ioengine=net":                       "no engine for files",
		"ioengine=filecreate":                "no engine for files",
		"write_bw_log=x":                     "files on the side",
		"write_iolog=x":                      "files on the side",
		"log_avg_msec=10":                    "files on the side",
		"read_iolog=x":                       "replays",
		"replay_redirect=/dev/sda":           "replays",
		"rw=randtrim":                        "write read, write",
		"size=$mb_memory":                    "and $",
		"size=(4*1024)":                      "a number or a plain name",
		"bs=`id`":                            "a number or a plain name",
		"stonewall":                          "not one figure",
		"unified_rw_reporting=1":             "compared one by one",
		"fill_device=1":                      "lays out the files",
		"hostname=example.org":               "the network",
		"verify_state_load=1":                "not among those",
		"aux-path=/tmp":                      "not among those",
		"mem=mmap:/tmp/x":                    "not among those",
		"buffer_pattern='/etc/shadow'":       "not among those",
		"runtime=forever":                    "no time such as",
		"size=80%":                           "a percentage",
		"size=1g-2g":                         "not one size",
		"filesize=1m-2m":                     "not one size",
		"io_size=1.5g":                       "not one size",
		"offset=50%":                         "a percentage",
		"offset_increment=1z":                "not one size",
		"size":                               "not one size",
		"numjobs=0x4":                        "a whole number",
		"nrfiles=many":                       "a whole number",
		"nrfiles=2000000000":                 "a whole number from 1 to 100000",
		"random_distribution=zoned:60/..":    "without /",
		"DIRECT=1":                           "not among those",
		"[next":                              "it has no ]",
		"[../x]":                             "files are named by it",
		"[ends with.]":                       "files are named by it",
		"[globally]":                         "global section",
		"[]":                                 "a name has",
		"[" + strings.Repeat("x", 200) + "]": "a name has",
		"bs=" + strings.Repeat("4", 5000):    "bytes long",
	} {
		_, err := storage.ParseJobFile("[global]\nbs=4k\n\n[job]\n" + line + "\nrw=read\n")
		if err == nil || !strings.HasPrefix(err.Error(), "line 5 of the job file: ") || !strings.Contains(err.Error(), says) || len(err.Error()) > 500 {
			t.Errorf("%.80s: %v; want line 5 and %q", line, err, says)
		}
	}
	for text, says := range map[string]string{
		"":                           "no job",
		"[global]\nbs=4k\n":          "no job",
		"bs=4k\n[a]\n":               "line 1 of the job file: \"bs=4k\" stands before",
		strings.Repeat("[a]\n", 101): "line 101 of the job file: there are more than 100 sections",
		"[a]\n" + strings.Repeat("bs=4k\n", 1001): "line 1002 of the job file: there are more than 1000 options",
		strings.Repeat("\n", 1<<20+1):             "bytes long",
	} {
		if _, err := storage.ParseJobFile(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v; want %q", text, err, says)
		}
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
		args, err := Command(j, at)
		if err != nil {
			t.Fatalf("what was read cannot be run: %v", err)
		}
		for _, a := range args[1:] {
			value, _ := strings.CutPrefix(a, "--bssplit=")
			value, _ = strings.CutPrefix(value, "--random_distribution=")
			if a != "--directory=/data" && value == a && strings.Contains(a, "/") || strings.ContainsAny(a, "$\n;#") || strings.Contains(a, "..") || !strings.HasPrefix(a, "--") {
				t.Errorf("an argument %q", a)
			}
		}
		files, err := Files(j, at)
		if err != nil {
			bounded(t, err)
		}
		for _, file := range files {
			if !strings.HasPrefix(file.Path, "/data/") || strings.Contains(file.Path, "..") || file.Size <= 0 {
				t.Errorf("a file %+v", file)
			}
		}
	})
}
