package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestUnknownMatchesOnlyMissingObjects(t *testing.T) {
	// podman 5 on cgroup v1 prints this warning for every command.
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
		check.Equal(t, c.err, Unknown(c.err), c.want)
	}
}

func TestUnreadableContainerFailsItsOwnLaneOnly(t *testing.T) {
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
		check.Equal(t, s.lanes[lane].name, sample.Failure, want[lane])
	}
	boxes, err := s.Sandboxes(t.Context())
	if len(boxes) != 2 || boxes[0].Lane != 0 || boxes[1].Lane != 4 || err == nil || !strings.Contains(err.Error(), "broken2 is broken") ||
		strings.Count(err.Error(), "no longer knows") != 1 || !strings.Contains(err.Error(), "no longer knows the container gone") {
		t.Errorf("%+v, %v", boxes, err)
	}
}

func TestImageBelongsToTheRunOnlyIfItWasLoaded(t *testing.T) {
	img := must.Get(image.Probe())(t)
	path := filepath.Join(t.TempDir(), "engine")
	must.OK(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	none, broken := &cli.Error{Exit: 125, Output: "Error: image not known"}, errors.New("database is locked")
	type answer struct {
		id  string
		err error
	}
	for _, c := range []struct {
		name          string
		before, after answer
		made          bool
		want          string // in the error
	}{
		{name: "present", before: answer{img.ID, nil}},
		{name: "missing", before: answer{"", none}, after: answer{img.ID, nil}, made: true},
		{name: "replaced", before: answer{"sha256:1", nil}, after: answer{img.ID, nil}, made: true},
		{name: "look-up fails", before: answer{"", broken}, want: "look for the workload's image: database is locked"},
		{name: "wrong image after the load", before: answer{"", none}, after: answer{"sha256:1", nil}, made: true, want: img.Ref + " now has the id sha256:1, expected " + img.ID},
		{name: "no image after the load", after: answer{"", nil}, made: true, want: "podman does not list the image " + img.Ref},
		{name: "look-up after the load fails", before: answer{"", none}, after: answer{"", broken}, made: true, want: "reported success, but: database is locked"},
	} {
		answers := []answer{c.before, c.after}
		e := &Commands{Called: "podman", Program: cli.Program{Path: path}, Image: img, Env: subject.Env{Dir: t.TempDir()}, Load: []string{"load"},
			ImageID: func(context.Context) (string, error) {
				now := answers[0]
				answers = answers[1:]
				return now.id, now.err
			}}
		made, err := e.Import(t.Context())
		if made != c.made || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", c.name, made, err)
		}
	}
}

// noting is an engine that reports a stop at the third query. One of its containers is
// unreadable.
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

func TestLateStateIsAwaitedDespiteAnUnreadableContainer(t *testing.T) {
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

func TestGroupNameMatchesWholeIDs(t *testing.T) {
	const id = "tare-x-0-1"
	for _, c := range []struct {
		groups string
		want   bool
	}{
		{"4:memory:/tare-run-x/c/tare-x-0-1\n", true},
		{"0::/tare-run-x/c/tare-x-0-1/below\n", true},
		{"1:name=systemd:/\n2:cpu,cpuacct:/system.slice/cri-containerd-tare-x-0-1.scope\n", true},
		{"2:pids:/pod/crio-tare-x-0-1\n", true},
		{"2:pids:/a:b/tare-x-0-1\n", true},
		{"4:memory:/tare-run-x/c/tare-x-0-12\n", false},
		{"4:memory:/tare-run-x/c\n", false},
		{"0::/\n", false},
		{"nonsense tare-x-0-1\n", false},
		{"", false},
	} {
		check.Equal(t, c.groups, bears(procs.ParseGroups(c.groups), id), c.want)
	}
}

// The first process of a VM is in the PID namespace of the machine.
func TestKillCommandsSparesTheHostPIDNamespace(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	must.OK(t, sleep.Start())
	b := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", sleep.Process.Pid)))(t)
	line, _, _ := strings.Cut(string(b), "\n")
	id := path.Base(line) // the group of this test
	for _, first := range []int{0, -1, 1, os.Getpid(), 1 << 22} {
		KillCommands(id, first)
	}
	check.Error(t, sleep.Process.Signal(syscall.Signal(0)), "")
	_ = sleep.Process.Kill()
	if err := sleep.Wait(); err == nil || sleep.ProcessState.ExitCode() != -1 {
		t.Errorf("%v", err)
	}
}
