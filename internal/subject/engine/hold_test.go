package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestSharedResourceIsRemovedByTheLastHolder(t *testing.T) {
	made, removed := 0, 0
	hold := func(there bool) func(func() error) error {
		letGo := must.Get(Hold("x", func() (bool, error) { made++; return !there, nil }))(t)
		return letGo
	}
	remove := func() error { removed++; return nil }
	first, second := hold(false), hold(false)
	_ = first(remove)
	_ = first(remove) // the second call has no effect
	if made != 1 || removed != 0 {
		t.Errorf("created %d times, removed %d times while in use", made, removed)
	}
	_ = second(remove)
	check.Equal(t, "removed", removed, 1)
	found := hold(true)
	_ = found(remove)
	if made != 2 || removed != 1 {
		t.Errorf("existing resource: created %d times, removed %d times", made, removed)
	}
	broken := errors.New("no")
	if _, err := Hold("y", func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := Hold("y", func() (bool, error) { return true, nil }); err != nil {
		t.Errorf("hold after an error: %v", err)
	}
}

func TestPartiallyCreatedResourceIsRemoved(t *testing.T) {
	broken, removed := errors.New("no"), 0
	letGo, err := Hold("half", func() (bool, error) { return true, broken })
	if !errors.Is(err, broken) || letGo == nil {
		t.Fatalf("no letGo: %v", err)
	}
	if _ = letGo(func() error { removed++; return nil }); removed != 1 {
		t.Errorf("removed %d times", removed)
	}
}

func TestLoadContinuesBrieflyAfterAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, end := context.WithCancel(t.Context())
		ctx, done := Loading(run)
		defer done()
		end()
		began := time.Now()
		if <-ctx.Done(); time.Since(began) != imageEnds {
			t.Errorf("canceled after %v", time.Since(began))
		}
	})
}

func TestRecreatedResourceIsRemoved(t *testing.T) {
	letGo := must.Get(Hold("renewed", func() (bool, error) { return false, nil }))(t)
	for _, gone := range []bool{true, false} {
		must.OK(t, Renew("renewed", func() (bool, error) { return gone, nil }))
	}
	broken := errors.New("no")
	check.Is(t, Renew("renewed", func() (bool, error) { return false, broken }), broken)
	removed := 0
	if _ = letGo(func() error { removed++; return nil }); removed != 1 {
		t.Errorf("removed %d times", removed)
	}
}

func TestNewNamesAreUnique(t *testing.T) {
	first, second := NewName("r", 0), NewName("r", 0)
	if first == second || !OfRun(first, "r") || OfRun(first, "q") {
		t.Errorf("%s, %s", first, second)
	}
}

// looking is an engine with a fixed list of containers.
type looking struct {
	*fake
	known map[string]State
}

func (l looking) Look(context.Context, []string) (map[string]State, error) { return l.known, nil }

func TestUnknownContainerFailsItsOwnLaneOnly(t *testing.T) {
	s := &Session{o: Options{Target: "docker/runc", Called: "docker", Driver: looking{newFake(), map[string]State{"a": {ID: "1"}, "c": {ID: "3"}}}},
		lanes: []container{{name: "a"}, {name: "b"}, {}, {name: "c"}}}
	boxes, err := s.Sandboxes(t.Context())
	if err == nil || !strings.Contains(err.Error(), "docker no longer knows the container b") || len(boxes) != 2 || boxes[0].Lane != 0 || boxes[1].Lane != 3 || boxes[1].IDs[0] != "3" {
		t.Errorf("%+v, %v", boxes, err)
	}
	got, err := s.StatisticsFrom(t.Context(), "docker stats", func(_ context.Context, states []State) (map[string]Usage, error) {
		return map[string]Usage{"3": {Memory: 7}}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "no longer knows the container b") || !strings.Contains(err.Error(), "has no figures for the container 1") || len(got) != 1 || got[0].Lane != 3 || got[0].Memory != 7 {
		t.Errorf("%+v, %v", got, err)
	}
}
