package thread

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// onFirst calls f in a goroutine on the process's first thread.
func onFirst(t *testing.T, f func()) {
	t.Helper()
	release := make(chan struct{})
	defer close(release)
	for range 1000 {
		found := make(chan bool)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			first := unix.Gettid() == os.Getpid()
			if first {
				runtime.UnlockOSThread()
				f()
				runtime.LockOSThread()
			}
			found <- first
			if !first {
				<-release // so that the next goroutine gets another thread
			}
		}()
		if <-found {
			return
		}
		// The first thread may be the network poller. It returns when a timer is due
		// earlier than an event.
		time.Sleep(time.Microsecond)
	}
	t.Fatal("of a thousand threads none was the first: it has something else to do")
}

func TestTheFirstThreadIsNeverTaken(t *testing.T) {
	// With one thread at a time, a new goroutine runs on the thread of the goroutine that
	// waits for it: the first thread.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	onFirst(t, func() {
		for range 100 {
			err := Apart(func() error {
				if unix.Gettid() == os.Getpid() {
					return errors.New("it is the first thread")
				}
				return nil
			})
			must.OK(t, err)
		}
	})
}

func TestTheThreadEndsWithItsWork(t *testing.T) {
	var tid int
	want := errors.New("what came of it")
	check.Is(t, Apart(func() error { tid = unix.Gettid(); return want }), want)
	task := filepath.Join("/proc/self/task", strconv.Itoa(tid))
	must.Eventually(t, func() string {
		if _, err := os.Stat(task); errors.Is(err, os.ErrNotExist) {
			return ""
		}
		return "still there: " + task
	})
}

// elsewhere is a process with its own mount namespace.
func elsewhere(t *testing.T) (pid int) {
	t.Helper()
	need.Root(t)
	sleep := exec.Command("sleep", "60")
	sleep.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	must.OK(t, sleep.Start())
	t.Cleanup(func() { _, _ = sleep.Process.Kill(), sleep.Wait() })
	return sleep.Process.Pid
}

func TestWorkInAnotherMountNamespaceLeavesTheProcessWhereItIs(t *testing.T) {
	pid := elsewhere(t)
	space := must.Get(os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid)))(t)
	defer space.Close()
	there, _ := os.Readlink(space.Name())
	before, _ := os.Readlink("/proc/self/ns/mnt")
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			err := InMounts(int(space.Fd()), func() error {
				time.Sleep(time.Millisecond)
				here, err := os.Readlink("/proc/thread-self/ns/mnt")
				if here != there {
					err = errors.Join(err, fmt.Errorf("in %s, not %s", here, there))
				}
				return err
			})
			check.Error(t, err, "")
		})
	}
	all.Wait()
	after, _ := os.Readlink("/proc/self/ns/mnt")
	check.That(t, after == before && before != there, "the process is in %s, not in %s", after, before)
}

func TestWhatIsNoNamespaceIsNotEntered(t *testing.T) {
	null, err := os.Open(os.DevNull)
	must.OK(t, err)
	defer null.Close()
	err = InMounts(int(null.Fd()), func() error {
		t.Error("it was called all the same")
		return nil
	})
	check.Is(t, err, unix.EINVAL)
}

func TestWhatAParentStartsLivesAsLongAsItsContextAndNoLonger(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must.OK(t, Parent(ctx, c.Start))
	for range 100 { // these threads end; without Parent, any of them could have started the process
		_ = Apart(func() error { return nil })
	}
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
	check.That(t, err == nil && !strings.Contains(string(state), ") Z"), "%s, %v: it ended", state, err)
	cancel()
	err = c.Wait()
	check.That(t, err != nil && err.Error() == "signal: killed", "it ended: %v", err)
}
