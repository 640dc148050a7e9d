package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestOnlyWhatAnEngineDoesNotKnowIsUnknown(t *testing.T) {
	// Of podman 5 on cgroup v1, for every command.
	const warning = `time="2026-11-06T16:57:41Z" level=warning msg="Using cgroups-v1 which is deprecated in favor of cgroups-v2 with Podman v5 and will be removed in a future version."`
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&cli.Error{Exit: 125, Output: "Error: inspecting object: no such container nosuch"}, true},
		{&cli.Error{Exit: 1, Output: "Error: localhost/x: image not known"}, true},
		{&cli.Error{Exit: 125, Output: "Error: no such container a\nError: database is locked"}, false},
		{&cli.Error{Exit: 125, Output: warning + "\nError: inspecting object: no such container nosuch"}, true},
		{&cli.Error{Exit: 125, Output: warning + "\nError: database is locked"}, false},
		{&cli.Error{Exit: 125, Output: warning}, false},
		{&cli.Error{Exit: 1, Output: "Error response from daemon: No such image or container or accelerator:a\nInspect error: No such object:a\n"}, true},
		{&cli.Error{Exit: 1, Output: "Can not connect with server\nInspect error: No such object:a\n"}, false},
		{&cli.Error{Exit: 125}, false},
		{&cli.Error{Exit: -1, Output: "no such"}, false},
		{errors.New("no such container"), false},
		{nil, false},
	} {
		if got := Unknown(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

func TestAContainerThatCannotBeInspectedCostsItsOwnLaneOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine")
	script := `#!/bin/sh
case "$*" in
inspect\ *\ *) echo "Error: one of them is broken" >&2; exit 1;;
*broken*) echo "Error: $2 is broken" >&2; exit 1;;
*gone) echo "Error: no such container gone" >&2; exit 1;;
esac
echo "[{\"Id\":\"1\",\"Name\":\"$2\",\"State\":{\"Status\":\"created\"}}]"
`
	must.OK(t, os.WriteFile(path, []byte(script), 0o755))
	s := &Session{late: map[string]bool{}, reach: make([]atomic.Pointer[subject.Reached], 5), o: Options{Called: "podman", Driver: &Commands{Program: cli.Program{Path: path}, Inspect: []string{"inspect"}}}}
	var samples []record.Sample
	for lane, name := range []string{"a", "broken1", "broken2", "gone", "b"} {
		s.lanes, samples = append(s.lanes, container{name: name}), append(samples, record.Sample{Lane: lane})
	}
	s.Settle(t.Context(), subject.Create, samples)
	broken := func(name string) *record.Failure {
		return &record.Failure{Kind: record.FailState, Exit: 1, Command: path + " inspect " + name, Output: "Error: " + name + " is broken",
			Detail: "reported success, but the container's state could not be read: exit status 1"}
	}
	want := []*record.Failure{nil, broken("broken1"), broken("broken2"), contradicted("podman does not know the container"), nil}
	for lane, sample := range samples {
		if !reflect.DeepEqual(sample.Failure, want[lane]) {
			t.Errorf("%s: %+v, want %+v", s.lanes[lane].name, sample.Failure, want[lane])
		}
	}
	boxes, err := s.Sandboxes(t.Context())
	if len(boxes) != 2 || boxes[0].Lane != 0 || boxes[1].Lane != 4 || err == nil || !strings.Contains(err.Error(), "broken2 is broken") ||
		strings.Count(err.Error(), "does not know") != 1 || !strings.Contains(err.Error(), "does not know the container gone any more") {
		t.Errorf("%+v, %v", boxes, err)
	}
}

// noting is an engine that notes a stop at the third look, and one of whose containers
// cannot be read.
type noting struct {
	*fake
	looks int
}

func (n *noting) Look(context.Context, []string) (map[string]State, error) {
	state := State{ID: "1", Status: Running, Said: "running", Pid: os.Getpid()}
	if n.looks++; n.looks > 2 {
		state = State{ID: "1", Status: Exited, Said: "exited"}
	}
	return map[string]State{"a": state}, Unread{"broken": errors.New("it is broken")}
}

func TestWhatIsNotedLateIsAwaitedBesideAContainerThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver := &noting{fake: newFake()}
		s := &Session{late: map[string]bool{}, reach: make([]atomic.Pointer[subject.Reached], 5), o: Options{Called: "podman", Driver: driver, Lag: time.Second}, lanes: []container{{name: "a"}, {name: "broken"}}}
		samples := []record.Sample{{Lane: 0}, {Lane: 1}}
		s.Settle(t.Context(), subject.Stop, samples)
		if f := samples[1].Failure; samples[0].Failure != nil || f == nil || !strings.HasSuffix(f.Detail, "it is broken") || driver.looks != 3 {
			t.Errorf("%+v, %+v after %d looks", samples[0].Failure, f, driver.looks)
		}
	})
}
