package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestWhatSessionsShareIsMadeOnceAndRemovedByTheLast(t *testing.T) {
	made, removed := 0, 0
	hold := func(there bool) func(func() error) error {
		letGo, err := Hold("x", func() (bool, error) { made++; return !there, nil })
		must.OK(t, err)
		return letGo
	}
	remove := func() error { removed++; return nil }
	first, second := hold(false), hold(false)
	_ = first(remove)
	_ = first(remove) // told twice, counted once
	if made != 1 || removed != 0 {
		t.Errorf("made %d, removed %d while it is in use", made, removed)
	}
	_ = second(remove)
	if removed != 1 {
		t.Errorf("removed %d", removed)
	}
	found := hold(true)
	_ = found(remove)
	if made != 2 || removed != 1 {
		t.Errorf("what was found there: made %d, removed %d", made, removed)
	}
	broken := errors.New("no")
	if _, err := Hold("y", func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := Hold("y", func() (bool, error) { return true, nil }); err != nil {
		t.Errorf("after an error: %v", err)
	}
}

func TestWhatWasMadeHalfIsRemoved(t *testing.T) {
	broken, removed := errors.New("no"), 0
	letGo, err := Hold("half", func() (bool, error) { return true, broken })
	if !errors.Is(err, broken) || letGo == nil {
		t.Fatalf("nobody can let go of it: %v", err)
	}
	if _ = letGo(func() error { removed++; return nil }); removed != 1 {
		t.Errorf("removed %d times", removed)
	}
}

func TestALoadGoesOnForAMomentWhenTheRunIsToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, end := context.WithCancel(t.Context())
		ctx, done := Loading(run)
		defer done()
		end()
		began := time.Now()
		if <-ctx.Done(); time.Since(began) != imageEnds {
			t.Errorf("given up after %v", time.Since(began))
		}
	})
}

func TestWhatHadToBeMadeAgainIsRemovedThoughItWasFoundThere(t *testing.T) {
	letGo, err := Hold("renewed", func() (bool, error) { return false, nil })
	must.OK(t, err)
	for _, gone := range []bool{true, false} {
		if err := Renew("renewed", func() (bool, error) { return gone, nil }); err != nil {
			t.Error(err)
		}
	}
	broken := errors.New("no")
	if err := Renew("renewed", func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	removed := 0
	if _ = letGo(func() error { removed++; return nil }); removed != 1 {
		t.Errorf("removed %d times", removed)
	}
}

func TestNamesDiffer(t *testing.T) {
	first, second := NewName("r", 0), NewName("r", 0)
	if first == second || !OfRun(first, "r") || OfRun(first, "q") {
		t.Errorf("%s, %s", first, second)
	}
}
