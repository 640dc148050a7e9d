package tracer

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/must"
)

// waiting starts a process that burns when it is told to, and then a child that
// burns as much.
func waiting(t *testing.T, ms int) (cmd *exec.Cmd, release io.Closer) {
	t.Helper()
	cmd = part("wait", strconv.Itoa(ms))
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	_, _ = out.Read(make([]byte, 1))
	return cmd, in
}

func TestBusyIsWhatTrackedProcessesUse(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		tracked, in := waiting(t, 60)
		before := usage0(t, tracked.Process.Pid)
		other, otherIn := waiting(t, 90)
		must.OK(t, tr.Track(tracked.Process.Pid))
		otherIn.Close()
		_ = other.Wait()
		used := tr.Used()
		if _, told := used[other.Process.Pid]; told || used[tracked.Process.Pid] < before || len(used) != 1 {
			t.Errorf("used are %v", used)
		}
		if busy := tr.Busy(); busy > 20e6 {
			t.Errorf("%v are counted of one that is not tracked", time.Duration(busy))
		}
		in.Close()
		_ = tracked.Wait()
		events := of(tracked.Process.Pid, take(t, tr))
		// wait4 also has what its child used, which it waited for.
		want := usage(tracked) - before
		got := tr.Busy()
		if d := got - want; max(d, -d) > max(want/5, 20e6) {
			t.Errorf("busy for %v, used %v", time.Duration(got), time.Duration(want))
		}
		last := int64(0)
		for _, e := range events {
			if e.Busy < last || e.Busy > got {
				t.Errorf("busy %d after %d, in the end %d", e.Busy, last, got)
			}
			last = e.Busy
		}
		if d := got - last; d > 20e6 {
			t.Errorf("the last event says %v, and %v came after it", time.Duration(last), time.Duration(d))
		}
		must.OK(t, tr.Track())
		if left := entries(t, tr.loaded.TareTracked); left != 0 {
			t.Errorf("%d processes are still tracked", left)
		}
	})
}

// A process alone on its CPU is not switched for long.
func TestAProcessThatRunsWhenItIsTrackedIsCountedAtOnce(t *testing.T) {
	tr := watch(t)
	cmd := part("burn", "60000")
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	time.Sleep(50 * time.Millisecond)
	must.OK(t, tr.Track(cmd.Process.Pid))
	// Both at one time, though others want this CPU too.
	both := func() (busy, used int64) {
		for range 1000 {
			busy, used = tr.Busy(), usage0(t, cmd.Process.Pid)
			if tr.Busy()-busy < 1e6 {
				break
			}
		}
		return busy, used
	}
	from, used := both()
	time.Sleep(100 * time.Millisecond)
	busy, want := both()
	busy, want = busy-from, want-used
	if d := busy - want; max(d, -d) > max(want/5, 10e6) {
		t.Errorf("busy for %v, used %v", time.Duration(busy), time.Duration(want))
	}
	must.OK(t, tr.Track())
	from = tr.Busy() // nothing else is tracked
	time.Sleep(50 * time.Millisecond)
	if d := tr.Busy() - from; d != 0 {
		t.Errorf("%v are counted of one that is not tracked any more", time.Duration(d))
	}
}

func TestWhoHasEndedIsNotTracked(t *testing.T) {
	tr := watch(t)
	must.OK(t, tr.Track(os.Getpid()))
	for range 200 {
		_ = exec.Command("sh", "-c", "/bin/true; /bin/true").Run()
	}
	if left := entries(t, tr.loaded.TareTracked); left != 1 {
		t.Errorf("%d processes are tracked, of which one is alive", left)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if err := tr.Track(pid); err == nil {
			t.Errorf("pid %d was accepted", pid)
		}
	}
}

func entries(t *testing.T, m *ebpf.Map) (n int) {
	t.Helper()
	var key, value uint32
	for it := m.Iterate(); it.Next(&key, &value); {
		n++
	}
	return n
}

// usage0 is the CPU time (ns) of a process that runs, its children's not.
func usage0(t *testing.T, pid int) int64 {
	t.Helper()
	ns, ok := procs.Clock(pid)
	if !ok {
		t.Fatalf("process %d has ended", pid)
	}
	return ns
}
