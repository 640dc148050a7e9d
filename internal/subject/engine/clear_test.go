package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// fake is an engine on a fake clock.
type fake struct {
	has       map[string]bool
	stays     map[string]int           // removals that a container survives
	comes     map[string]time.Duration // containers that appear after the given delay
	began     time.Time
	removing  time.Duration
	mute      error // error of List
	image     bool
	loaded    time.Time // time at which the image of an abandoned load appears
	imports   int
	drops     int
	broken    error         // error of Import
	loads     time.Duration // how long an abandoned load continues
	undropped error         // error of Drop
	freed     time.Time     // when a drop starts to succeed; zero: never
}

func newFake(names ...string) *fake {
	f := &fake{has: map[string]bool{}, stays: map[string]int{}, comes: map[string]time.Duration{}, began: time.Now()}
	for _, name := range names {
		f.has[name] = true
	}
	return f
}

func (f *fake) Look(context.Context, []string) (map[string]State, error) { return nil, nil }

func (f *fake) Output(context.Context, []State) (string, error) { return "", nil }

func (f *fake) List(context.Context) ([]string, error) {
	for name, after := range f.comes {
		if time.Since(f.began) >= after {
			f.has[name] = true
			delete(f.comes, name)
		}
	}
	return slices.Sorted(maps.Keys(f.has)), f.mute
}

func (f *fake) Remove(_ context.Context, names []string) error {
	time.Sleep(f.removing)
	for _, name := range names {
		if f.stays[name]--; f.stays[name] < 0 {
			delete(f.has, name)
		}
	}
	return nil
}

func (f *fake) Import(context.Context) (bool, error) {
	if f.loads > 0 {
		f.loaded = time.Now().Add(f.loads)
		return true, context.DeadlineExceeded
	}
	if f.broken != nil || f.image {
		return false, f.broken
	}
	f.image = true
	f.imports++
	return true, nil
}

func (f *fake) Drop(context.Context, string) error {
	f.image = false
	f.drops++
	if !f.freed.IsZero() && !time.Now().Before(f.freed) {
		return nil
	}
	return f.undropped
}

func TestFailedRemovalIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a", "b")
		f.removing, f.stays["b"] = 2*clearTimeout, 1
		if left, err := NewFlight("").Clear(t.Context(), f, []string{"a", "b"}, anyName, 0); err != nil || left != nil {
			t.Errorf("%q, %v", left, err)
		}
	})
}

func TestRemovalTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a", "b")
		f.removing, f.stays["b"] = 15*time.Second, 1000
		began := time.Now()
		left, err := NewFlight("").Clear(t.Context(), f, []string{"a", "b"}, anyName, 0)
		if !errors.Is(err, errStill) || !slices.Equal(left, []string{"b"}) || time.Since(began) > 15*time.Second+clearTimeout+2*15*time.Second {
			t.Errorf("after %v: %q, %v", time.Since(began), left, err)
		}
	})
}

func TestQuietPeriodGrowsWithAbandonedCalls(t *testing.T) {
	for _, c := range []struct {
		outstanding int
		comes, want time.Duration // want is the minimum; the maximum is two seconds more
	}{
		{0, time.Hour, 0},
		{1, time.Hour, 1050 * time.Millisecond},
		{100, time.Hour, 6 * time.Second},
		{1000, time.Hour, 15 * time.Second},
		{100, 5500 * time.Millisecond, 11500 * time.Millisecond}, // the quiet period restarts
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.comes["late"] = c.comes
			left, err := NewFlight("").Clear(t.Context(), f, nil, anyName, Late(c.outstanding))
			took := time.Since(f.began)
			if err != nil || len(left)+len(f.has) != 0 || took < c.want || took > c.want+2*time.Second {
				t.Errorf("%d outstanding: after %v: %q, %v", c.outstanding, took, left, err)
			}
		})
	}
}

func TestContainersThatAppearAfterTheTimeoutAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		quiet := Late(1000)
		for i := range 6 {
			f.comes[fmt.Sprint("late-", i)] = time.Duration(i+1) * 9 * time.Second
		}
		if left, err := NewFlight("").Clear(t.Context(), f, nil, anyName, quiet); err != nil || len(f.has)+len(f.comes) != 0 {
			t.Errorf("%q, %v; %v %v", left, err, f.has, f.comes)
		}
	})
}

// on returns a session on a fake engine after an interrupted batch.
func on(t *testing.T, f *fake, lanes int) *Session {
	t.Helper()
	s, err := Open(t.Context(), Options{
		Target: "fake", Called: "the engine", Driver: f, Image: t.Name(),
		Env: subject.Env{RunID: "r", Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: lanes, Timeout: time.Second},
	})
	must.OK(t, err)
	samples := make([]record.Sample, lanes)
	for n := range lanes {
		s.hold(subject.Create, n)
		samples[n] = record.Sample{Lane: n, Failure: &record.Failure{Kind: record.FailInterrupted}}
	}
	s.Settle(t.Context(), subject.Create, samples)
	return s
}

func TestLateContainersOfAnInterruptedBatchAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := on(t, f, 100)
		f.comes[s.lanes[0].name], f.comes[s.lanes[99].name] = 1500*time.Millisecond, 5*time.Second
		all := make([]int, 100)
		for n := range all {
			all[n] = n
		}
		if err := s.Discard(t.Context(), all); err != nil || len(f.has)+len(f.comes) != 0 {
			t.Errorf("%v; containers %v, later ones %v", err, f.has, f.comes)
		}
		began := time.Now()
		if err := s.Close(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("Close waited again: %v after %v", err, time.Since(began))
		}
	})
}

func TestCloseReportsContainersThatMayRemain(t *testing.T) {
	for _, c := range []struct {
		name  string
		upset func(f *fake) time.Duration // how long Close may take
		want  string
	}{
		{"unresponsive engine", func(f *fake) time.Duration { f.mute = errors.New("no answer"); return time.Minute }, "no answer"},
		{"expired timeout", func(*fake) time.Duration { return time.Second / 2 }, errLate.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			s := on(t, f, 2)
			first, second := s.lanes[0].name, s.lanes[1].name
			s.hold(subject.Create, 0) // the lane's earlier container may still exist
			ctx, cancel := context.WithTimeout(t.Context(), c.upset(f))
			defer cancel()
			err := s.Close(ctx)
			if err == nil || !strings.Contains(err.Error(), "the engine may still have ") || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), first+", ") || !strings.Contains(err.Error(), second) {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

func TestMissingImageIsImportedAgainAndRemovedAtTheEnd(t *testing.T) {
	f := newFake()
	f.image = true // of an earlier run
	s, err := Open(t.Context(), Options{Target: "fake", Driver: f, Image: t.Name(), Env: subject.Env{Dir: t.TempDir(), StateDir: t.TempDir()}})
	must.OK(t, err)
	for _, c := range []struct {
		op   subject.Op
		want int
	}{{subject.Create, 1}, {subject.Run, 1}, {subject.Start, 0}, {subject.Stop, 0}, {subject.Remove, 0}} {
		f.image, f.imports = false, 0
		if err := s.ready(t.Context(), c.op); err != nil || f.imports != c.want {
			t.Errorf("%s: imported %d times, %v", c.op, f.imports, err)
		}
	}
	f.broken = errors.New("no space")
	check.Is(t, s.ready(t.Context(), subject.Create), f.broken)
	if err := s.Close(t.Context()); err != nil || f.drops != 1 {
		t.Errorf("removed %d times, %v", f.drops, err)
	}
}

func TestCloseRemovesAndReportsKataLeaks(t *testing.T) {
	s := on(t, newFake(), 1)
	mount := t.TempDir()
	s.hs, s.sandboxes.ids["abc"] = []cgroup.Hierarchy{{Mount: mount}}, true
	for _, id := range []string{"abc", "others"} {
		must.OK(t, os.MkdirAll(filepath.Join(mount, "kata_overhead", id), 0o755))
	}
	if err := s.Close(t.Context()); err != nil || !slices.Equal(s.Leaks(), []string{"/kata_overhead/abc"}) {
		t.Errorf("%q, %v", s.Leaks(), err)
	}
	must.Get(os.Stat(filepath.Join(mount, "kata_overhead", "others")))(t)
}

// Images implements Driver.
func (f *fake) Images(context.Context) ([]string, error) {
	if f.loads > 0 && time.Now().Before(f.loaded) {
		return nil, nil
	}
	return []string{"first", "second"}, nil
}

func TestImageOfAnAbandonedLoadIsRemovedWhenItAppears(t *testing.T) {
	for name, c := range map[string]struct {
		loads time.Duration
		drops int
		left  bool
	}{
		"appears soon":   {imageComes / 2, 2, false},
		"appears later":  {time.Hour, 1, true},
		"existed before": {time.Nanosecond, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.loads = c.loads
				_, err := Open(t.Context(), Options{Target: "fake", Called: "the engine", Driver: f, Image: t.Name(), Ref: "first",
					Env: subject.Env{Dir: t.TempDir(), StateDir: t.TempDir()}})
				check.Is(t, err, context.DeadlineExceeded)
				left := strings.Contains(fmt.Sprint(err), "the engine may still be loading the image first")
				check.That(t, f.drops == c.drops && left == c.left && errors.As(err, &leftError{}) == c.left, "%d drops: %v", f.drops, err)
			})
		})
	}
}

func TestCleanRemovesImagesDespiteAStuckContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		f.stays["a"], f.undropped = 1000000, errors.New("the image is in use")
		found, err := Clean(t.Context(), f, "fake", "container", "r", false)
		if !errors.Is(err, errStill) || !errors.Is(err, f.undropped) || f.drops != 2 || !slices.Equal(found, []string{"container a", "image first", "image second"}) {
			t.Errorf("%d images dropped, found %q: %v", f.drops, found, err)
		}
	})
}

func TestImageInUseIsRemovedOnceUnused(t *testing.T) {
	for name, c := range map[string]struct {
		free time.Duration // when it becomes unused
		why  string
		gone bool
	}{
		"temporarily in use":         {90 * time.Second, "the image is in use", true},
		"permanently in use":         {time.Hour, "the image is in use", false},
		"other error is not retried": {time.Second, "the disk is broken", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				began := time.Now()
				f.undropped, f.freed = errors.New(c.why), began.Add(c.free)
				_, err := Clean(t.Context(), f, "fake", "container", "r", false)
				if (err == nil) != c.gone || time.Since(began) > 2*orphanLag+time.Minute {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}
