package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// realLogs is the folder of the real logs, shared with other tests.
var realLogs = func() string {
	dir, err := filepath.Abs("../instrument/startup/logs/testdata")
	if err != nil {
		panic(err)
	}
	return dir + "/"
}()

func logText(t *testing.T, name string) []byte {
	t.Helper()
	return []byte(strings.TrimRight(must.Read(t, realLogs+name), "\n") + "\n")
}

func writeLog(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.OK(t, os.WriteFile(path, text, 0o644))
	return path
}

// startsOf imports logs into a record.
func startsOf(t *testing.T, args ...string) *record.Record {
	t.Helper()
	out := filepath.Join(t.TempDir(), "r.jsonl")
	code, _, stderr := tare(t, append([]string{"startup", "-q", "-o", out}, args...)...)
	if code != ExitDone && code != ExitFailed {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	return recorded(t, out)
}

// told returns the findings with a given code.
func told(rec *record.Record, code string) (all []string) {
	for _, f := range rec.Findings {
		if f.Code == code {
			all = append(all, f.Message+" → "+f.Advice)
		}
	}
	return all
}

// callsOf returns the names of the calls of a start, and their total duration.
func callsOf(s *record.Start) (names []string, took time.Duration) {
	for _, x := range s.Spans {
		if x.Kind == record.KindCall {
			names = append(names, x.Name)
			took += time.Duration(x.Ended - x.Began)
		}
	}
	return names, took
}

func TestLogsInOneFileReadLikeLogsInSeveral(t *testing.T) {
	dir := t.TempDir()
	kata, engine := logText(t, "cripod.kata.log"), logText(t, "cripod.containerd.log")
	apart := startsOf(t, "--log", writeLog(t, dir, "kata.log", kata), "--log", writeLog(t, dir, "containerd.log", engine))
	together := startsOf(t, "--log", writeLog(t, dir, "all.log", append(bytes.Clone(kata), engine...)))
	if len(apart.Starts) != 1 || len(together.Starts) != 1 {
		t.Fatalf("%d and %d starts", len(apart.Starts), len(together.Starts))
	}
	a, b := &apart.Starts[0], &together.Starts[0]
	names, took := callsOf(a)
	others, same := callsOf(b)
	if a.Ended-a.Began != b.Ended-b.Began || took != same || strings.Join(names, ",") != strings.Join(others, ",") || a.Events != b.Events {
		t.Errorf("%v (%v) and %v (%v)", names, took, others, same)
	}
	lines := bytes.Count(kata, []byte("\n"))
	if b.Source != fmt.Sprintf("all.log:%d", lines+1) || len(together.Logs.Files) != 1 {
		t.Errorf("source %s, files %v", b.Source, together.Logs.Files)
	}
	alone := startsOf(t, "--log", filepath.Join(dir, "kata.log"))
	if _, took := callsOf(&alone.Starts[0]); took.Round(10*time.Millisecond) != 8770*time.Millisecond {
		t.Errorf("calls in the log of the runtime alone took %v", took)
	}
}

func TestUnorderedLinesAreSorted(t *testing.T) {
	dir := t.TempDir()
	lines := bytes.SplitAfter(logText(t, "cripod.kata.log"), []byte("\n"))
	var shuffled, backward []byte
	for i := range lines {
		shuffled = append(shuffled, lines[i*211%len(lines)]...)
		backward = append(backward, lines[len(lines)-1-i]...)
	}
	want := startsOf(t, "--log", realLogs+"cripod.kata.log")
	if all := told(want, "lines-in-disorder"); len(all) != 0 {
		t.Errorf("ordered log: %q", all)
	}
	for name, text := range map[string][]byte{"shuffled.log": shuffled, "backward.log": backward} {
		rec := startsOf(t, "--log", writeLog(t, dir, name, text))
		if all := told(rec, "lines-in-disorder"); len(all) != 1 || len(rec.Starts) != 1 || rec.Starts[0].Ended-rec.Starts[0].Began != want.Starts[0].Ended-want.Starts[0].Began {
			t.Errorf("%s: %q, %+v", name, all, rec.Starts)
		}
	}
}

func TestTimesWithoutZoneUseTheRequestedZone(t *testing.T) {
	path := writeLog(t, t.TempDir(), "node.log", []byte(`I0102 03:04:05.000000    1234 kubelet.go:2405] "SyncLoop ADD" source="api" pods=["shop/web"]
I0102 03:04:07.300000    1234 kubelet.go:2405] "SyncLoop (PLEG): event for pod" pod="shop/web" event={"ID":"u","Type":"ContainerStarted","Data":"f667548134d1"}
`))
	for zone, hour := range map[string]int{"": 3, "Asia/Tokyo": 18} {
		rec := startsOf(t, "--log", path, "--timezone", zone)
		check.Equal(t, zone, time.Unix(0, rec.Starts[0].Began).UTC().Hour(), hour)
	}
	ends(t, ExitUsage, "invalid --timezone \"Mars\"", "startup", "--log", path, "--timezone", "Mars")
}

func packed(t *testing.T, how string, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	if how == "gz" {
		w := gzip.NewWriter(&b)
		_, err = w.Write(text)
		w.Close()
	} else {
		w, _ := zstd.NewWriter(&b)
		_, err = w.Write(text)
		w.Close()
	}
	must.OK(t, err)
	return b.Bytes()
}

// The part before the damage is kept.
func TestTruncatedFileDoesNotAffectOthers(t *testing.T) {
	for how, checksum := range map[string]int{"gz": 6, "zst": 2} { // position of the checksum, in bytes from the end
		whole := packed(t, how, bytes.Repeat(logText(t, "cripod.kata.log"), 3))
		broken := bytes.Clone(whole)
		broken[len(broken)-checksum] ^= 0xff
		for name, text := range map[string][]byte{"cut.log." + how: whole[:len(whole)*9/10], "sum.log." + how: broken} {
			t.Run(name, func(t *testing.T) {
				rec := startsOf(t, "--log", writeLog(t, t.TempDir(), name, text), "--log", realLogs+"one.containerd.log")
				all, missing := told(rec, "missing-evidence"), rec.Logs.Missing
				if len(rec.Starts) < 2 || len(missing) != 1 || missing[0].What != "ends in the middle" || !strings.Contains(strings.Join(all, "\n"), "a file is truncated: "+name) {
					t.Errorf("%d starts, %+v, %q", len(rec.Starts), missing, all)
				}
				if name == "cut.log.gz" && !strings.Contains(fmt.Sprintf("%+v", missing), "unexpected EOF") {
					t.Errorf("the reason is missing: %+v", missing)
				}
			})
		}
		whole = packed(t, how, logText(t, "cripod.kata.log"))
		if rec := startsOf(t, "--log", writeLog(t, t.TempDir(), "whole.log."+how, whole)); len(rec.Starts) != 1 || len(rec.Logs.Missing) != 0 {
			t.Errorf("complete file: %+v", rec.Logs)
		}
	}
}

func TestUnreadableLogsAreRefusedWithAdvice(t *testing.T) {
	kata := logText(t, "cripod.kata.log")
	dir := place(t)
	writeLog(t, dir, "kata.log", kata)
	must.OK(t, os.Symlink("kata.log", "link.log"))
	must.OK(t, os.Mkdir("empty", 0o755))
	wide := []byte{0xff, 0xfe}
	for _, c := range kata {
		wide = append(wide, c, 0)
	}
	writeLog(t, dir, "wide.log", wide)
	writeLog(t, dir, "a.txt", []byte("hello\n"))
	writeLog(t, dir, "a.gz", packed(t, "gz", []byte("hello\n"))[:12])
	refusals(t, "startup-logs")
}

// A pipe without data must not block the exit.
func TestSilentPipeDoesNotBlockExit(t *testing.T) {
	dir := t.TempDir()
	silent := filepath.Join(dir, "silent")
	must.OK(t, syscall.Mkfifo(silent, 0o600))
	own := os.Stdin
	in, out, err := os.Pipe()
	must.OK(t, err)
	os.Stdin = in
	t.Cleanup(func() { os.Stdin = own; out.Close(); in.Close() })
	for name, path := range map[string]string{"standard input": "-", "FIFO without a writer": silent} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			record := filepath.Join(t.TempDir(), "r.jsonl")
			done := make(chan int, 1)
			go func() {
				var out, stderr bytes.Buffer
				done <- Execute(ctx, []string{"startup", "-q", "-o", record, "--log", path}, Streams{Out: &out, Err: &stderr})
			}()
			select {
			case code := <-done:
				if code == ExitDone {
					t.Error("the exit code is 0")
				}
			case <-time.After(time.Minute):
				t.Fatal("still waiting after a minute")
			}
			if _, err := os.Stat(record); err == nil {
				t.Error("an empty record was not removed")
			}
		})
	}
	// Unblock a reader that still waits for a writer.
	if w, err := os.OpenFile(silent, os.O_RDWR, 0); err == nil {
		w.Close()
	}
}

// Reading a file needs one block of memory, independent of the file size.
func TestManyFilesUseLittleMemory(t *testing.T) {
	dir := t.TempDir()
	text := bytes.Repeat(append(bytes.Repeat([]byte("x"), 1023), '\n'), 5<<10) // 5 MiB
	all := []string{"-q"}
	for i := range 100 {
		path := filepath.Join(dir, fmt.Sprintf("%d.log", i))
		if i == 0 {
			writeLog(t, dir, "0.log", append(logText(t, "cripod.kata.log"), text...))
		} else {
			writeLog(t, dir, filepath.Base(path), text[:(4<<20)-i])
		}
		all = append(all, "--log", path)
	}
	// The heap in use after a collection, plus allocations during the cycle.
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	inUse := func() int64 {
		runtime.GC()
		metrics.Read(live)
		return int64(live[0].Value.Uint64())
	}
	before, most := inUse(), int64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			most = max(most, inUse()-before)
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	rec := startsOf(t, all...)
	close(stop)
	<-stopped
	if len(rec.Starts) != 1 || most > 200<<20 {
		t.Errorf("%d starts, %d MiB of memory for 400 MiB of logs", len(rec.Starts), most>>20)
	}
}

// The log also has the start of another pod, before the run.
func TestRealRunLogIsAssignedToDaemonAndShim(t *testing.T) {
	d := engines.Containerd(t, engines.V2)
	out := filepath.Join(t.TempDir(), "r.jsonl")
	args := []string{"startup", "cri+containerd/runc", "--cri", d.Address, "--rounds", "1", "--warmup", "1", "-q", "-o", out, "--log", filepath.Join(d.Dir, "log")}
	ends(t, ExitDone, "", args...)
	rec, err := record.Load(out)
	if err != nil || len(rec.Problems) > 0 || rec.Logs == nil {
		t.Fatalf("%v: %v, logs %+v", err, rec.Problems, rec.Logs)
	}
	if n := len(rec.Starts); n != 2 || rec.Starts[1].Method != record.MethodLogs || !slices.Contains(rec.Starts[0].Containers, rec.Starts[1].Sandbox) {
		t.Fatalf("%d starts: %+v", n, rec.Starts)
	}
	j, err := startup.Judge(rec)
	if err != nil || len(j.Targets) != 1 || j.Targets[0].Starts != 1 {
		t.Fatalf("%v: %+v", err, j)
	}
	at := map[string]trace.Row{}
	var above []string
	for _, r := range j.Targets[0].Drawn.Rows {
		at[r.Name] = r
		above = append(above[:r.Depth], r.Name)
		way := strings.Join(above, "/")
		for span, want := range map[string]string{
			"RunPodSandbox": "containerd/RunPodSandbox", "StartContainer called → StartContainer returned": "containerd/StartContainer called → StartContainer returned",
			"shim started → RunPodSandbox returned": "containerd/shim start/containerd-shim-runc-v2/shim started → RunPodSandbox returned",
		} {
			if r.Name == span && way != want {
				t.Errorf("%s has the path %s", span, way)
			}
		}
	}
	// The engine calls runc for the container between its events of the start.
	if started, run := at["StartContainer"], at["runc start"]; started.Ended == 0 || run.Began < started.Began || run.Ended > started.Ended {
		t.Errorf("StartContainer from %d to %d, runc start from %d to %d", started.Began, started.Ended, run.Began, run.Ended)
	}
}

// The command writes the log lines of Kata and containerd for one start, with the current
// time.
func TestPlanImportsLogs(t *testing.T) {
	need.Root(t)
	dir := place(t)
	log := writeLog(t, dir, "kata.log", nil)
	for name, c := range map[string]struct {
		keys string
		code int
		says string // the error if the plan is refused
	}{
		"one log":        {"log: " + log, ExitDone, ""},
		"list of logs":   {"log: [" + log + "]", ExitDone, ""},
		"missing log":    {"log: " + dir + "/none.log", ExitUsage, "none.log"},
		"standard input": {`log: "-"`, ExitUsage, "standard input"},
		"other type":     {"log: {}", ExitUsage, "log"},
	} {
		plan := writeLog(t, dir, "plan.yaml", []byte("version: 1\nmeasure:\n  - startup: {targets: [], rounds: 1, warmup: 0, commands: [{name: x, args: [/bin/sh, -c, echo line >> "+log+"]}], "+c.keys+"}\n"))
		_ = os.Remove(filepath.Join(dir, "r.jsonl"))
		code, out, stderr := tare(t, "run", plan, "-q", "-o", filepath.Join(dir, "r.jsonl"))
		if code != c.code || !strings.Contains(out+stderr, c.says) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, stderr)
		}
		if rec, err := record.Load(filepath.Join(dir, "r.jsonl")); c.code == ExitDone && (err != nil || rec.Logs == nil || len(rec.Logs.Files) != 1) {
			t.Errorf("%s: the log was not read: %v", name, err)
		}
	}
}
