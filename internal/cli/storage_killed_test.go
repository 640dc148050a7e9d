package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/record"
)

// uncommon is a unique file size in bytes. It identifies the processes that lay out the
// file among those of concurrent tests.
var uncommon = int64(512<<20) + int64(os.Getpid())%4096*4096

// held is the name of a job that runs until it is stopped. It identifies the process.
var held = fmt.Sprintf("held-%d", os.Getpid())

// twoJobs writes a plan with two jobs per target. The first job ends immediately. The
// second one does not end.
func twoJobs(t *testing.T, targets, volume, settings, second string) {
	t.Helper()
	text := fmt.Sprintf(`version: 1
measure:
  - storage:
      targets: [%s]
      volumes: [%s]
      rounds: 1
      settle: 0s
      drop: files
      %s
      jobs:
        - {name: quick, rw: read, bs: 512k, size: 4M}
        - %s
`, targets, volume, settings, second)
	must.Write(t, "two.yaml", text)
}

const noCeiling = "ceiling: 0s"

// These are long jobs to interrupt: large while it lays out its file, lasting while it
// runs.
var (
	large   = fmt.Sprintf("{name: large, rw: read, bs: 4k, size: %d}", uncommon)
	lasting = fmt.Sprintf("{name: %s, rw: randread, bs: 4k, size: 4M, runtime: 60s, time_based: true}", held)
)

// running returns the processes with the given text in their command line. Arguments end
// with a NUL byte.
func running(text string) []string {
	var found []string
	for _, pid := range procs.All() {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(b, []byte(text)) {
			found = append(found, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

// await waits until a condition is true.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out after 3 minutes: %s", what)
		}
	}
}

// cells returns the number of cells in r.jsonl so far.
func cells() int {
	b, _ := os.ReadFile("r.jsonl")
	return strings.Count(string(b), `"type":"cell"`)
}

// started starts tare as a separate process. It does not outlive the test.
func started(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdout, stderr *strings.Builder) {
	t.Helper()
	cmd = exec.Command(program(t, dir), args...)
	stdout, stderr = new(strings.Builder), new(strings.Builder)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, stdout, stderr
}

// interrupted sends a signal to a run and returns the content of r.jsonl. The run must
// leave nothing behind.
func interrupted(t *testing.T, signal os.Signal, cmd *exec.Cmd, stdout, stderr fmt.Stringer) *record.Record {
	t.Helper()
	must.OK(t, cmd.Process.Signal(signal))
	began := time.Now()
	_ = cmd.Wait()                                       // the exit code has the error
	if took := time.Since(began); took > 3*time.Minute { // a generous limit for a busy machine
		t.Errorf("it took %v to end", took)
	}
	if code := cmd.ProcessState.ExitCode(); code != ExitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	rec := loaded(t)
	if rec.End == nil || rec.End.Status != "interrupted" {
		t.Fatalf("the record's end: %+v", rec.End)
	}
	if isLeft(t, rec.Header.RunID) {
		t.Error("leftovers after the run")
	}
	return rec
}

// killed kills a run. It returns the record r.jsonl, and the exit code and output of tare
// report.
func killed(t *testing.T, cmd *exec.Cmd) (rec *record.Record, code int, out string) {
	t.Helper()
	ends(t, ExitDone, "is active", "clean", "--dry-run")
	must.OK(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed above
	if rec = loaded(t); rec.End != nil {
		t.Errorf("the record of a killed run has an end: %+v", rec.End)
	}
	code, out, stderr := tare(t, "report", "r.jsonl")
	if !strings.Contains(out, "has no end") {
		t.Errorf("report: exit %d\n%s\n%s", code, out, stderr)
	}
	return rec, code, out
}

// removed checks that tare clean finds and removes the leftovers of a killed run.
func removed(t *testing.T, id string, what ...string) {
	t.Helper()
	ends(t, ExitDone, strings.Join(append(what, id, "would remove"), "|"), "clean", "--dry-run")
	if !isLeft(t, id) {
		t.Error("the dry run removed leftovers")
	}
	ends(t, ExitDone, id+": removed", "clean")
	if isLeft(t, id) {
		t.Error("leftovers after clean")
	}
}

func TestSignalDuringStorageRunSavesAndCleansUp(t *testing.T) {
	need.Tool(t, "fio")
	needRunc(t)
	filling := func(string) bool { return len(running(fmt.Sprintf("fill\x00%d\x00", uncommon))) > 0 }
	working := func(string) bool { return len(running("--name="+held+"\x00")) > 0 }
	for name, c := range map[string]struct {
		target, volume, settings, second string
		moment                           func(dir string) bool
		cells                            int // minimum number of saved cells
	}{
		"while the host lays out a file":         {"host", "bind", noCeiling, large, filling, 1},
		"while a sandbox lays out a file":        {"runc", "rootfs", noCeiling, large, filling, 1},
		"while the tool runs on a folder":        {"runc", "bind", noCeiling, lasting, working, 1},
		"while the tool runs in memory":          {"host", "tmpfs", noCeiling, lasting, working, 1},
		"between two cells":                      {"host, runc", "bind", noCeiling, lasting, func(string) bool { return cells() == 1 }, 1},
		"while the device's ceiling is measured": {"host", "bind", "ceiling: 20s", lasting, func(dir string) bool { return len(running("--name=ceiling\x00--filename="+dir)) > 0 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			twoJobs(t, c.target, c.volume, c.settings, c.second)
			cmd, stdout, stderr := started(t, dir, "run", "two.yaml", "-o", "r.jsonl")
			await(t, "the moment", func() bool { return c.moment(dir) })
			rec := interrupted(t, unix.SIGINT, cmd, stdout, stderr)
			if len(rec.Cells) < c.cells || len(rec.Cells) > 3 {
				t.Errorf("%d cells", len(rec.Cells))
			}
			for _, x := range rec.Cells {
				if x.Job != "quick" || x.Reported == nil || x.Failure != nil {
					t.Errorf("an incomplete cell was saved: %+v", x)
				}
			}
			if c.cells > 0 && !strings.Contains(stdout.String(), "quick") {
				t.Errorf("the measured results are not shown:\n%s", stdout)
			}
			if left := running(held); len(left) > 0 {
				t.Errorf("still running: %q", left)
			}
		})
	}
}

func TestLeftoversOfKilledStorageRunAreFoundAndRemoved(t *testing.T) {
	need.Tool(t, "fio")
	needRunc(t)
	untouched.Alone(t)
	for name, c := range map[string]struct{ target, volume string }{
		"a folder of the host in a container": {"runc", "bind"},
		"memory in a container":               {"runc", "tmpfs"},
		"a folder on the host":                {"host", "bind"},
		"memory on the host":                  {"host", "tmpfs"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			twoJobs(t, c.target, c.volume, noCeiling, lasting)
			cmd, _, _ := started(t, dir, "run", "two.yaml", "-q", "-o", "r.jsonl")
			await(t, "a running tool", func() bool { return len(running("--name="+held+"\x00")) > 0 })
			rec, code, out := killed(t, cmd)
			if code != ExitDone || len(rec.Cells) != 1 || !strings.Contains(out, "quick") {
				t.Errorf("report: exit %d, %d cells\n%s", code, len(rec.Cells), out)
			}
			removed(t, rec.Header.RunID)
			if left := running(held); len(left) > 0 {
				t.Errorf("still running: %q", left)
			}
		})
	}
}
