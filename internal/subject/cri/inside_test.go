package cri

import (
	"context"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
)

var carried = enginetest.Carried

func environment(t *testing.T, lanes int) subject.Env {
	return subject.Env{RunID: newID(), Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: lanes, Timeout: 60 * time.Second, Limits: subject.DefaultLimits}
}

// openedWith opens a handler for a run whose containers hold more.
func openedWith(t *testing.T, u engineUnderTest, handler string, env subject.Env) *session {
	t.Helper()
	got, err := New(t.Context(), "cri+"+u.name+"/"+handler, u.name, handler, u.e)
	if err != nil {
		t.Fatal(err)
	}
	s, err := got.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		_ = cgroup.Remove(got.(*Target).hs, cgroup.Prefix+env.RunID)
	})
	return s.(*session)
}

// onHandlers runs a test with every engine's runc and crun.
func onHandlers(t *testing.T, test func(t *testing.T, u engineUnderTest, handler string)) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		for _, handler := range []string{"runc", "crun"} {
			t.Run(handler, func(t *testing.T) { test(t, u, handler) })
		}
	})
}
