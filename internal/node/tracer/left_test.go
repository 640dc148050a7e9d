package tracer

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestCloseLeavesNothing(t *testing.T) {
	tr := watch(t)
	there := map[string]func() bool{} // finds objects by ID, because other tracers may be running
	for _, p := range append(tr.programs(), tr.loaded.Programs["tare_mark"]) {
		info := must.Get(p.Info())(t)
		id, ok := info.ID()
		must.That(t, ok, "no program ID")
		there["program "+info.Name] = func() bool {
			p, err := ebpf.NewProgramFromID(id)
			return err == nil && p.Close() == nil
		}
	}
	for _, name := range []string{"tare_cpus", "tare_tracked", "tare_events", "tare_scratch"} {
		info := must.Get(tr.loaded.Maps[name].Info())(t)
		id, ok := info.ID()
		must.That(t, ok, "no map ID")
		there["map "+info.Name] = func() bool {
			m, err := ebpf.NewMapFromID(id)
			return err == nil && m.Close() == nil
		}
	}
	for name, is := range there {
		must.That(t, is(), "%s does not exist", name)
	}
	must.OK(t, errors.Join(tr.Close(), tr.Close()))
	// The kernel frees closed objects asynchronously.
	must.Eventually(t, func() string {
		maps.DeleteFunc(there, func(_ string, is func() bool) bool { return !is() })
		return strings.Join(slices.Collect(maps.Keys(there)), ", ")
	})
}

func TestTracingErrorsAreExplained(t *testing.T) {
	need.Root(t)
	for name, tt := range map[string]struct {
		role string
		as   syscall.SysProcAttr
		want []string
	}{
		"other PID namespace": {"open", syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, []string{"pid namespace", "--pid=host"}},
		"no capabilities": {"open", syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}},
			[]string{"no CAP_BPF and no CAP_PERFMON", "run it as root, or give it CAP_BPF and CAP_PERFMON"}},
		"kernel without BTF": {"open without BTF", syscall.SysProcAttr{}, []string{"CONFIG_DEBUG_INFO_BTF", "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := part(tt.role)
			cmd.SysProcAttr = &tt.as
			out, err := cmd.CombinedOutput()
			for _, want := range tt.want {
				check.That(t, err == nil && strings.Contains(string(out), want), "%v: %s, want %s", err, out, want)
			}
		})
	}
}

// BenchmarkProcess measures the cost of tracing a process with its fork, exec, exit and
// context switches.
func BenchmarkProcess(b *testing.B) {
	need.Root(b)
	for _, name := range []string{"not watched", "watched"} {
		b.Run(name, func(b *testing.B) {
			var tr *Tracer
			if name == "watched" {
				tr = watch(b)
			}
			for b.Loop() {
				must.OK(b, exec.Command("true").Run())
			}
			if tr != nil {
				take(b, tr)
				b.ReportMetric(float64(tr.CPU())/float64(b.N), "own-ns/op")
			}
		})
	}
}

// A reader of a closed ring does not block, even if the caller does not check first.
func TestClosedTracerDoesNotBlock(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		must.OK(t, errors.Join(tr.Close(), tr.Close()))
		began := time.Now()
		_, err := tr.Take(now())
		tracked := tr.Track(1)
		check.That(t, err != nil && tracked != nil && time.Since(began) <= time.Minute, "%v and %v after %v", err, tracked, time.Since(began))
	})
}

// waiting starts a process that uses CPU time on request. Then its child uses the same CPU
// time.
func waiting(t *testing.T, ms int) (cmd *exec.Cmd, release io.Closer) {
	t.Helper()
	cmd = part("wait", strconv.Itoa(ms))
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	_, _ = out.Read(make([]byte, 1))
	return cmd, in
}

func TestBusyIsTheCPUTimeOfTrackedProcesses(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		tracked, in := waiting(t, 60)
		before := usage0(t, tracked.Process.Pid)
		other, otherIn := waiting(t, 90)
		must.OK(t, tr.Track(tracked.Process.Pid))
		otherIn.Close()
		_ = other.Wait()
		used := tr.Used()
		_, reported := used[other.Process.Pid]
		check.That(t, !reported && used[tracked.Process.Pid] >= before && len(used) == 1, "CPU times: %v", used)
		busy := tr.Busy()
		check.That(t, busy <= 20e6, "counted %v of an untracked process", time.Duration(busy))
		in.Close()
		_ = tracked.Wait()
		events := of(tracked.Process.Pid, take(t, tr))
		// wait4 includes the child
		want := usage(tracked) - before
		got := tr.Busy()
		d := got - want
		check.That(t, max(d, -d) <= max(want/5, 20e6), "busy for %v, used %v", time.Duration(got), time.Duration(want))
		last := int64(0)
		for _, e := range events {
			check.That(t, e.Busy >= last && e.Busy <= got, "busy time %d after %d, finally %d", e.Busy, last, got)
			last = e.Busy
		}
		d = got - last
		check.That(t, d <= 20e6, "busy time %v at the last event, and %v after it", time.Duration(last), time.Duration(d))
		must.OK(t, tr.Track())
		check.Equal(t, "tracked processes", entries(t, tr.loaded.Maps["tare_tracked"]), 0)
	})
}

// A process that is alone on its CPU may have no context switch for a long time.
func TestRunningProcessIsCountedImmediately(t *testing.T) {
	tr := watch(t)
	cmd := part("burn", "60000")
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	time.Sleep(50 * time.Millisecond)
	must.OK(t, tr.Track(cmd.Process.Pid))
	// Repeat until both values are read at almost the same time, because this process may
	// be preempted between the two reads.
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
	d := busy - want
	check.That(t, max(d, -d) <= max(want/5, 10e6), "busy for %v, used %v", time.Duration(busy), time.Duration(want))
	must.OK(t, tr.Track())
	from = tr.Busy() // nothing is tracked anymore
	time.Sleep(50 * time.Millisecond)
	check.Equal(t, "time of a process that is no longer tracked", tr.Busy()-from, 0)
}

func TestExitedProcessIsNotTracked(t *testing.T) {
	tr := watch(t)
	must.OK(t, tr.Track(os.Getpid()))
	for range 200 {
		_ = exec.Command("sh", "-c", "/bin/true; /bin/true").Run()
	}
	check.Equal(t, "tracked processes", entries(t, tr.loaded.Maps["tare_tracked"]), 1)
	for _, pid := range []int{0, -1, 1 << 30} {
		err := tr.Track(pid)
		check.That(t, err != nil, "pid %d was accepted", pid)
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

// usage0 returns the CPU time of a running process without its children, in ns.
func usage0(t *testing.T, pid int) int64 {
	t.Helper()
	ns, ok := procs.Clock(pid)
	must.That(t, ok, "process %d has ended", pid)
	return ns
}
