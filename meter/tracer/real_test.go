package tracer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

func TestWhatAProcessDoesIsSeen(t *testing.T) {
	long := strings.Repeat("x", 6000)
	tests := []struct {
		name string
		cmd  func() *exec.Cmd
		want string
	}{
		{"a program that ends well", func() *exec.Cmd { return part("exit", "0") }, "fork; exit 0; exit=0"},
		{"an exit code", func() *exec.Cmd { return part("exit", "42") }, "fork; exit 42; exit=42"},
		{"arguments with blanks, lines and nothing in them", func() *exec.Cmd { return part("exit", "3", "a b", "", "c\nd", "ü") },
			"fork; exit 3 a b  c\nd ü; exit=3"},
		{"a program that executes another", func() *exec.Cmd { return part("again", "exit", "5") },
			"fork; again exit 5; exit 5; exit=5"},
		{"a program executed by another thread than the first", func() *exec.Cmd { return part("other", "exit", "6") },
			"fork; other exit 6; exit 6; exit=6"},
		{"a process whose first thread ends first", func() *exec.Cmd { return part("leaderless", "9") },
			"fork; leaderless 9; exit=9"},
		{"threads, which are no processes", func() *exec.Cmd { return part("threads", "8", "1") },
			"fork; threads 8 1; exit=0"},
		{"children, in order", func() *exec.Cmd { return part("tree", "3") },
			"fork; tree 3; fork; exit 0; exit=0; fork; exit 1; exit=1; fork; exit 2; exit=2; exit=0"},
		{"arguments that are too long", func() *exec.Cmd { return part("exit", "0", long) }, "fork; exit 0 " + long[:4096-7] + "; exit=0"},
	}
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					cmd := tt.cmd()
					begin := now()
					_ = cmd.Run()
					events := of(cmd.Process.Pid, take(t, tr))
					end := now()
					if got := story(events); got != tt.want && (w.exact || !alike(got, tt.want)) {
						t.Errorf("got  %q\nwant %q", got, tt.want)
					}
					check(t, events, begin, end)
					for _, e := range events {
						if cut := len(tt.want) > 4096 && e.Kind == Exec; e.Cut != cut && w.exact {
							t.Errorf("cut: %v of %+v", e.Cut, e)
						}
						if e.Kind == Exec && e.File != "/proc/self/exe" && w.name != record.MethodConnector {
							t.Errorf("it was called %q", e.File)
						}
						if e.Pid == cmd.Process.Pid && e.Parent != os.Getpid() {
							t.Errorf("the parent is %d, not %d", e.Parent, os.Getpid())
						}
					}
					if n := tr.Lost(); n != 0 {
						t.Errorf("%d events were lost", n)
					}
				})
			}
		})
	}
}

// check is what is true of every list of events.
func check(t *testing.T, events []Event, begin, end int64) {
	t.Helper()
	if !inOrder(events) {
		t.Errorf("not in order of time: %+v", events)
	}
	used := map[int]int64{}
	for _, e := range events {
		if e.Time < begin || e.Time > end {
			t.Errorf("%d is not between %d and %d", e.Time, begin, end)
		}
		if e.CPU < used[e.Pid] && e.CPU != -1 || e.CPU > end-begin+1e9 {
			t.Errorf("CPU time %d after %d", e.CPU, used[e.Pid])
		}
		used[e.Pid] = e.CPU
	}
}

func TestASignalIsInTheStatus(t *testing.T) {
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				cmd := part("hang")
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				_, _ = out.Read(make([]byte, 1))
				_ = cmd.Process.Signal(signal)
				_ = cmd.Wait()
				want := fmt.Sprintf("fork; hang; exit=%d", 128+int(signal))
				if got := story(of(cmd.Process.Pid, take(t, tr))); got != want && (w.exact || !alike(got, want)) {
					t.Errorf("%q, want %q", got, want)
				}
			}
		})
	}
}

// What comes after the last event, the freeing of memory, is the process's for
// wait4 and not here.
func TestCPUTimeIsThatOfWait4(t *testing.T) {
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			for _, args := range [][]string{
				{"burn", "1"}, {"burn", "3"}, {"burn", "50"}, {"burn", "300"}, {"exit", "0"},
				{"threads", "6", "30"}, {"threads", "40", "1"}, {"burners", "4", "60"},
			} {
				cmd := part(args[0], args[1:]...)
				_ = cmd.Run()
				events := of(cmd.Process.Pid, take(t, tr))
				last := events[len(events)-1]
				if last.CPU == -1 && !w.exact {
					continue
				}
				want := usage(cmd)
				d := max(last.CPU-want, want-last.CPU)
				t.Logf("%v: %v, wait4 says %v", args, time.Duration(last.CPU), time.Duration(want))
				if d > max(want/10, 2e6) {
					t.Errorf("%v: %v, wait4 says %v", args, time.Duration(last.CPU), time.Duration(want))
				}
			}
		})
	}
}

func TestOfManyShortProcessesNoneIsLost(t *testing.T) {
	const n = 2000
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			pids := make(map[int]int, n)
			for range n {
				cmd := exec.Command("true", "x")
				if err := cmd.Run(); err != nil {
					t.Fatal(err)
				}
				pids[cmd.Process.Pid]++
			}
			seen := map[int]map[Kind]int{}
			for _, e := range take(t, tr) {
				if pids[e.Pid] > 0 {
					if seen[e.Pid] == nil {
						seen[e.Pid] = map[Kind]int{}
					}
					seen[e.Pid][e.Kind]++
				}
			}
			wrong := 0
			for pid, times := range pids {
				for kind := Fork; kind <= Exit; kind++ {
					if seen[pid][kind] != times {
						wrong++
					}
				}
			}
			if wrong > 0 || tr.Lost() != 0 {
				t.Errorf("%d events are missing or double, %d are said to be lost", wrong, tr.Lost())
			}
		})
	}
}

func TestAnEventIsTakenOnceAndNotBeforeItsTime(t *testing.T) {
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			first, second := part("exit", "1"), part("exit", "2")
			_ = first.Run()
			if w.name == record.MethodConnector {
				time.Sleep(10 * time.Millisecond)
			}
			middle := now()
			_ = second.Run()
			events, err := tr.Take(middle)
			if err != nil {
				t.Skipf("this machine is too busy: %v", err)
			}
			if got := len(of(first.Process.Pid, events)); got != 3 {
				t.Errorf("%d events of the first", got)
			}
			if got := len(of(second.Process.Pid, events)); got != 0 {
				t.Errorf("%d events of the second, which came later", got)
			}
			events = take(t, tr)
			if got := len(of(first.Process.Pid, events)); got != 0 {
				t.Errorf("%d events of the first a second time", got)
			}
			if got := len(of(second.Process.Pid, events)); got != 3 {
				t.Errorf("%d events of the second", got)
			}
			begin := time.Now()
			if _, err := tr.Take(now() + int64(time.Hour)); time.Since(begin) > 3*patience {
				t.Errorf("%v, after %v", err, time.Since(begin))
			}
		})
	}
}

func TestThePluginsEnvironmentIsReadAndNothingElse(t *testing.T) {
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			for _, before := range []int{0, 100, 9000} {
				cmd := part("burn", "20")
				cmd.Env = append(cmd.Env, "PASSWORD="+strings.Repeat("secret", before/6), "CNI_COMMAND=ADD", "CNI_CONTAINERID=c0ffee", "CNI_IFNAME=eth0", "CNI_ARGS=K8S_POD_NAME=secret", "CNI_PATH=/opt/cni/bin")
				if err := cmd.Run(); err != nil {
					t.Fatal(err)
				}
				events := of(cmd.Process.Pid, take(t, tr))
				i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == Exec })
				if i < 0 {
					t.Fatal("no exec was seen")
				}
				if want := (CNI{"ADD", "c0ffee", "eth0"}); events[i].CNI != want {
					t.Errorf("after %d bytes: %+v, want %+v", before, events[i].CNI, want)
				}
				if s := fmt.Sprintf("%+v", events); strings.Contains(s, "secret") {
					t.Errorf("a secret was kept: %s", s)
				}
			}
		})
	}
}

var bpfs = []way{{"bpf", true, only(record.MethodBPF)}, {"bpf, as before Linux 6.15", true, oldBPF}}

// waiting starts a process that burns when it is told to, and then a child that
// burns as much.
func waiting(t *testing.T, ms int) (cmd *exec.Cmd, release io.Closer) {
	t.Helper()
	cmd = part("wait", strconv.Itoa(ms))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 1))
	return cmd, in
}

func TestBusyIsWhatTrackedProcessesUse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	for _, w := range bpfs {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			tracked, in := waiting(t, 60)
			before := usage0(t, tracked.Process.Pid)
			other, otherIn := waiting(t, 90)
			if err := tr.Track(tracked.Process.Pid); err != nil {
				t.Fatal(err)
			}
			otherIn.Close()
			_ = other.Wait()
			if busy := tr.Busy(); busy > 5e6 {
				t.Errorf("%v are counted of one that is not tracked", time.Duration(busy))
			}
			in.Close()
			_ = tracked.Wait()
			events := of(tracked.Process.Pid, take(t, tr))
			// wait4 also has what its child used, which it waited for.
			want := usage(tracked) - before
			got := tr.Busy()
			if d := got - want; max(d, -d) > max(want/10, 4e6) {
				t.Errorf("busy for %v, used %v", time.Duration(got), time.Duration(want))
			}
			last := int64(0)
			for _, e := range events {
				if e.Busy < last || e.Busy > got {
					t.Errorf("busy %d after %d, in the end %d", e.Busy, last, got)
				}
				last = e.Busy
			}
			if d := got - last; d > 5e6 {
				t.Errorf("the last event says %v, and %v came after it", time.Duration(last), time.Duration(d))
			}
			if err := tr.Track(); err != nil {
				t.Fatal(err)
			}
			if left := entries(t, tr.source.(*bpf).maps.tracked); left != 0 {
				t.Errorf("%d processes are still tracked", left)
			}
		})
	}
}

// A process alone on its CPU is not switched for long.
func TestAProcessThatRunsWhenItIsTrackedIsCountedAtOnce(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	tr := only(record.MethodBPF)(t)
	cmd := part("burn", "60000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	time.Sleep(50 * time.Millisecond)
	if err := tr.Track(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	from, used := tr.Busy(), usage0(t, cmd.Process.Pid)
	time.Sleep(100 * time.Millisecond)
	busy, want := tr.Busy()-from, usage0(t, cmd.Process.Pid)-used
	if d := busy - want; max(d, -d) > 3e6 {
		t.Errorf("busy for %v, used %v", time.Duration(busy), time.Duration(want))
	}
	if err := tr.Track(); err != nil {
		t.Fatal(err)
	}
	from = tr.Busy()
	time.Sleep(50 * time.Millisecond)
	if d := tr.Busy() - from; d != 0 {
		t.Errorf("%v are counted of one that is not tracked any more", time.Duration(d))
	}
}

func TestWhoHasEndedIsNotTracked(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	tr := only(record.MethodBPF)(t)
	if err := tr.Track(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		_ = exec.Command("sh", "-c", "/bin/true; /bin/true").Run()
	}
	if left := entries(t, tr.source.(*bpf).maps.tracked); left != 1 {
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

func TestCloseLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	tr := only(record.MethodBPF)(t)
	if left := ours(t); len(left) == 0 {
		t.Fatal("what is there cannot be told")
	}
	if err := errors.Join(tr.Close(), tr.Close()); err != nil {
		t.Error(err)
	}
	// The kernel frees what is closed a moment later.
	var left []string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if left = ours(t); len(left) == 0 {
			return
		}
	}
	t.Errorf("there still are %q", left)
}

// ours are the programs and maps with our names that the kernel has. Another
// tracer that runs at the same time is among them.
func ours(t *testing.T) (names []string) {
	t.Helper()
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue
		}
		if info, err := p.Info(); err == nil && strings.HasPrefix(info.Name, "tare_") {
			names = append(names, info.Name)
		}
		p.Close()
	}
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue
		}
		if info, err := m.Info(); err == nil && strings.HasPrefix(info.Name, "tare_") {
			names = append(names, info.Name)
		}
		m.Close()
	}
	return names
}

// usage0 is the CPU time (ns) of a process that runs, its children's not.
func usage0(t *testing.T, pid int) int64 {
	t.Helper()
	ns, ok := processTime(pid)
	if !ok {
		t.Fatalf("process %d has ended", pid)
	}
	return ns
}

func TestTracefsLeavesNoInstance(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	name := fmt.Sprintf("tare-sweep%d", os.Getpid())
	o := Options{Instance: name + "-1", Only: []string{record.MethodTracefs}}
	tr, err := Open(o)
	if err != nil {
		t.Skip(err)
	}
	if _, err := Open(o); err == nil {
		t.Error("two have one instance")
	}
	if err := errors.Join(tr.Close(), tr.Close()); err != nil {
		t.Error(err)
	}
	root, err := tracefsRoot()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	exists := func(name string) bool {
		return unix.Faccessat(root, "instances/"+name, unix.F_OK, 0) == nil
	}
	if exists(o.Instance) {
		t.Error("Close leaves its instance")
	}
	for _, left := range []string{name + "-2", name + "-3"} {
		if err := unix.Mkdirat(root, "instances/"+left, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(name); err != nil || exists(name+"-2") || exists(name+"-3") {
		t.Errorf("instances of a dead run are still there: %v", err)
	}
	for _, bad := range []string{"", "../x", "a/b"} {
		if err := Sweep(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestAMethodThatDoesNotExistIsRefused(t *testing.T) {
	if tr, err := Open(Options{Only: []string{"crystal"}}); err == nil {
		tr.Close()
		t.Error("it was opened")
	}
}

// What a process costs when it is watched: its fork, exec and exit and the
// switches between.
func BenchmarkProcess(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("tracing wants root")
	}
	for _, method := range []string{record.MethodNone, record.MethodBPF, record.MethodTracefs, record.MethodConnector} {
		b.Run(method, func(b *testing.B) {
			var tr *Tracer
			if method != record.MethodNone {
				tr = only(method)(b)
			}
			for b.Loop() {
				if err := exec.Command("true").Run(); err != nil {
					b.Fatal(err)
				}
			}
			if tr != nil {
				take(b, tr)
				b.ReportMetric(float64(tr.CPU())/float64(b.N), "own-ns/op")
			}
		})
	}
}
