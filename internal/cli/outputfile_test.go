package cli

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/imagetest"
	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestOutputKeepsForeignFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		is    func(t *testing.T, path string)
		force bool
		says  string // the expected error, "" if the text is written
	}{
		"a missing file is created":              {func(*testing.T, string) {}, false, ""},
		"an existing file is kept":               {holds("theirs"), false, "exists; name another file with -o, or replace it with --force"},
		"force replaces a file":                  {holds("theirs"), true, ""},
		"a record is kept, even with force":      {holds(`{"type":"header","schema":1}` + "\n"), true, "is a record and is not overwritten"},
		"a compressed record is kept":            {holds("\x28\xb5\x2f\xfd rest"), true, "is a record and is not overwritten"},
		"a folder is kept":                       {folder, true, "is a folder"},
		"a link of the same user is followed":    {linkTo("theirs", -1), true, ""},
		"a link of another user is not followed": {linkTo("theirs", 65534), true, "is a link of another user"},
		"a disk is refused":                      {toDisk, true, "is a disk or a socket"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "out")
			test.is(t, path)
			before, _ := os.Readlink(path)
			if strings.Contains(test.says, "another user") {
				for _, args := range [][]string{{"join", "r.jsonl", "-o", path}, {"lifecycle", "host", "--rounds", "1", "-o", path}} {
					refuses(t, args, test.says)
				}
			}
			err := writeOutput(path, []byte("ours"), test.force)
			if test.says != "" {
				check.Error(t, err, test.says)
				return
			}
			must.OK(t, err)
			if after, _ := os.Readlink(path); must.Read(t, path) != "ours" || after != before {
				t.Errorf("content %q, link %q, want link %q", must.Read(t, path), after, before)
			}
		})
	}
}

// TestConcurrentlyCreatedFileIsKept creates the file as late as another program could do
// so during the write.
func TestConcurrentlyCreatedFileIsKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, path string){
		"a file": holds("theirs"), "a folder": folder, "a dangling link": func(t *testing.T, path string) { must.OK(t, os.Symlink("/none", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			err := makeWhole(path, 0o644, renameNew, func(io.Writer) error {
				test(t, path)
				return nil
			})
			check.Error(t, err, "out: file already exists and is not overwritten")
			if all := must.Get(os.ReadDir(dir))(t); len(all) != 1 || all[0].Name() != "out" || all[0].Type().IsRegular() != (name == "a file") {
				t.Errorf("remaining files: %v", all)
			}
		})
	}
}

// TestKilledJoinOrRedactLeavesNoOutputFile kills the commands while they
// read from a pipe that sends one complete record and then blocks.
func TestKilledJoinOrRedactLeavesNoOutputFile(t *testing.T) {
	text := must.Read(t, stored(t, t.TempDir(), "runc", false))
	for _, verb := range []string{"join", "redact"} {
		dir := place(t)
		pipe := filepath.Join(t.TempDir(), "pipe")
		must.OK(t, unix.Mkfifo(pipe, 0o600))
		to := filepath.Join(dir, "to.jsonl")
		cmd, _, stderr := started(t, dir, verb, pipe, "-o", to)
		in := must.Get(os.OpenFile(pipe, os.O_RDWR, 0))(t)
		defer in.Close()
		must.Get(in.WriteString(text))(t)
		await(t, "a part of the record", func() bool {
			parts, _ := filepath.Glob(filepath.Join(dir, ".tare-*", "to.jsonl"))
			return len(parts) == 1
		})
		must.OK(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed above
		if _, err := os.Lstat(to); err == nil {
			t.Errorf("%s left a partial file\n%s", verb, stderr)
		}
		ends(t, ExitUsage, "no record in this folder", "report", dir) // a partial file is not accepted as a record either
	}
}

func TestOutputIsWrittenToFIFOsAndDevices(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fifo")
	must.OK(t, unix.Mkfifo(path, 0o600))
	reader := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer reader.Close()
	must.OK(t, writeOutput(path, []byte("ours"), false))
	text := make([]byte, 10)
	if n, err := reader.Read(text); err != nil || string(text[:n]) != "ours" {
		t.Errorf("read %q from the FIFO: %v", text[:n], err)
	}
	must.OK(t, writeOutput("/dev/null", []byte("ours"), true))
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("/dev/null is %v, %v", info.Mode(), err)
	}
}

func TestReportNeverReplacesItsRecord(t *testing.T) {
	t.Parallel()
	run := stored(t, t.TempDir(), "runc", false)
	before := must.Read(t, run)
	refuses(t, []string{"report", run, "--format", "csv", "-o", run, "--force"}, "is a record and is not overwritten")
	check.Equal(t, "the record has changed", must.Read(t, run), before)
}

func holds(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { must.Write(t, path, text) }
}

func folder(t *testing.T, path string) { must.OK(t, os.Mkdir(path, 0o755)) }

// linkTo creates a symlink to a file with the given text. If owner is negative, the
// current user owns the file.
func linkTo(text string, owner int) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		must.Write(t, path+".real", text)
		must.OK(t, os.Symlink(path+".real", path))
		if owner >= 0 {
			need.Root(t)
			must.OK(t, os.Lchown(path, owner, owner))
		}
	}
}

func toDisk(t *testing.T, path string) {
	node, _ := loopdev.In(t, t.TempDir(), 1<<20)
	must.OK(t, os.Symlink(node, path))
}

func TestSkippedLinesAndWriteErrorsAreReportedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := must.Read(t, stored(t, dir, "docker/runc", false))
	cut := filepath.Join(dir, "cut.jsonl")
	must.Write(t, cut, text[:strings.LastIndex(text, `{"type":"end"`)-20])
	full := filepath.Join(dir, "full.jsonl")
	must.OK(t, os.Symlink("/dev/full", full))
	for _, verb := range []string{"join", "redact"} {
		ends(t, ExitDone, "line is incomplete", verb, cut, "-o", filepath.Join(dir, verb+".jsonl"))
		code, _, stderr := tare(t, verb, cut, "-o", full)
		if code != ExitUsage || strings.Count(stderr, "no space left") != 1 || !strings.Contains(stderr, "nothing was kept") || strings.Contains(stderr, "lines before") {
			t.Errorf("%s to a full disk: exit %d, %s", verb, code, stderr)
		}
		if _, err := os.Lstat(full); err != nil {
			t.Errorf("%s removes a non-regular file: %v", verb, err)
		}
	}
}

func TestImportWriteErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notes, full := filepath.Join(dir, "notes.txt"), filepath.Join(dir, "full.jsonl")
	must.Write(t, notes, keptNotes)
	must.OK(t, os.Symlink("/dev/full", full))
	if _, stderr := ends(t, ExitUsage, "no space left", "import", notes, "-o", full); strings.Count(stderr, "no space left") != 1 {
		t.Error(stderr)
	}
}

func TestDuplicateRunInFileIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, both := stored(t, dir, "runc", false), filepath.Join(dir, "both.jsonl")
	ends(t, ExitDone, "occurs more than once", "join", path, path, "-o", both)
	if _, stderr := ends(t, ExitDone, "", "report", both); strings.Count(stderr, "more than once: it counts once") != 1 {
		t.Error(stderr)
	}
}

func TestWriteErrorNamesTheGivenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none", "x.html")
	if err := writeWhole(path, nil, 0o644, os.Rename); err == nil || !strings.HasPrefix(err.Error(), "open "+path+": no such file") {
		t.Error(err)
	}
	refuses(t, []string{"report", stored(t, t.TempDir(), "runc", false), "--format", "csv", "-o", path}, "no such file or directory; name another file with -o")
}

func TestConcurrentlyWrittenDocumentIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.md")
	must.OK(t, writeNew(path, []byte("theirs")))
	err := writeNew(path, []byte("mine"))
	if text, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "another process that writes a document there") || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}

// keptNotes are typical notes of a user.
const keptNotes = `a run on node 3:
mytest: (g=0): rw=read, bs=512K-512K/512K-512K/512K-512K, ioengine=psync, iodepth=1
mytest: (groupid=0, jobs=8): err= 0: pid=1: Wed
read : io=8192.0MB, bw=749786KB/s, iops=1464, runt= 11188msec
`

func TestImportedNotesBecomeAStorageRecord(t *testing.T) {
	place(t)
	must.Write(t, "notes.txt", keptNotes)
	golden.Lines(t, filepath.Join(testdata, "imported.txt"), func(t *testing.T, line string) (any, error) {
		readFrom(t, "notes.txt")
		out := filepath.Join(t.TempDir(), "r.jsonl")
		printed, _ := ends(t, ExitDone, "record: "+out, append(words(line), "-o", out)...)
		if again, _ := ends(t, ExitDone, "", "report", out); again != printed {
			t.Errorf("report: \n%s\nimport printed\n%s", again, printed)
		}
		rec := recorded(t, out)
		env := rec.Header.Environment
		if rec.ProblemCount != 0 || rec.End == nil || len(rec.Cells) != 1 || env.Kernel != "" || env.CPUs != 0 {
			t.Fatalf("%+v", rec)
		}
		c := rec.Cells[0]
		return fmt.Sprintf("%s of %s, volume %q, cache %q, from %s: %v IOPS read",
			c.Job, c.Target, c.Volume, c.Cache, c.Source, c.Reported.Read.IOPS), nil
	})
}

// readFrom makes a file the standard input of the test.
func readFrom(t *testing.T, path string) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	own := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = own; f.Close() })
}

func TestTwoTextsAreTwoTargetsOfOneRecord(t *testing.T) {
	dir := place(t)
	var args []string
	for _, side := range []string{"host", "kata"} {
		path := filepath.Join(dir, side+".log")
		must.Write(t, path, keptNotes)
		args = append(args, path)
	}
	ends(t, ExitDone, "host|kata", append([]string{"import", "--format", "csv"}, args...)...)
	check.Equal(t, "stored", len(must.Get(filepath.Glob(filepath.Join(dir, "home", "tare", "records", "storage-*.jsonl")))(t)), 1)
}

func TestInvalidImportIsRefusedWithAdvice(t *testing.T) {
	place(t)
	must.Write(t, "notes.txt", keptNotes)
	must.Write(t, "poem.txt", "roses\n")
	must.Write(t, "cut.txt", "read : io=8192.0MB, bw=749786KB/s, iops=14")
	refusals(t, "import")
}

func TestBadTextDoesNotStopImportOfOthers(t *testing.T) {
	dir := must.Get(filepath.Abs(filepath.Join("..", "instrument")))(t)
	place(t)
	bad := filepath.Join(t.TempDir(), "bad.json")
	must.Write(t, bad, `{"results":[{"command":"a","mean":1,"times":[`)
	args := []string{"import", bad, "isula=" + filepath.Join(dir, "lifecycle", "tool", "testdata", "ptcr.txt"), filepath.Join(dir, "lifecycle", "tool", "testdata", "hyperfine-old.json"),
		filepath.Join(dir, "bpf", "tool", "testdata", "fortio.json")}
	_, stderr := ends(t, ExitDone, ",lifecycle,mean-latency,ns,|,lifecycle,latency,ns,|,bpf,requests,1/s,", append(args, "--format", "csv")...)
	if strings.Count(stderr, "record: ") != 2 {
		t.Error(stderr)
	}
	ends(t, ExitDone, "bad.json: 1 of the outputs of hyperfine could not be read", args...)
	refuses(t, append(args, "-o", bad+"l"), "the results need 2 records")
}

func TestUnreadableOutputsAreListedOnRequest(t *testing.T) {
	text := filepath.Join(place(t), "kata.txt")
	const cut, many = "read : io=8192.0MB, bw=749786KB/s, iops=14\n", 30 // a finding lists fewer
	must.Write(t, text, keptNotes+strings.Repeat(cut, many))
	for lines, args := range map[int][]string{0: {"import", text, "--format", "csv"}, many: {"import", "-v", text, "--format", "csv"}} {
		code, _, stderr := tare(t, args...)
		if got := strings.Count(stderr, "kata.txt:"); code != ExitDone || got != lines || strings.Count(stderr, "\nkata.txt:")+strings.Count(stderr[:9], "kata.txt:") != lines {
			t.Errorf("%v: exit %d, %d lines, want %d: %s", args, code, got, lines, stderr)
		}
	}
}

// twoTares creates a fake tare binary per architecture.
func twoTares(t *testing.T, dir string) {
	t.Helper()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		must.OK(t, os.WriteFile(filepath.Join(dir, "tare-"+arch), imagetest.Binary(machine, imagetest.Info(arch)), 0o755))
	}
}

func TestImageReportsMissingPrograms(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	twoTares(t, dir)
	both := "--binary linux/amd64=tare-amd64 --binary linux/arm64=tare-arm64"
	t.Setenv("SOURCE_DATE_EPOCH", "")
	commands(t, "image", nil, "BOTH", both, "GOARCH", runtime.GOARCH)
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	own := "--binary linux/" + runtime.GOARCH + "=tare-" + runtime.GOARCH
	ends(t, ExitDone, "only for "+runtime.GOARCH, words("image -o one.tar --name a.example/b "+own)...)
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	refuses(t, words("image -o no.tar "+both), "SOURCE_DATE_EPOCH")
	if left, _ := filepath.Glob("no*"); len(left) > 0 {
		t.Errorf("left by the failed build: %q", left)
	}
}
