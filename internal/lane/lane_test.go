package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

func newPool(t *testing.T, lanes int) *Pool {
	t.Helper()
	p := must.Get(NewPool(Options{Lanes: lanes}))(t)
	t.Cleanup(p.Close)
	return p
}

func do(t *testing.T, p *Pool, o Order) Result {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	return must.Get(p.Do(context.Background(), 0, o))(t)
}

func installProbe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, probe.Install(dir))
	return filepath.Join(dir, probe.Name)
}

func TestSlotLayoutMatchesTheCSource(t *testing.T) {
	var s slot
	for name, c := range map[string][2]uintptr{
		"start":  {unsafe.Offsetof(s.Start), 32},
		"status": {unsafe.Offsetof(s.Status), 104},
		"token":  {unsafe.Offsetof(s.Token), 144},
		"errs":   {unsafe.Offsetof(s.Errs), 144 + tokenSize + argsSize + outSize},
	} {
		check.Equal(t, name, c[0], c[1])
	}
	check.That(t, unsafe.Sizeof(s) <= slotSize, "a slot has %d bytes, want at most %d", unsafe.Sizeof(s), slotSize)
}

func TestCommandIsTimedFromForkToExit(t *testing.T) {
	p := newPool(t, 1)
	before := machine.Now()
	r := do(t, p, Order{Kind: Exec, Args: []string{"/bin/sleep", "0.05"}})
	after := machine.Now()
	must.That(t, r.Err == nil && r.Status.Exited() && r.Status.ExitStatus() == 0, "sleep: %v, status %#x", r.Err, r.Status)
	d := time.Duration(r.Returned - r.Start)
	check.That(t, d >= 50*time.Millisecond, "a sleep of 50 ms took %v", d)
	check.That(t, r.Start >= before && r.Returned <= after && r.Spawned >= r.Start && r.Spawned <= r.Returned,
		"stamps out of order: %d ≤ %d ≤ %d ≤ %d ≤ %d", before, r.Start, r.Spawned, r.Returned, after)
	check.That(t, r.MaxRSS != 0, "no peak memory of the command")
}

func TestFailuresAreReportedWithoutWaiting(t *testing.T) {
	p := newPool(t, 1)
	r := do(t, p, Order{Kind: Exec, Args: []string{"/no/such/program"}})
	var e *Error
	check.That(t, errors.As(r.Err, &e) && e.Step == StepExec && e.Errno == unix.ENOENT, "missing program: %v", r.Err)
	r = do(t, p, Order{Kind: Exec, Args: []string{"/bin/sh", "-c", "echo out; echo bad >&2; exit 127"}})
	check.That(t, r.Err == nil && r.Status.ExitStatus() == 127 && r.Stdout == "out\n" && r.Stderr == "bad\n",
		"exit 127: err %v, status %d, stdout %q, stderr %q", r.Err, r.Status.ExitStatus(), r.Stdout, r.Stderr)
	r = do(t, p, Order{Kind: Exec, Args: []string{"/bin/sh", "-c", "exit 3"}, Need: NeedReady, Token: "never"})
	check.That(t, r.Status.ExitStatus() == 3 && time.Duration(r.Returned-r.Start) <= 30*time.Second,
		"waited %v for a failed command", time.Duration(r.Returned-r.Start))
	r = do(t, p, Order{Kind: Kill, Watch: 1 << 22, Need: NeedExit})
	check.That(t, errors.As(r.Err, &e) && e.Step == StepGone, "ended workload: %v", r.Err)
}

func TestTimeoutKillsTheProcessGroup(t *testing.T) {
	p := newPool(t, 1)
	mark := filepath.Join(t.TempDir(), "pid")
	var pid []byte
	// Repeat with a longer timeout if the command had not started its child in time.
	for timeout := 2 * time.Second; len(pid) == 0; timeout *= 2 {
		r := do(t, p, Order{Kind: Exec, Timeout: timeout,
			Args: []string{"/bin/sh", "-c", "sleep 600 & echo $! > " + mark + "; wait"}})
		e, ok := errors.AsType[*Error](r.Err)
		must.That(t, ok && e.Step == StepTimeout && e.Missing == NeedCall && timeout <= time.Minute, "got the error %v", r.Err)
		pid, _ = os.ReadFile(mark)
	}
	must.Eventually(t, func() string {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return ""
		}
		return "the command's child still runs: " + string(stat)
	})
}

func TestInterruptAbortsEveryLaneAndThePoolStaysUsable(t *testing.T) {
	p := newPool(t, 3)
	orders := make([]Order, 3)
	for i := range orders {
		orders[i] = Order{Kind: Exec, Args: []string{"/bin/sleep", "60"}, Timeout: time.Minute}
	}
	b := must.Get(p.Prepare([]int{0, 1, 2}, orders))(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, results, err := b.Start(ctx)
	must.OK(t, err)
	for _, r := range results {
		e, ok := errors.AsType[*Error](r.Err)
		check.That(t, ok && e.Step == StepAbort, "got the error %v", r.Err)
	}
	r := do(t, p, Order{Kind: Exec, Args: []string{"/bin/true"}})
	check.That(t, r.Err == nil, "after an interrupt: %v", r.Err)
}

func TestHostWorkloadReportsAndStops(t *testing.T) {
	p := newPool(t, 1)
	path := installProbe(t)
	r := do(t, p, Order{Kind: Spawn, Args: []string{path, "tok-1"}, Need: NeedReady, Token: "tok-1"})
	must.That(t, r.Err == nil, "%v", r.Err)
	first, ok := r.ProbeTime("tok-1")
	check.That(t, ok && first >= r.Start && first <= r.Seen, "first instruction at %d (%v), started %d, seen %d", first, ok, r.Start, r.Seen)
	check.That(t, p.Owns(r.Pid) && !p.Owns(os.Getpid()) && !p.Owns(1) && !p.Owns(0), "the lane does not own its process, or owns others")
	end := do(t, p, Order{Kind: Kill, Watch: r.Pid, Need: NeedExit})
	check.That(t, end.Err == nil && end.WorkloadKnown && end.Workload.Exited() && end.Workload.ExitStatus() == 0 && end.Exited != 0,
		"stop: %+v", end)
}

func TestExitStatusIsReadableUntilTheNextOrder(t *testing.T) {
	p := newPool(t, 1)
	mark := filepath.Join(t.TempDir(), "pid")
	r := do(t, p, Order{Kind: Exec, Need: NeedReady, Token: "tok-1", Args: []string{"/bin/sh", "-c", `
		# The parent must exit first. Otherwise it would reap this process.
		(sh -c "until [ -e $0.orphan ]; do sleep 0.01; done; echo tare-probe/1 tok-1 1; exit 3" & echo $! > $0)
		touch $0.orphan
		until grep -q "^State:.Z" /proc/$(cat $0)/status; do sleep 0.01; done`, mark}})
	text, err := os.ReadFile(mark)
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	pid := must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
	stat, err := procs.StatOf(pid)
	check.That(t, err == nil && stat.Ended() && stat.Exit == 3, "%+v, %v", stat, err)
	do(t, p, Order{Kind: Exec, Args: []string{"/bin/true"}})
	stat, err = procs.StatOf(pid)
	check.That(t, err != nil, "still a zombie after the next order: %+v", stat)
}

func TestOutputIsBoundedAndDroppedBytesAreCounted(t *testing.T) {
	p := newPool(t, 1)
	r := do(t, p, Order{Kind: Exec, Args: []string{"/bin/sh", "-c", "head -c 200000 /dev/zero"}})
	check.That(t, len(r.Stdout) == outSize && r.Dropped == 200000-outSize, "kept %d, dropped %d", len(r.Stdout), r.Dropped)
}

func TestLanesAreReleasedTogether(t *testing.T) {
	p := newPool(t, 50)
	lanes, orders := make([]int, 50), make([]Order, 50)
	for i := range lanes {
		lanes[i], orders[i] = i, Order{Kind: Exec, Args: []string{"/bin/true"}, Timeout: time.Minute}
	}
	b := must.Get(p.Prepare(lanes, orders))(t)
	time.Sleep(20 * time.Millisecond)
	before := machine.Now()
	released, results, err := b.Start(context.Background())
	must.OK(t, err)
	check.That(t, released >= before, "released before the call")
	first, last := results[0].Start, results[0].Start
	for _, r := range results {
		must.That(t, r.Err == nil && r.Start >= released, "started %d ns after the release: %v", r.Start-released, r.Err)
		first, last = min(first, r.Start), max(last, r.Start)
	}
	t.Logf("skew of 50 lanes: %v, priority %v", time.Duration(last-first), p.priority())
}

func TestProbeLinesAreParsedAndArgumentsQuoted(t *testing.T) {
	golden.Lines(t, "testdata/lines.txt", func(t *testing.T, line string) (any, error) {
		if args, quoted := strings.CutPrefix(line, "quote "); quoted {
			return Quote(strings.Split(args, " | ")), nil
		}
		ns, ok := (&Result{Stdout: line}).ProbeTime("x")
		return fmt.Sprint(ns, " ", ok), nil
	})
}

func FuzzProbeTime(f *testing.F) {
	f.Add("tare-probe/1 x 123\n", "x")
	f.Add("noise\ntare-probe/1 x 999999999999999999\n", "x")
	f.Fuzz(func(t *testing.T, out, token string) {
		r := Result{Stdout: out}
		ns, ok := r.ProbeTime(token)
		check.That(t, !ok || ns >= 0 && strings.Contains(out, "tare-probe/1 "+token+" "), "%q gave %d", out, ns)
	})
}

func TestClosedPoolKillsBackgroundProcesses(t *testing.T) {
	p := must.Get(NewPool(Options{Lanes: 1}))(t)
	mark := filepath.Join(t.TempDir(), "pid")
	r, err := p.Do(t.Context(), 0, Order{Kind: Exec, Timeout: time.Minute,
		Args: []string{"/bin/sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $! > " + mark}})
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	time.Sleep(50 * time.Millisecond)
	p.Close()
	text := must.Get(os.ReadFile(mark))(t)
	must.Eventually(t, func() string { // a killed process needs a CPU to exit
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return ""
		}
		return "still running: " + string(stat)
	})
}

// A leak would use up the descriptors of the pool after many runs.
func TestFailedKeepClosesItsDescriptors(t *testing.T) {
	open := func() int {
		entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
		return len(entries)
	}
	p := &Pool{procs: []int{os.Getpid()}} // not a valid pair of pipes
	for range 3 {
		r, w, err := os.Pipe()
		must.OK(t, err)
		defer r.Close()
		defer w.Close()
	}
	before := open()
	err := p.keep(0, filepath.Join(t.TempDir(), "said"), "")
	must.That(t, err != nil, "keep succeeded")
	check.Equal(t, "open descriptors", open(), before)
}
