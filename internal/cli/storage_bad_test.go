package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// Package tool tests the accepted options of a job file. This test checks that errors are
// reported before anything runs.
func TestMaliciousJobFileIsRefusedBeforeAnythingRuns(t *testing.T) {
	dir := place(t)
	witness := filepath.Join(dir, "witness")
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"a program before the job":         {"[a]\nexec_prerun=touch " + witness + "\n", []string{"line 2", "exec_prerun", "runs a program"}},
		"a command in a number":            {"[a]\nsize=`touch " + witness + "`\n", []string{"line 2"}},
		"control character in a name":      {"[a\x1b[2J]\nrw=read\n", []string{"line 1"}},
		"control character in an option":   {"[a]\nrw=\x1b[2J\n", []string{"line 2"}},
		"file larger than any file system": {"[a]\nrw=write\nsize=9000000T\n", []string{"line 3 of the job file", "it is above 16T"}},
		"too many files":                   {"[a]\nrw=write\nsize=1m\nnrfiles=1000000000\n", []string{"1000000000 files", "too many files"}},
		"job file too large":               {strings.Repeat("# no\n", 1<<18), []string{"1 MiB"}},
		"a binary":                         {"\x7fELF\x02\x01\x01\x00\x00", []string{"line 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			must.Write(t, "my.fio", c.text)
			refuses(t, append([]string{"storage", "host", "--volume", "bind", "--jobfile", "my.fio"}, short...), append(c.says, "--job")...)
			if _, err := os.Stat(witness); err == nil {
				t.Error("its program was run or its file was created")
			}
		})
	}
}

// The job file has a comment, a global section, CRLF line endings, and options that tare
// sets itself. One job has several files. The other job has several processes and a queue.
func TestTypicalJobFileRunsOnEveryTarget(t *testing.T) {
	need.Tool(t, "fio")
	needRunc(t)
	place(t)
	text := "; mine\n[global]\nbs=16k\nioengine=libaio\ndirect=0\npercentile_list=50\n\n[a]\nrw=read\nfilename=x:y\nsize=1m\n" +
		"[b]\nrw=randwrite\nsize=512k\nnumjobs=4\niodepth=8\ngroup_reporting\n"
	must.Write(t, "my.fio", strings.ReplaceAll(text, "\n", "\r\n"))
	code, rec, out, stderr := weighed(t, "host", "runc", "--volume", "bind", "--jobfile", "my.fio", "--details")
	if code != ExitDone || len(rec.Cells) != 2 || !strings.Contains(out, "my, bind, direct: fio") {
		t.Fatalf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
	}
	for _, x := range rec.Cells {
		if x.Reported == nil || x.Reported.Read.Bytes != 1<<20 || x.Reported.Write.Bytes != 2<<20 || !strings.Contains(x.Command, "--direct=1") {
			t.Errorf("%s: %+v, %+v, %s", x.Target, x.Reported, x.Failure, x.Command)
		}
	}
}

func TestJobFileTooLargeForDiskFailsOnlyItsCells(t *testing.T) {
	need.Tool(t, "fio")
	need.Root(t)
	place(t)
	must.Write(t, "huge.fio", "[a]\nrw=write\nsize=10T\n")
	code, rec, out, stderr := weighed(t, "host", "--volume", "bind", "--cache", "direct,buffered", "--jobfile", "huge.fio")
	if code != ExitFailed || len(rec.Cells) != 2 || !strings.Contains(out, "failed 2/2 cells") {
		t.Errorf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
	}
	for _, x := range rec.Cells {
		said := fmt.Sprint(x.Failure)
		if !strings.Contains(said, "files of 10485760 MiB do not fit in 90 %") || !strings.Contains(said, "a smaller --size") {
			t.Errorf("%+v", x.Failure)
		}
	}
}

func TestMissingToolReportsWhatToInstall(t *testing.T) {
	needRunc(t)
	dir := place(t)
	runc := need.Tool(t, "runc")
	bin := filepath.Join(dir, "bin")
	must.OK(t, os.Mkdir(bin, 0o755))
	must.OK(t, os.Symlink(runc, filepath.Join(bin, "runc")))
	t.Setenv("PATH", bin)
	for _, tool := range []string{"fio", "sysbench"} {
		t.Run(tool, func(t *testing.T) {
			refuses(t, append([]string{"storage", "host", "runc", "--tool", tool, "--size", "4M"}, short...), "carry "+tool, "not on PATH", "apt-get install "+tool)
		})
	}
	for name, script := range map[string]string{"a script": "#!/bin/sh\necho fio-3.33\n", "a text file": "fio-3.33\n"} {
		t.Run("fio is "+name, func(t *testing.T) {
			must.OK(t, os.WriteFile(filepath.Join(bin, "fio"), []byte(script), 0o755))
			refuses(t, append([]string{"storage", "host", "runc", "--size", "4M"}, short...), "carry fio", "not an ELF program")
		})
	}
}

// Package plan tests other invalid plans. Package tool tests invalid job options.
func TestStoragePlanIsRestricted(t *testing.T) {
	place(t)
	for name, c := range map[string]struct {
		line string // the seventh line of a storage measure
		says []string
	}{
		"device without consent": {"      volumes: [device=/dev/vda]", []string{"/dev/vda", "--i-know-this-destroys /dev/vda"}},
		"forbidden option":       {`      jobs: [{name: a, options: [{name: x, options: [{name: exec_prerun, value: id}]}]}]`, []string{"exec_prerun", "runs a program"}},
		"path as a section name": {`      jobs: [{name: a, options: [{name: ../x, options: [{name: rw, value: read}]}]}]`, []string{"../x", "it is part of file names"}},
	} {
		t.Run(name, func(t *testing.T) {
			must.Write(t, "mistake.yaml", fmt.Sprintf("version: 1\nname: x\nmeasure:\n  - storage:\n      targets: [host]\n      timeout: 1m\n%s\n", c.line))
			refuses(t, []string{"run", "mistake.yaml", "-q", "-o", "r.jsonl"}, c.says...)
		})
	}
}

// asked returns the options of a command line.
func asked(t *testing.T, o option.Options, args ...string) error {
	t.Helper()
	set := option.Of(o)
	flags := pflag.NewFlagSet("asked", pflag.ContinueOnError)
	set.AddFlags(flags)
	must.OK(t, flags.Parse(args))
	return set.Finish(t.Context())
}

func TestFlagsSelectTheCells(t *testing.T) {
	golden.Lines(t, filepath.Join(testdata, "measured.txt"), func(t *testing.T, line string) (any, error) {
		verb, flags, _ := strings.Cut(line, " ")
		switch verb {
		case "lifecycle":
			l := lifecycle.Defaults()
			err := asked(t, &l, words(flags)...)
			return l.Targets, err
		case "bpf":
			b := bpf.DefaultsOfMemory()
			err := asked(t, &b, words(flags)...)
			return fmt.Sprint("services ", b.Services), err
		}
		s := storage.Defaults()
		err := asked(t, &s, words(flags)...)
		said := fmt.Sprint(s.Cache)
		for _, j := range s.Jobs {
			said += fmt.Sprintf(", %s for %v", j.Name, j.Runtime)
		}
		return said, err
	})
}

func TestStorageRecordHasNoPublishedFigures(t *testing.T) {
	kept := filepath.Join(place(t), "notes.txt")
	must.Write(t, kept, keptNotes)
	ends(t, ExitDone, "", "import", kept, "-o", "kept.jsonl")
	refuses(t, []string{"report", "kept.jsonl", "--against", "published/isulad-2020"}, "--against: ")
}

func TestEmptyImportReportsNoResults(t *testing.T) {
	broken := filepath.Join(place(t), "notes.txt")
	must.Write(t, broken, "99999999999999999999999 bytes (42 GB) copied, 376.446 s, 111 MB/s\n")
	code, _, stderr := tare(t, "import", broken)
	if code != ExitUsage || !strings.Contains(stderr, "no result of a tool in") || !strings.Contains(stderr, "notes.txt:1") || strings.Contains(stderr, "assumed to be writes") || strings.Contains(stderr, "imported:") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
