package tracer

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestEventsOfAProcess(t *testing.T) {
	long := strings.Repeat("x", 6000)
	tests := []struct {
		name string
		cmd  func() *exec.Cmd
		want string
	}{
		{"exit code 0", func() *exec.Cmd { return part("exit", "0") }, "fork; exit 0; exit=0"},
		{"exit code 42", func() *exec.Cmd { return part("exit", "42") }, "fork; exit 42; exit=42"},
		{"arguments with blanks and line breaks, and an empty one", func() *exec.Cmd { return part("exit", "3", "a b", "", "c\nd", "ü") },
			"fork; exit 3 a b  c\nd ü; exit=3"},
		{"program that executes another one", func() *exec.Cmd { return part("again", "exit", "5") },
			"fork; again exit 5; exit 5; exit=5"},
		{"program executed by a later thread", func() *exec.Cmd { return part("other", "exit", "6") },
			"fork; other exit 6; exit 6; exit=6"},
		{"first thread ends first", func() *exec.Cmd { return part("leaderless", "9") },
			"fork; leaderless 9; exit=9"},
		{"threads are not processes", func() *exec.Cmd { return part("threads", "8", "1") },
			"fork; threads 8 1; exit=0"},
		{"children, in order", func() *exec.Cmd { return part("tree", "3") },
			"fork; tree 3; fork; exit 0; exit=0; fork; exit 1; exit=1; fork; exit 2; exit=2; exit=0"},
		{"truncated arguments", func() *exec.Cmd { return part("exit", "0", long) }, "fork; exit 0 " + long[:4096-7] + "; exit=0"},
	}
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				cmd := tt.cmd()
				begin := now()
				_ = cmd.Run()
				events := of(cmd.Process.Pid, take(t, tr))
				end := now()
				check.Equal(t, "story", story(events), tt.want)
				checkTimes(t, events, begin, end)
				for _, e := range events {
					cut := len(tt.want) > 4096 && e.Kind == Exec
					check.That(t, e.Cut == cut, "cut is %v in %+v", e.Cut, e)
					check.That(t, e.Kind != Exec || e.File == "/proc/self/exe", "executed file %q", e.File)
					check.That(t, e.Pid != cmd.Process.Pid || e.Parent == os.Getpid(), "parent %d, want %d", e.Parent, os.Getpid())
				}
				check.Equal(t, "lost events", tr.Lost(), 0)
			})
		}
	})
}

// checkTimes verifies the order and the times of events.
func checkTimes(t *testing.T, events []Event, begin, end int64) {
	t.Helper()
	check.That(t, inOrder(events), "events are not sorted by time: %+v", events)
	used := map[int]int64{}
	for _, e := range events {
		check.That(t, e.Time >= begin && e.Time <= end, "time %d is not between %d and %d", e.Time, begin, end)
		check.That(t, (e.CPU >= used[e.Pid] || e.CPU == -1) && e.CPU <= end-begin+1e9, "CPU time %d after %d", e.CPU, used[e.Pid])
		used[e.Pid] = e.CPU
	}
}

func TestSignalIsInTheStatus(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			cmd := part("hang")
			out := must.Get(cmd.StdoutPipe())(t)
			must.OK(t, cmd.Start())
			_, _ = out.Read(make([]byte, 1))
			_ = cmd.Process.Signal(signal)
			_ = cmd.Wait()
			check.Equal(t, "story", story(of(cmd.Process.Pid, take(t, tr))), fmt.Sprintf("fork; hang; exit=%d", 128+int(signal)))
		}
	})
}

// wait4 includes work after the last event, for example freeing memory. The tracer does not.
func TestCPUTimeMatchesWait4(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		for _, args := range [][]string{
			{"burn", "1"}, {"burn", "3"}, {"burn", "50"}, {"burn", "300"}, {"exit", "0"},
			{"threads", "6", "30"}, {"threads", "40", "1"}, {"burners", "4", "60"},
		} {
			cmd := part(args[0], args[1:]...)
			_ = cmd.Run()
			events := of(cmd.Process.Pid, take(t, tr))
			last := events[len(events)-1]
			want := usage(cmd)
			d := max(last.CPU-want, want-last.CPU)
			t.Logf("%v: %v, wait4: %v", args, time.Duration(last.CPU), time.Duration(want))
			slack := int64(10e6) // for freeing memory, of which the race detector uses a lot
			check.That(t, d <= max(want/10, slack), "%v: %v, wait4: %v", args, time.Duration(last.CPU), time.Duration(want))
		}
	})
}

func TestShortProcessesAreNotLost(t *testing.T) {
	const n = 1000
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		pids := make(map[int]int, n)
		for range n {
			cmd := exec.Command("true", "x")
			must.OK(t, cmd.Run())
			pids[cmd.Process.Pid]++
		}
		// Another process may have had the same PID earlier or later.
		seen, ours := map[int]map[Kind]int{}, map[int]bool{}
		for _, e := range take(t, tr) {
			if e.Kind == Fork {
				ours[e.Pid] = e.Parent == os.Getpid()
			}
			if pids[e.Pid] > 0 && ours[e.Pid] {
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
		check.That(t, wrong == 0 && tr.Lost() == 0, "%d events are missing or duplicate, %d reported as lost", wrong, tr.Lost())
	})
}

func TestEventIsReturnedOnceAndNotEarly(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		first, second := part("exit", "1"), part("exit", "2")
		_ = first.Run()
		middle := now()
		_ = second.Run()
		events := takeUntil(t, tr, middle)
		check.Equal(t, "events of the first process", len(of(first.Process.Pid, events)), 3)
		check.Equal(t, "early events of the second process", len(of(second.Process.Pid, events)), 0)
		events = take(t, tr)
		check.Equal(t, "repeated events of the first process", len(of(first.Process.Pid, events)), 0)
		check.Equal(t, "events of the second process", len(of(second.Process.Pid, events)), 3)
		begin := time.Now()
		_, err := tr.Take(now() + int64(time.Hour))
		check.That(t, time.Since(begin) <= time.Minute, "%v, after %v", err, time.Since(begin))
	})
}

func TestOnlyCNIEnvironmentIsRead(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
		for _, before := range []int{0, 100, 9000} {
			cmd := part("burn", "20")
			cmd.Env = append(cmd.Env, "PASSWORD="+strings.Repeat("secret", before/6), "CNI_COMMAND=ADD", "CNI_CONTAINERID=c0ffee", "CNI_IFNAME=eth0", "CNI_ARGS=K8S_POD_NAME=secret", "CNI_PATH=/opt/cni/bin")
			must.OK(t, cmd.Run())
			events := of(cmd.Process.Pid, take(t, tr))
			i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == Exec })
			must.That(t, i >= 0, "no exec event")
			check.Equal(t, before, events[i].CNI, (CNI{"ADD", "c0ffee", "eth0"}))
			check.Lacks(t, "events", fmt.Sprintf("%+v", events), "secret")
		}
	})
}
