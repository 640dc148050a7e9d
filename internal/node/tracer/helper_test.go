package tracer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// partVariable makes this test binary a process of parts. Its value is the name of the part.
const partVariable = "TARE_TEST_TRACER"

var parts = map[string]func(args []string){
	"exit": func(args []string) { os.Exit(number(args[0])) },
	"burn": func(args []string) { burn(time.Duration(number(args[0])) * time.Millisecond) },
	"open": func([]string) { fmt.Println(Check()) },
	"open without BTF": func([]string) {
		const place = "/sys/kernel/btf"
		if err := errors.Join(unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", place, "tmpfs", 0, "")); err != nil {
			panic(err)
		}
		err := Check()
		fmt.Println(err, errors.Is(err, errUnsupported))
	},
	"hang":  func([]string) { fmt.Println("hangs"); time.Sleep(time.Minute) },
	"again": func(args []string) { execute(args) },
	"other": func(args []string) { onAnother(func() { execute(args) }); select {} },
	"leaderless": func(args []string) {
		onAnother(func() {
			time.Sleep(100 * time.Millisecond) // the first thread has exited by then
			os.Exit(number(args[0]))
		})
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	},
	"threads": func(args []string) {
		n := number(args[0])
		done := make(chan bool)
		for range n {
			go func() {
				runtime.LockOSThread() // never unlocked, so each goroutine has its own thread
				burn(time.Duration(number(args[1])) * time.Millisecond)
				done <- true
			}()
		}
		for range n {
			<-done
		}
	},
	"burners": func(args []string) { // the process is killed while its threads use CPU time
		for range number(args[0]) {
			go burn(time.Minute)
		}
		burn(time.Duration(number(args[1])) * time.Millisecond)
		os.Exit(7)
	},
	"tree": func(args []string) {
		// os/exec is unsuitable: it forks once more to detect kernel features.
		_ = os.Setenv(partVariable, "exit")
		for i := range number(args[0]) {
			pid, err := syscall.ForkExec("/proc/self/exe", []string{"exit", strconv.Itoa(i)}, &syscall.ProcAttr{Env: os.Environ()})
			if err == nil {
				_, err = syscall.Wait4(pid, nil, 0, nil)
			}
			if err != nil {
				panic(err)
			}
		}
	},
	"wait": func(args []string) { // waits for a line and uses CPU time, then uses as much in a child
		fmt.Println("waits")
		_, _ = os.Stdin.Read(make([]byte, 1))
		burn(time.Duration(number(args[0])) * time.Millisecond)
		if err := part("burn", args[0]).Run(); err != nil {
			panic(err)
		}
	},
}

func init() {
	if os.Getenv(partVariable) != "" {
		runtime.LockOSThread() // main runs on the first thread
	}
}

func TestMain(m *testing.M) {
	if name := os.Getenv(partVariable); name != "" {
		parts[name](os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// burn uses the given CPU time on the current thread.
func burn(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var begin, at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &begin)
	for at = begin; at.Nano()-begin.Nano() < int64(d); {
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at)
	}
}

func execute(args []string) {
	_ = os.Setenv(partVariable, args[0])
	panic(syscall.Exec("/proc/self/exe", args, os.Environ()))
}

// onAnother calls f on another thread than the first.
func onAnother(f func()) {
	go func() {
		runtime.LockOSThread()
		f()
	}()
}

// part returns a command that runs this test binary as a part.
func part(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{name}, args...)
	cmd.Env = append(os.Environ(), partVariable+"="+name)
	return cmd
}

// way is a variant of the BPF programs under test.
type way struct {
	name string
	open func(t testing.TB) *Tracer
}

// ways are the programs for this kernel, and those for older kernels.
var ways = []way{{"as this kernel is", watch}, {"as before Linux 6.15", watchOld}}

// each runs a test with every variant of the programs.
func each(t *testing.T, test func(t *testing.T, open func(testing.TB) *Tracer)) {
	t.Helper()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { test(t, w.open) })
	}
}

func watch(t testing.TB) *Tracer { return opened(t, Open) }

func watchOld(t testing.TB) *Tracer {
	return opened(t, func() (*Tracer, error) { return open(false) })
}

// opened opens a tracer for one test.
func opened(t testing.TB, open func() (*Tracer, error)) *Tracer {
	t.Helper()
	need.Root(t)
	tr := must.Get(open())(t)
	t.Cleanup(func() { must.OK(t, tr.Close()) })
	return tr
}

// take returns all events until now. It waits longer than Take, because the machine may be
// busy.
func take(t testing.TB, tr *Tracer) []Event {
	t.Helper()
	return takeUntil(t, tr, now())
}

func takeUntil(t testing.TB, tr *Tracer, until int64) []Event {
	t.Helper()
	events, err := tr.Take(until)
	for n := 0; err != nil && n < 20; n++ {
		var more []Event
		more, err = tr.Take(until)
		events = append(events, more...)
	}
	must.OK(t, err)
	return events
}

// of returns the events of a process and its descendants.
func of(pid int, events []Event) []Event {
	family := map[int]bool{pid: true}
	var out []Event
	for _, e := range events {
		if e.Kind == Fork && family[e.Parent] {
			family[e.Pid] = true
		}
		if family[e.Pid] {
			out = append(out, e)
		}
	}
	return out
}

// story summarizes events.
func story(events []Event) string {
	var words []string
	for _, e := range events {
		switch e.Kind {
		case Fork:
			words = append(words, "fork")
		case Exec:
			words = append(words, strings.Join(e.Args, " "))
		case Exit:
			words = append(words, fmt.Sprintf("exit=%d", e.Status))
		}
	}
	return strings.Join(words, "; ")
}

func inOrder(events []Event) bool {
	return slices.IsSortedFunc(events, func(a, b Event) int { return int(a.Time - b.Time) })
}

// usage returns the CPU time of a command according to wait4 in ns.
func usage(cmd *exec.Cmd) int64 {
	r := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return r.Utime.Nano() + r.Stime.Nano()
}
