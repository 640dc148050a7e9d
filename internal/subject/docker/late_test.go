package docker

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
)

// indebted is a session on a daemon that was asked for n containers, whose
// answers nobody waited for.
func indebted(t *testing.T, e subject.Engine, n int) *session {
	s := &session{Target: weigh(t, e, "", ViaAPI), env: subject.Env{RunID: "r"}, holds: make([]holding, n), owed: map[string]*debt{}}
	for i := range n {
		s.owed[fmt.Sprintf("tare-r-%d-1", i)] = &debt{lane: i, late: true}
	}
	return s
}

func listed(name string) string {
	return `[{"Id":"1","Names":["/` + name + `"],"State":"created","Labels":{"dev.tare.run":"r"}}]`
}

func TestTheMoreAreLateTheLongerTheyAreWaitedFor(t *testing.T) {
	t.Parallel()
	e, f := serve(t, map[string]string{})
	s := indebted(t, e, 15)
	for n := range 14 { // all but one turn out to be there at once
		delete(s.owed, fmt.Sprintf("tare-r-%d-1", n))
		s.owed[fmt.Sprintf("tare-r-%d-2", n)] = &debt{lane: n, late: true}
	}
	began := time.Now()
	var removed atomic.Bool
	f.list = func() string {
		if time.Since(began) < lateness+500*time.Millisecond || removed.Swap(true) {
			return "[]"
		}
		return listed("tare-r-14-1")
	}
	f.answers["DELETE /containers/1"] = "204 "
	if err := s.Discard(t.Context(), upTo(15)); err != nil {
		t.Error(err)
	}
	if s.owed["tare-r-14-1"] != nil || !removed.Load() {
		t.Errorf("after %v the one that came late was not found", time.Since(began))
	}
	if took := time.Since(began); took > lateness+15*lateForEach+2*time.Second {
		t.Errorf("the others were waited for %v", took)
	}
}

func TestCloseNamesWhatMayComeLater(t *testing.T) {
	e, f := serve(t, map[string]string{})
	s := indebted(t, e, 30)
	for _, d := range s.owed {
		d.waited = true
	}
	f.list = func() string { return "[]" }
	began := time.Now()
	err := s.Close(t.Context())
	if err == nil || !strings.Contains(err.Error(), "may yet make tare-r-0-1, tare-r-1-1") ||
		!strings.Contains(err.Error(), "and 20 more") || !strings.Contains(err.Error(), "tare clean") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("what was waited for already was waited for again, %v", took)
	}
	for name := range s.owed {
		if name != "tare-r-7-1" {
			delete(s.owed, name)
		}
	}
	var removed atomic.Bool
	f.list = func() string {
		if removed.Swap(true) {
			return "[]"
		}
		return listed("tare-r-7-1")
	}
	f.answers["DELETE /containers/1"] = "204 "
	if err := s.Close(t.Context()); err != nil || len(s.owed) != 0 {
		t.Errorf("it came and was removed, and yet: %v, %v", err, s.owed)
	}
}
