package podman

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func TestANameThatIsTakenIsAFailureOfItsLaneAlone(t *testing.T) {
	p := engines.Podman(t)
	s := open(t, at(p), "crun", 2)
	enginetest.Must(t, s, subject.Create, 1)
	var run string
	var n int
	if _, err := fmt.Sscanf(strings.ReplaceAll(s.Held()[0].Name, "-", " "), "tare %s 0 %d", &run, &n); err != nil {
		t.Fatal(err)
	}
	podman, err := program("podman", at(p))
	must.OK(t, err)
	if _, err := podman.Run(t.Context(), "create", "--pull", "never", "--network", "none", "--name", engine.Name(run, 0, n+1), p.Images(t)[0], "x"); err != nil {
		t.Fatal(err)
	}
	samples := enginetest.Do(t, s, subject.Create, 2)
	if f := samples[0].Failure; f == nil || !strings.Contains(f.Detail+f.Output, "already in use") || f.Command == "" {
		t.Errorf("%+v", f)
	}
	if f := samples[1].Failure; f != nil {
		t.Errorf("the other lane: %+v", *f)
	}
	if err := s.Close(t.Context()); err != nil || len(left(p)(t)) > 0 { // the name is of the run, so the container goes too
		t.Errorf("%v, left %q", err, left(p)(t))
	}
}

func TestARuntimeThatOnlySaysThatItStartedIsFound(t *testing.T) {
	p := engines.Podman(t)
	runc := need.Tool(t, "runc")
	// It starts the container, ends it at once, and reports success.
	liar := filepath.Join(t.TempDir(), "liar")
	script := fmt.Sprintf("#!/bin/sh\n%s \"$@\" || exit\ncase \" $* \" in *' start '*) for id; do :; done; %s kill \"$id\" KILL; sleep 0.3;; esac\nexit 0\n", runc, runc)
	must.OK(t, os.WriteFile(liar, []byte(script), 0o755))
	s := open(t, at(p), liar, 2)
	enginetest.Must(t, s, subject.Create, 2)
	for _, sample := range enginetest.Do(t, s, subject.Start, 2) {
		f := sample.Failure
		if f == nil || f.Kind != record.FailState && f.Kind != record.FailExit {
			t.Fatalf("%+v", f)
		}
		t.Logf("%+v", *f)
	}
}

func TestCrunIsWeighedWhereItRefusesTheMachinesCgroups(t *testing.T) {
	p := engines.Podman(t)
	// The same storage without the set-up's own namespace: tare has to make one.
	e := subject.Engine{Command: p.Program, Args: p.Args, Env: map[string]string{}}
	for _, v := range p.Env {
		name, value, _ := strings.Cut(v, "=")
		e.Env[name] = value
	}
	delete(e.Env, "CONTAINERS_REGISTRIES_CONF")
	before := mountsOf(t, p.Root)
	s := open(t, e, "crun", 2)
	for _, op := range subject.ContainerOps {
		enginetest.Must(t, s, op, 2)
	}
	if after := mountsOf(t, p.Root); after != before {
		t.Error("the machine's mounts have changed")
	}
}

// mountsOf are the machine's mounts of groups, and those below a folder: others come
// and go with what else runs.
func mountsOf(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	must.OK(t, err)
	var out []string
	for line := range strings.Lines(string(b)) {
		at := strings.Fields(line)[4]
		if strings.HasPrefix(at, "/sys/fs/cgroup") || strings.HasPrefix(at, dir+"/") && strings.HasSuffix(at, "/merged") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestAPodmanThatCannotBeWeighedSaysWhy(t *testing.T) {
	p := engines.Podman(t)
	for _, c := range []struct {
		name, runtime  string
		e              subject.Engine
		reason, advice string
	}{
		{"no program", "", subject.Engine{Command: "/nothing/podman"}, "there is no /nothing/podman", "apt-get install podman"},
		{"no such runtime", "nosuch", at(p), "it has crun, runc", "containers.conf"},
		{"a runtime's path that is not there", "/nothing/runc", at(p), "it has crun, runc", "containers.conf"},
		{"a client of a service", "", subject.Engine{Command: p.Command, Env: map[string]string{"CONTAINER_HOST": p.Host}}, "client of a service", "unset CONTAINER_HOST"},
		{"an address", "", subject.Engine{Command: p.Command, Address: p.Host}, "which has no address", "as docker: --docker-host " + p.Host},
	} {
		_, err := New(t.Context(), "podman/x", c.runtime, "", c.e)
		if u, ok := errors.AsType[*subject.Unavailable](err); !ok || !strings.Contains(u.Reason, c.reason) || !strings.Contains(u.Advice, c.advice) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestInfoTellsWhatIsWeighed(t *testing.T) {
	p := engines.Podman(t)
	info := weigh(t, at(p), "crun").Info()
	for _, key := range []string{"runtime", "runtime path", "runtime version", "storage driver", "cgroup driver", "cgroup version", "network", "via", "log driver"} {
		if info.Config[key] == "" {
			t.Errorf("no %s", key)
		}
	}
	if info.Version != p.Version || info.Kind != "podman" || info.Name != "podman/crun" {
		t.Errorf("%+v", info)
	}
	for _, op := range subject.Ops {
		o := info.Operations[string(op)]
		if isPod := slices.Contains(subject.PodOps, op); isPod != (o.Absent != "") || isPod != (o.Command == "") {
			t.Errorf("%s: %+v", op, o)
		}
	}
}
