package tracer

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

func TestAClosedTracerSaysSo(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
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

func TestATracerMayBeClosedWhileItIsUsed(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		for range 5 {
			tr := open(t)
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

// The sources themselves do not break either, whoever forgets to ask.
func TestASourceThatHasEndedIsNotWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) *Tracer) {
		tr := open(t)
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
