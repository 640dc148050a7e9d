package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAnEvilJobFileIsRefusedByLineBeforeAnythingRuns(t *testing.T) {
	dir := place(t)
	witness := filepath.Join(dir, "witness")
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"a file of the machine's":          {"[a]\nrw=write\nfilename=/etc/passwd\n", []string{"line 3", "/"}},
		"a file of the machine's, hidden":  {"[a]\nrw=write\nfilename=a:/etc/passwd\n", []string{"line 3", "/"}},
		"a file above its folder":          {"[a]\nfilename=../a\n", []string{"line 2", ".."}},
		"a program before the job":         {"[a]\nexec_prerun=touch " + witness + "\n", []string{"line 2", "exec_prerun", "runs a program"}},
		"a program after it":               {"[global]\nexec_postrun=touch " + witness + "\n[a]\n", []string{"line 2", "runs a program"}},
		"a folder above tare's":            {"[a]\ndirectory=..\n", []string{"line 2", "directory", "folder of tare's own"}},
		"another file's options":           {"[a]\nrw=read\n\ninclude /etc/passwd\n", []string{"line 4", "include"}},
		"a library of its own":             {"[a]\nioengine=external:" + witness + "\n", []string{"line 2"}},
		"a log on the side":                {"[a]\nwrite_bw_log=" + witness + "\n", []string{"line 2", "on the side"}},
		"a command in a number":            {"[a]\nsize=`touch " + witness + "`\n", []string{"line 2"}},
		"a name that leaves the folder":    {"[../../a]\nrw=read\n", []string{"line 1", "files are named by it"}},
		"a name with a control sign":       {"[a\x1b[2J]\nrw=read\n", []string{"line 1"}},
		"an option with a control sign":    {"[a]\nrw=\x1b[2J\n", []string{"line 2"}},
		"a file beyond any file system":    {"[a]\nrw=write\nsize=9000000T\n", []string{"line 3 of the job file", "it is above 16T"}},
		"a size beyond any number":         {"[a]\nrw=write\nsize=99999999999999999999999\n", []string{"line 3 of the job file", "is not one size"}},
		"more files than a file system":    {"[a]\nrw=write\nsize=1m\nnrfiles=1000000000\n", []string{"1000000000 files", "too many files"}},
		"more processes than a machine":    {"[a]\nrw=read\nsize=1m\nnumjobs=100000000\n", []string{"100000000 threads", "too many files"}},
		"a line without an end":            {"[a]\nsize=" + strings.Repeat("1", 1<<16) + "\n", []string{"line 2", "bytes long"}},
		"more than can be read":            {strings.Repeat("# no\n", 1<<18), []string{"1 MiB"}},
		"no job":                           {"[global]\nrw=read\n", []string{"no job"}},
		"nothing":                          {"", []string{"no job"}},
		"a binary":                         {"\x7fELF\x02\x01\x01\x00\x00", []string{"line 1"}},
		"an option before the first job":   {"rw=read\n[a]\n", []string{"line 1", "before the first section"}},
		"an option that fio does not know": {"[a]\nspeed=full\n", []string{"line 2", "speed"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile("my.fio", []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			refuses(t, append([]string{"storage", "host", "--volume", "bind", "--jobfile", "my.fio"}, short...), append(c.says, "--job")...)
			if _, err := os.Stat(witness); err == nil {
				t.Error("its program was run, or its file made")
			}
		})
	}
}

func TestWhatIsNoJobFileIsRefusedAndNotWaitedFor(t *testing.T) {
	dir := place(t)
	if err := unix.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a pipe": "pipe", "a folder": dir, "a device without end": "/dev/zero", "nothing": "none.fio"} {
		t.Run(name, func(t *testing.T) {
			refuses(t, append([]string{"storage", "host", "--jobfile", path}, short...), "--jobfile", path)
		})
	}
	t.Run("jobs beside it", func(t *testing.T) {
		refuses(t, append([]string{"storage", "host", "--jobfile", "x.fio", "--bs", "4k"}, short...), "--jobfile", "leave out", "--bs")
	})
}

// With a comment, a global section, line ends of another system, two jobs, of which one
// has several files and the other several processes and a queue, and options that tare
// sets itself.
func TestAJobFileThatPeopleHaveRunsOnEveryTarget(t *testing.T) {
	needRunc(t)
	place(t)
	text := "; mine\n[global]\nbs=16k\nioengine=libaio\ndirect=0\npercentile_list=50\n\n[a]\nrw=read\nfilename=x:y\nsize=1m\n" +
		"[b]\nrw=randwrite\nsize=512k\nnumjobs=4\niodepth=8\ngroup_reporting\n"
	if err := os.WriteFile("my.fio", []byte(strings.ReplaceAll(text, "\n", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	code, rec, out, stderr := weighed(t, "host", "runc", "--volume", "bind", "--jobfile", "my.fio")
	if code != ExitDone || len(rec.Cells) != 2 || !strings.Contains(out, "my, bind, direct: fio") {
		t.Fatalf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
	}
	for _, x := range rec.Cells {
		if x.Reported == nil || x.Reported.Read.Bytes != 1<<20 || x.Reported.Write.Bytes != 2<<20 || !strings.Contains(x.Command, "--direct=1") {
			t.Errorf("%s: %+v, %+v, %s", x.Target, x.Reported, x.Failure, x.Command)
		}
	}
}

func TestAJobFileThatNoDiskHoldsFailsItsCellsOnly(t *testing.T) {
	needRoot(t)
	place(t)
	if err := os.WriteFile("huge.fio", []byte("[a]\nrw=write\nsize=10T\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, rec, out, stderr := weighed(t, "host", "--volume", "bind", "--cache", "direct,buffered", "--jobfile", "huge.fio")
	if code != ExitFailed || len(rec.Cells) != 2 || !strings.Contains(out, "failed 2/2 cells") || strings.Count(stderr, "tare: the files of job huge are 10240 GiB") != 1 {
		t.Errorf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
	}
	for _, x := range rec.Cells {
		if x.Failure == nil || !strings.Contains(x.Failure.Detail, "files of 10485760 MiB do not fit in 90 %") {
			t.Errorf("%+v", x.Failure)
		}
	}
}

func TestAToolThatIsNotHereSaysWhatToInstall(t *testing.T) {
	needRunc(t)
	dir := place(t)
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(runc, filepath.Join(bin, "runc")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	for _, tool := range []string{"fio", "sysbench"} {
		t.Run(tool, func(t *testing.T) {
			refuses(t, append([]string{"storage", "host", "runc", "--tool", tool, "--size", "4M"}, short...), "carry "+tool, "none on PATH", "apt-get install "+tool)
		})
	}
	for name, script := range map[string]string{"a script": "#!/bin/sh\necho fio-3.33\n", "no program at all": "fio-3.33\n"} {
		t.Run("fio is "+name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(bin, "fio"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			refuses(t, append([]string{"storage", "host", "runc", "--size", "4M"}, short...), "carry fio", "no ELF program")
		})
	}
}

func TestAMistakeInAStoragePlanIsToldByLineAndColumn(t *testing.T) {
	place(t)
	for name, c := range map[string]struct {
		line string // the seventh, of a storage measure
		says []string
	}{
		"an unknown setting":           {"      volume: [bind]", []string{"mistake.yaml:7:7:", "volume"}},
		"an unknown volume":            {"      volumes: [bind, floppy]", []string{"mistake.yaml:7:23:", "floppy", "rootfs"}},
		"an unknown cache":             {"      cache: [lukewarm]", []string{"mistake.yaml:7:15:", "lukewarm", "buffered"}},
		"a size that is none":          {"      jobs: [{name: a, rw: read, size: big}]", []string{"mistake.yaml:7:40:", "big"}},
		"a job that fio does not have": {"      jobs: [{name: a, rw: jump}]", []string{"mistake.yaml:7:", "jump"}},
		"an unknown tool":              {"      jobs: [{name: a, rw: read, tool: hdparm}]", []string{"mistake.yaml:7:", "hdparm", "sysbench"}},
		"two jobs of one name":         {"      jobs: [{name: a, rw: read}, {name: a, rw: write}]", []string{"mistake.yaml:7:", "a"}},
		"no rounds":                    {"      rounds: 0", []string{"mistake.yaml:7:15:", "0"}},
		"a scale that is none":         {"      scale: -1", []string{"mistake.yaml:7:14:", "scale"}},
		"a time without a unit":        {"      settle: 5", []string{"mistake.yaml:7:15:", "5"}},
		"a device nobody gave away":    {"      volumes: [device=/dev/vda]", []string{"/dev/vda", "--i-know-this-destroys /dev/vda"}},
		"a plan that gives one away":   {"      i_know_this_destroys: [/dev/vda]", []string{"mistake.yaml:7:", "a plan cannot give a device away"}},
		"a job file's evil option":     {`      jobs: [{name: a, options: [{name: x, options: [{name: exec_prerun, value: id}]}]}]`, []string{"exec_prerun", "runs a program"}},
		"a job file's evil section":    {`      jobs: [{name: a, options: [{name: ../x, options: [{name: rw, value: read}]}]}]`, []string{"../x", "files are named by it"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("version: 1\nname: x\nmeasure:\n  - storage:\n      targets: [host]\n      timeout: 1m\n%s\n", c.line)
			if err := os.WriteFile("mistake.yaml", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			refuses(t, []string{"run", "mistake.yaml", "-q", "-o", "r.jsonl"}, c.says...)
		})
	}
}
