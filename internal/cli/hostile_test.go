package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// wrapper writes a runtime that runs shell lines and then runc. $verb is the operation.
func wrapper(t *testing.T, dir, name, lines string) string {
	t.Helper()
	runc := need.Tool(t, "runc")
	path := filepath.Join(dir, name)
	script := "#!/bin/sh\nif [ \"$1\" = --version ]; then exec " + runc + " --version; fi\nrunc=" + runc + "\nverb=$3\n" + lines + "\nexec " + runc + ` "$@"` + "\n"
	must.OK(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

// times returns the number of latencies and the failures of a target in a record.
func times(t *testing.T, path, name string) (times int, failures []record.Failure) {
	t.Helper()
	rec := recorded(t, path)
	for _, b := range rec.Batches {
		if b.Target != name {
			continue
		}
		for _, s := range b.Samples {
			if s.Failure != nil {
				failures = append(failures, *s.Failure)
			} else {
				times++
			}
		}
	}
	return times, failures
}

func TestRuntimeCrashFailsOnlyItsRounds(t *testing.T) {
	needRunc(t)
	dir := place(t)
	count := filepath.Join(dir, "count")
	path := wrapper(t, dir, "wrapped", fmt.Sprintf(`if [ "$verb" = start ]; then echo x >> %s; [ $(wc -l < %s) -gt 3 ] && exit 9; fi`, count, count))
	ends(t, ExitFailed, "", "lifecycle", "bad="+path, "--rounds", "6", "-o", "r.jsonl")
	rec := loaded(t)
	good, lost := 0, 0
	for _, b := range rec.Batches {
		if b.Op == string(subject.Start) && b.Samples[0].Failure == nil {
			good++
		}
		if b.Op == string(subject.Stop) {
			lost += b.Lost
		}
	}
	check.Equal(t, "successful starts", good, 3)
}

func TestSignalWithHundredLanesSavesAndCleansUp(t *testing.T) {
	needRunc(t)
	for name, c := range map[string]struct {
		signal os.Signal
		lanes  string
	}{"Ctrl-C": {unix.SIGINT, "100"}, "SIGTERM": {unix.SIGTERM, "10"}} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			cmd, stdout, stderr := started(t, dir, "lifecycle", "runc", "-n", c.lanes, "--rounds", "50", "-o", "r.jsonl")
			awaitBatches(t, 2)
			time.Sleep(200 * time.Millisecond) // in the middle of the next batch
			interrupted(t, c.signal, cmd, stdout, stderr)
		})
	}
}

// awaitBatches waits until r.jsonl contains n batches.
func awaitBatches(t *testing.T, n int) {
	t.Helper()
	await(t, fmt.Sprintf("%d batches", n), func() bool {
		b, _ := os.ReadFile("r.jsonl")
		return strings.Count(string(b), `"type":"batch"`) >= n
	})
}

// TestKilledRunIsFoundAndRemoved kills tare in the middle of a batch. Its record must be
// readable. Its leftovers are found by run ID and removed. Those of another run stay.
func TestKilledRunIsFoundAndRemoved(t *testing.T) {
	needRunc(t)
	untouched.Alone(t)
	dir := place(t)
	cmd, _, _ := started(t, dir, "lifecycle", "runc", "-n", "30", "--rounds", "50", "-o", "r.jsonl", "--quiet")
	awaitBatches(t, 3)
	time.Sleep(150 * time.Millisecond)
	rec, code, out := killed(t, cmd)
	if code != ExitDone || len(rec.Batches) < 3 {
		t.Errorf("report: exit %d, %d batches\n%s", code, len(rec.Batches), out)
	}
	removed(t, rec.Header.RunID)
}

// isLeft reports whether a finished run has left anything.
func isLeft(t *testing.T, id string) bool {
	t.Helper()
	left, _, err := workspace.Leftovers(workspace.DefaultRoots())
	must.OK(t, err)
	return slices.ContainsFunc(left, func(l workspace.Leftover) bool { return l.RunID == id })
}

// TestMain makes this binary usable as tare, so tests can kill tare in a separate process.
func TestMain(m *testing.M) {
	if code, handled := load.Main(os.Args[1:]); handled { // a load client or server
		os.Exit(code)
	}
	if os.Getenv("TARE_TEST_AS_MAIN") != "" {
		os.Exit(Main(os.Args[1:], Standard()))
	}
	engines.Main(m)
}

// program copies tare into a folder that every user can access.
func program(t *testing.T, dir string) string {
	t.Helper()
	self := must.Get(os.Executable())(t)
	path := filepath.Join(dir, "tare")
	must.OK(t, os.WriteFile(path, []byte(must.Read(t, self)), 0o755))
	t.Setenv("TARE_TEST_AS_MAIN", "1")
	return path
}

func TestFullDiskEndsTheRunAndKeepsResults(t *testing.T) {
	need.Root(t)
	dir := place(t)
	small := filepath.Join(dir, "small")
	must.OK(t, os.Mkdir(small, 0o755))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16k", "tare-test", small).CombinedOutput(); err != nil {
		t.Skipf("no tmpfs can be mounted here: %s", out)
	}
	defer exec.Command("umount", small).Run()
	out, _ := ends(t, ExitUsage, "no space left|r.jsonl", "lifecycle", "host", "--rounds", "200", "-o", filepath.Join(small, "r.jsonl"))
	if !strings.Contains(out, "host") || !strings.Contains(out, "start") {
		t.Errorf("the measured results are not shown:\n%s", out)
	}
	if n, _ := times(t, filepath.Join(small, "r.jsonl"), "host"); n == 0 {
		t.Error("the written record is unreadable")
	}
}

// TestFoldersBelowAFolderOfAnotherUserAreRefused makes another user the owner of a parent of
// a folder of tare. That user could replace the probe of a run.
func TestFoldersBelowAFolderOfAnotherUserAreRefused(t *testing.T) {
	need.Root(t)
	for _, variable := range []string{"TARE_DATA_DIR", "TARE_STATE_DIR"} {
		place(t)
		theirs := t.TempDir()
		inner := filepath.Join(theirs, "inner", "folder")
		must.OK(t, os.Chown(theirs, 2002, 2002))
		t.Setenv(variable, inner)
		says := theirs + " belongs to uid 2002 with mode 755|chown it to yourself and chmod go-w it|set TARE_DATA_DIR and TARE_STATE_DIR"
		ends(t, ExitUsage, says, "lifecycle", "host", "-o", "r.jsonl")
		if _, err := os.Lstat(filepath.Dir(inner)); err == nil {
			t.Errorf("%s: a folder was created in another user's folder", variable)
		}
		must.OK(t, os.MkdirAll(inner, 0o700))
		ends(t, ExitUsage, "look for leftovers of runs: "+theirs+" belongs to uid 2002", "clean")
		t.Setenv(variable, "")
	}
}

func TestLabelOnFullDiskLeavesRecordUnchanged(t *testing.T) {
	need.Root(t)
	kept := must.Get(filepath.Abs("../../record/testdata/v1/lifecycle.jsonl"))(t)
	const script = `mount -t tmpfs -o size=256k tare-test "$1" && cp "$3" "$1/r.jsonl" && dd if=/dev/zero of="$1/fill" bs=4k 2> /dev/null
"$2" label "$1/r.jsonl" $(for i in $(seq 80); do printf "k$i=%0100d " 0; done); echo exit $?
cmp "$3" "$1/r.jsonl" && rm "$1/fill" && "$2" label "$1/r.jsonl" a=1 && "$2" report "$1/r.jsonl" | grep -o a=1`
	out, err := exec.Command("unshare", "-m", "sh", "-c", script, "sh", t.TempDir(), program(t, t.TempDir()), kept).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	check.Contains(t, "label", string(out), "no space left on device; the record is unchanged", "exit 1\n", "r.jsonl: a=1\n")
}

func TestLabelDuringRunIsRefused(t *testing.T) {
	dir := place(t)
	cmd, stdout, stderr := started(t, dir, "lifecycle", "host", "--rounds", "100000", "-o", "r.jsonl")
	awaitBatches(t, 2)
	ends(t, ExitUsage, "a run still writes this record; label it when the run has ended", "label", "r.jsonl", "a=1")
	rec := interrupted(t, unix.SIGINT, cmd, stdout, stderr)
	check.Equal(t, "unreadable lines", rec.ProblemCount, 0)
	ends(t, ExitDone, "a=1", "label", "r.jsonl", "a=1")
}

func TestDocumentOnFullDiskLeavesNothing(t *testing.T) {
	need.Root(t)
	kept := must.Get(filepath.Abs("../../record/testdata/v1/lifecycle.jsonl"))(t)
	dir := place(t)
	for _, kib := range []string{"16", "64"} { // the first is too small for any result, the second for all
		script := `mount -t tmpfs -o size=` + kib + `k tare-test "$1" && "$2" report "$3" -o "$1/doc"; echo exit $?; find "$1"`
		small := filepath.Join(dir, kib)
		must.OK(t, os.Mkdir(small, 0o755))
		out, err := exec.Command("unshare", "-m", "sh", "-c", script, "sh", small, program(t, dir), kept).CombinedOutput()
		if err != nil || strings.Count(string(out), "no space left") != 1 || !strings.HasSuffix(string(out), fmt.Sprintf("exit %d\n%s\n", ExitUsage, small)) {
			t.Errorf("%s KiB: %v\n%s", kib, err, out)
		}
	}
}

func TestHostIsMeasuredWithoutRoot(t *testing.T) {
	need.Root(t) // the test drops privileges
	dir := place(t)
	tarePath := program(t, dir)
	must.OK(t, os.Chmod(dir, 0o777|os.ModeSticky))
	for p := dir; p != "/"; p = filepath.Dir(p) { // only root can enter t.TempDir
		info, err := os.Stat(p)
		if err == nil && info.Mode().Perm()&0o005 == 0 {
			os.Chmod(p, info.Mode().Perm()|0o055)
		}
	}
	asNobody := func(args ...string) (string, error) {
		cmd := exec.Command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups", tarePath}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := asNobody("lifecycle", "--rounds", "6", "-o", filepath.Join(dir, "r.jsonl"))
	if err != nil || !strings.Contains(out, "host") || !strings.Contains(out, "sudo") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = asNobody("lifecycle", "floor")
	if err == nil || !strings.Contains(out, "root") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCleanDoesNotDeleteThroughMounts(t *testing.T) {
	needRunc(t)
	dir := place(t)
	precious := filepath.Join(dir, "precious")
	must.OK(t, os.Mkdir(precious, 0o755))
	file := filepath.Join(precious, "file")
	must.Write(t, file, "x")
	path := wrapper(t, dir, "wrapped", `if [ "$verb" = create ]; then mkdir "$5/m" && mount --bind `+precious+` "$5/m"; exit 1; fi`)
	ends(t, ExitFailed, "", "lifecycle", "bad="+path, "--ops", "create", "--rounds", "1", "-o", "r.jsonl")
	if _, err := os.Stat(file); err != nil {
		t.Errorf("removed through a mount: %v", err)
	}
}

func TestClosedTerminalOrPipeLeavesNothing(t *testing.T) {
	needRunc(t)
	for name, c := range map[string]struct {
		weighed []string
		end     func(t *testing.T, cmd *exec.Cmd, stderr *os.File)
	}{
		"SIGHUP from terminal and shell": {[]string{"runc", "-n", "20"}, func(t *testing.T, cmd *exec.Cmd, _ *os.File) {
			for range 2 {
				must.OK(t, cmd.Process.Signal(unix.SIGHUP))
				time.Sleep(30 * time.Millisecond)
			}
		}},
		// The runtime ./slow mostly waits.
		"closed progress pipe": {[]string{"slow=./slow"}, func(t *testing.T, cmd *exec.Cmd, stderr *os.File) {
			stderr.Close()
			time.Sleep(6 * time.Second) // progress is printed every five seconds
			must.OK(t, cmd.Process.Signal(unix.SIGTERM))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			must.OK(t, os.WriteFile("slow", []byte("#!/bin/sh\nsleep 0.1\nexec runc \"$@\"\n"), 0o700))
			cmd := exec.Command(program(t, dir), append([]string{"lifecycle", "--rounds", "500", "-o", "r.jsonl"}, c.weighed...)...)
			reader, writer, err := os.Pipe()
			must.OK(t, err)
			cmd.Stderr = writer
			must.OK(t, cmd.Start())
			writer.Close()
			awaitBatches(t, 2)
			c.end(t, cmd, reader)
			cmd.Wait()
			reader.Close()
			if code := cmd.ProcessState.ExitCode(); code != ExitInterrupted {
				t.Errorf("exit %d: %v", code, cmd.ProcessState)
			}
		})
	}
}
