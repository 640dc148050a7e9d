package tracer

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

func TestAClosedTracerSaysSo(t *testing.T) {
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			if err := exec.Command("true").Run(); err != nil {
				t.Fatal(err)
			}
			take(t, tr)
			if err := tr.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := tr.Take(now()); !errors.Is(err, os.ErrClosed) {
				t.Errorf("Take says %v", err)
			}
			if err := tr.Track(os.Getpid()); !errors.Is(err, os.ErrClosed) {
				t.Errorf("Track says %v", err)
			}
			if tr.CPU() <= 0 || tr.Lost() != 0 || tr.Busy() < -1 {
				t.Errorf("CPU %v, lost %d, busy %d", tr.CPU(), tr.Lost(), tr.Busy())
			}
		})
	}
}

func TestATracerMayBeClosedWhileItIsUsed(t *testing.T) {
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			for range 5 {
				tr := w.open(t)
				var users sync.WaitGroup
				for _, use := range []func() error{
					func() error { _, err := tr.Take(now()); return err },
					func() error { _, err := tr.Take(now() + int64(time.Millisecond)); return err },
					func() error { return tr.Track(os.Getpid()) },
				} {
					users.Go(func() {
						for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
							if err := use(); errors.Is(err, os.ErrClosed) {
								return
							}
							_, _, _ = tr.Busy(), tr.Lost(), tr.CPU()
						}
						t.Error("it was never told that it is closed")
					})
				}
				time.Sleep(5 * time.Millisecond)
				if err := errors.Join(tr.Close(), tr.Close()); err != nil {
					t.Error(err)
				}
				users.Wait()
			}
		})
	}
}

// The sources themselves do not break either, whoever forgets to ask.
func TestASourceThatHasEndedIsNotWaitedFor(t *testing.T) {
	for _, w := range all(t) {
		t.Run(w.name, func(t *testing.T) {
			tr := w.open(t)
			if err := tr.Close(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				began := time.Now()
				if err := tr.source.drain(time.Minute); err == nil || time.Since(began) > 10*time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			}
		})
	}
}

func TestACheckRemovesWhatKilledOnesHaveLeft(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	if tr, err := Open(Options{Instance: "tare-test-left" + strconv.Itoa(os.Getpid()), Only: []string{record.MethodTracefs}}); err != nil {
		t.Skip(err)
	} else if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	root, err := tracefsRoot()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for pid, stays := range map[int]bool{dead.Process.Pid: false, os.Getpid(): false, 1: true} {
		name := "instances/" + checks + strconv.Itoa(pid)
		if err := unix.Mkdirat(root, name, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if root, err := tracefsRoot(); err == nil {
				_ = removeInstance(root, name)
				unix.Close(root)
			}
		})
		for _, m := range Check() {
			if m.Err != nil && strings.Contains(m.Err.Error(), name) {
				t.Error(m.Err)
			}
		}
		if there := unix.Faccessat(root, name, unix.F_OK, 0) == nil; there != stays {
			t.Errorf("%s is there: %v", name, there)
		}
	}
}
