package tool

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

const reporting = " --group_reporting=1 --lat_percentiles=1 --clat_percentiles=0 --percentile_list=50:95:99:99.9"

func TestFioIsCalledAsPeopleCallIt(t *testing.T) {
	published := storage.Job{Name: "randread 512k", Tool: storage.ToolFio, RW: "randread", BS: 512 << 10, Size: 1 << 30, FileSize: 1 << 30, Files: 1, NumJobs: 8, IODepth: 1}
	small := storage.Job{Name: "small files", Tool: storage.ToolFio, RW: "randread", BS: 4096, FileSize: 10 << 20, Size: 1000 << 20, Files: 100, Runtime: time.Minute, TimeBased: true}
	synced := storage.Job{Name: "w", Tool: storage.ToolFio, RW: "write", BS: 4096, Size: 1 << 20, Engine: "libaio", IODepth: 32, Fsync: 64, EndFsync: true, Runtime: 1500 * time.Millisecond}
	at := Place{Program: "/usr/bin/fio", Dir: "/data"}
	for name, tc := range map[string]struct {
		job  storage.Job
		at   func(*Place)
		want string
	}{
		"as published, direct": {published, func(p *Place) { p.Direct, p.Limit = true, time.Minute },
			"--filename=/data/test --size=1073741824 --direct=1 --iodepth=1 --thread --rw=randread --ioengine=psync --bs=524288 --numjobs=8 --randrepeat=1 --runtime=60" + reporting + " --name=randread-512k"},
		"without a limit": {published, func(*Place) {},
			"--filename=/data/test --size=1073741824 --direct=0 --iodepth=1 --thread --rw=randread --ioengine=psync --bs=524288 --numjobs=8 --randrepeat=1" + reporting + " --name=randread-512k"},
		"a hundred small files": {small, func(p *Place) { p.Limit = 30 * time.Second },
			"--directory=/data --nrfiles=100 --filesize=10485760 --file_service_type=sequential --direct=0 --iodepth=1 --thread --rw=randread --ioengine=psync --bs=4096 --numjobs=1 --randrepeat=1 --runtime=30 --time_based" + reporting + " --name=small-files"},
		"a device, with syncs": {synced, func(p *Place) { p.Device, p.Limit = "/dev/tare", time.Minute },
			"--filename=/dev/tare --size=1048576 --direct=0 --iodepth=32 --thread --rw=write --ioengine=libaio --bs=4096 --numjobs=1 --randrepeat=1 --fsync=64 --end_fsync=1 --runtime=1500ms" + reporting + " --name=w"},
	} {
		t.Run(name, func(t *testing.T) {
			p := at
			tc.at(&p)
			args, err := Command(tc.job, p)
			if want := "/usr/bin/fio --output-format=json " + tc.want; err != nil || strings.Join(args, " ") != want {
				t.Errorf("%v\ngot  %s\nwant %s", err, strings.Join(args, " "), want)
			}
		})
	}
}

func TestFiosFilesAreNamedAsFioNamesThem(t *testing.T) {
	at := Place{Program: "/usr/bin/fio", Dir: "/data"}
	files, err := Files(storage.Job{Name: "small files", Tool: storage.ToolFio, BS: 4096, FileSize: 10 << 20, Files: 2, NumJobs: 2}, at)
	want := []File{{"/data/small-files.0.0", 10 << 20}, {"/data/small-files.0.1", 10 << 20}, {"/data/small-files.1.0", 10 << 20}, {"/data/small-files.1.1", 10 << 20}}
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("%v %v, want %v", files, err, want)
	}
	at.Device = "/dev/tare"
	if files, err = Files(storage.Job{Tool: storage.ToolFio, BS: 4096, Size: 1 << 20}, at); err != nil || !slices.Equal(files, []File{{"/dev/tare", 1 << 20}}) {
		t.Errorf("on a device %v %v", files, err)
	}
}

func TestAFioJobThatCannotBeIsRefused(t *testing.T) {
	at := Place{Program: "/usr/bin/fio", Dir: "/data"}
	fine := storage.Job{Name: "x", Tool: storage.ToolFio, RW: "read", BS: 4096, Size: 1 << 20}
	for name, change := range map[string]func(*storage.Job, *Place){
		"no size":                    func(j *storage.Job, _ *Place) { j.Size = 0 },
		"less than a block":          func(j *storage.Job, _ *Place) { j.Size = 4095 },
		"no block":                   func(j *storage.Job, _ *Place) { j.BS = 0 },
		"no end":                     func(j *storage.Job, _ *Place) { j.TimeBased = true },
		"several files on a device":  func(j *storage.Job, p *Place) { j.Files, p.Device = 2, "/dev/tare" },
		"a folder fio reads as two":  func(_ *storage.Job, p *Place) { p.Dir = "/data:/etc" },
		"a folder that is relative":  func(_ *storage.Job, p *Place) { p.Dir = "data" },
		"a folder that leads beyond": func(_ *storage.Job, p *Place) { p.Dir = "/data/../etc" },
		"no program":                 func(_ *storage.Job, p *Place) { p.Program = "" },
		"an unknown tool":            func(j *storage.Job, _ *Place) { j.Tool = "iozone" },
	} {
		j, p := fine, at
		change(&j, &p)
		if args, err := Command(j, p); err == nil {
			t.Errorf("%s: called as %q", name, args)
		}
	}
	if _, err := Command(fine, at); err != nil {
		t.Errorf("what is fine is refused: %v", err)
	}
}

func TestJobNamesBecomeNamesOfFiles(t *testing.T) {
	for name, want := range map[string]string{
		"randread 512k": "randread-512k", "../../etc/passwd": "etc-passwd", "global": "job-global", "Globally": "job-Globally",
		"随机读": "job-", "a:b$c/d": "a-b-c-d", "": "job-", strings.Repeat("x", 99): strings.Repeat("x", 60),
	} {
		if got := jobName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
