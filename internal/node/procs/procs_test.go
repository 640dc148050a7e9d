package procs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestReusedPidIsNotTheSameProcess(t *testing.T) {
	id := must.Get(Identify(os.Getpid()))(t)
	before, err := id.CPU()
	must.OK(t, err)
	after := before
	begin := time.Now()
	for after-before < 30e6 && time.Since(begin) < time.Minute && err == nil {
		after, err = id.CPU()
	}
	// At most two threads spin here: that of the test and the garbage collector.
	took := time.Since(begin).Nanoseconds()
	check.That(t, err == nil && after-before >= 30e6 && after-before <= 4*took, "after %d ns of spinning: CPU time %d ns, %v", took, after-before, err)
	pss, err := id.PSS()
	check.That(t, err == nil && pss >= 1<<20, "PSS %d, %v", pss, err)
	another := ID{Pid: id.Pid, Start: id.Start + 1}
	_, err = another.CPU()
	check.That(t, errors.Is(err, ErrGone), "a process with a reused PID was accepted: %v", err)
	_, err = another.PSS()
	check.That(t, errors.Is(err, ErrGone), "a process with a reused PID was accepted: %v", err)
}

func TestEndedProcessIsGone(t *testing.T) {
	cmd := exec.Command("true")
	must.OK(t, cmd.Run())
	_, err := Identify(cmd.Process.Pid)
	check.Is(t, err, ErrGone)
	_, err = (ID{Pid: cmd.Process.Pid}).PSS()
	check.Is(t, err, ErrGone)
}

func TestListenerOfASocketIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b.sock")
	l := must.Get(net.Listen("unix", path))(t)
	check.Equal(t, "pid", must.Get(Listener(path))(t), os.Getpid())
	l.Close()
	pid, err := Listener(path)
	check.That(t, err != nil, "pid %d listens on a closed socket", pid)
}

// A daemon may listen, fork and exit. Then an unrelated process may get its PID. In this test
// this process has the PID that has listened, and its child has the socket.
func TestOnlyTheProcessWithTheSocketIsItsListener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	f := must.Get(l.File())(t)
	child := exec.Command("sleep", "600")
	child.ExtraFiles = []*os.File{f}
	must.OK(t, errors.Join(child.Start(), f.Close(), l.Close()))
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	check.Equal(t, "pid", must.Get(Listener(path))(t), child.Process.Pid)
}

// A daemon may bind its socket by another path of the same file, for example below
// /var/run.
func TestListenerIsFoundByAnyPathOfItsSocket(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "run"), 0o700))
	must.OK(t, os.Symlink("run", filepath.Join(dir, "var")))
	l := must.Get(net.Listen("unix", filepath.Join(dir, "var", "d.sock")))(t)
	defer l.Close()
	for _, name := range []string{"var", "run"} {
		check.Equal(t, fmt.Sprintf("%s: pid", name), must.Get(Listener(filepath.Join(dir, name, "d.sock")))(t), os.Getpid())
	}
}

// Both systemd and the daemon have a socket open that systemd has created. Only the file
// identifies the socket.
func TestSocketIsIdentifiedByItsFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one.sock", "two.sock"} {
		l := must.Get(net.Listen("unix", filepath.Join(dir, name)))(t)
		defer l.Close()
	}
	one := must.Get(socketOf(filepath.Join(dir, "one.sock")))(t)
	two, err := socketOf(filepath.Join(dir, "two.sock"))
	check.That(t, err == nil && one != two, "%d %d %v", one, two, err)
	held, err := holdsDescriptor(os.Getpid(), fmt.Sprintf("socket:[%d]", one))
	check.That(t, held, "this process does not have the socket open: %v", err)
	_, err = socketOf(filepath.Join(dir, "none.sock"))
	check.That(t, err != nil, "a missing socket was found")
	plain := filepath.Join(dir, "plain")
	must.OK(t, os.WriteFile(plain, nil, 0o600))
	inode, err := socketOf(plain)
	check.That(t, err != nil, "a regular file is socket %d", inode)
}

// A client or a grep may have the path of the socket as an argument, too.
func TestProcessWithTheSocketAsArgumentIsNotTheListener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	cmd := exec.Command("sh", "-c", "sleep 30; : "+path)
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	pid, err := Listener(path)
	check.That(t, err != nil, "pid %d", pid)
}

func TestProcessesWithTheIDInAnArgumentAreFound(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	exact := child(t, "conmon", "/run/x/"+id+"/config")
	child(t, "conmon", id+"0")
	child(t, "grep", id)
	got := Mentioning([]string{id, ""})
	must.That(t, len(got) == 1 && got[0].Pid == exact && got[0].Role == record.RoleMonitor, "%+v", got)
}

// child runs a shell under another name until the test ends, and returns its pid.
func child(t *testing.T, name string, args ...string) (pid int) {
	t.Helper()
	cmd := exec.Command("sh")
	cmd.Args = append([]string{name, "-c", "echo; read line", "sh"}, args...)
	begin(t, cmd)
	return cmd.Process.Pid
}

// begin starts a command and waits for its first output. When exec.Cmd.Start returns, the
// process may not have its new name, arguments and environment yet.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	_, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	must.OK(t, errors.Join(err, err2, cmd.Start()))
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	must.Get(out.Read(make([]byte, 1)))(t)
}

func TestChildrenAreFound(t *testing.T) {
	pid := child(t, "a", "b c")
	args := ArgsOf(pid)
	check.That(t, slices.Contains(Children(os.Getpid()), pid) && Name(pid) == "a" && args[len(args)-1] == "b c", "the child was not found: %q", args)
}

func TestVariableIsFoundInALargeEnvironment(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo; read line")
	for i := range 15 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("LARGE%d=%s", i, strings.Repeat("x", 100<<10)))
	}
	cmd.Env = append(cmd.Env, RunVariable+"=abc")
	begin(t, cmd)
	all := EnvironmentOf(cmd.Process.Pid)
	check.That(t, slices.Contains(all, RunVariable+"=abc"), "none of the %d variables is that of the run", len(all))
}

func TestCPUTimeIncludesEndedThreads(t *testing.T) {
	id := must.Get(Identify(os.Getpid()))(t)
	before := must.Get(id.CPU())(t)
	const burnt = 200 * time.Millisecond
	var threads sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			runtime.LockOSThread() // never unlocked, so the thread exits with the goroutine
			var begin, now unix.Timespec
			_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &begin)
			for now = begin; now.Nano()-begin.Nano() < int64(burnt)/4; {
				_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
			}
		})
	}
	threads.Wait()
	time.Sleep(50 * time.Millisecond) // the threads need time to exit
	after := must.Get(id.CPU())(t)
	got := time.Duration(after - before)
	check.That(t, got >= burnt && got <= 10*burnt, "ended threads used %v, but added %v", burnt, got)
}
