package podman

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func open(t *testing.T, e subject.Engine, runtime, via string, env subject.Env) subject.Session {
	t.Helper()
	tg, err := New(t.Context(), "podman/"+runtime, runtime, via, e)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tg.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closed closes a session and looks whether anything is left.
func closed(t *testing.T, p *engines.PodmanEngine, s subject.Session) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, p)
}

// next is the name that the next container on a lane will have.
func next(t *testing.T, s subject.Session, lane int) string {
	t.Helper()
	must(t, s, subject.Create, 1)
	var name string
	switch s := s.(type) {
	case *session:
		name = s.Held()[0].Name
	case *served:
		name = s.Held()[0].Name
	}
	if err := s.Discard(t.Context(), []int{0}); err != nil {
		t.Fatal(err)
	}
	i := strings.LastIndexByte(name, '-')
	n, err := strconv.Atoi(name[i+1:])
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s-%d-%d", strings.TrimSuffix(name[:i], "-0"), lane, n+1)
}

func TestANameThatIsTakenIsAFailureOfItsLaneAlone(t *testing.T) {
	p := engines.Podman(t)
	for _, via := range []string{ViaCLI, ViaAPI} {
		s := open(t, at(p), "crun", via, environment(t, "taken"+via, 2))
		podman, err := program("podman", at(p))
		if err != nil {
			t.Fatal(err)
		}
		name := next(t, s, 0)
		image := p.Images(t)[0]
		if _, err := podman.Run(t.Context(), "create", "--pull", "never", "--network", "none", "--name", name, image, "x"); err != nil {
			t.Fatal(err)
		}
		samples := do(t, s, subject.Create, 2)
		if f := samples[0].Failure; f == nil || !strings.Contains(f.Detail+f.Output, "already in use") || f.Command == "" {
			t.Errorf("%s: %+v", via, f)
		}
		if f := samples[1].Failure; f != nil {
			t.Errorf("%s: the other lane: %+v", via, *f)
		}
		closed(t, p, s) // the name is of the run, so the container goes too
	}
}

func TestARuntimeThatOnlySaysThatItStartedIsFound(t *testing.T) {
	p := engines.Podman(t)
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	// It starts the container, ends it at once, and reports success.
	liar := filepath.Join(t.TempDir(), "liar")
	script := fmt.Sprintf("#!/bin/sh\n%s \"$@\" || exit\ncase \" $* \" in *' start '*) for id; do :; done; %s kill \"$id\" KILL; sleep 0.3;; esac\nexit 0\n", runc, runc)
	if err := os.WriteFile(liar, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, at(p), liar, ViaCLI, environment(t, "liar", 2))
	must(t, s, subject.Create, 2)
	for _, sample := range do(t, s, subject.Start, 2) {
		f := sample.Failure
		if f == nil || f.Kind != record.FailState && f.Kind != record.FailExit {
			t.Fatalf("%+v", f)
		}
		t.Logf("%+v", *f)
	}
	closed(t, p, s)
}

func TestAServiceThatDiesIsAFailureAndEndsNothingElse(t *testing.T) {
	p := engines.Podman(t)
	socket := filepath.Join(t.TempDir(), "s")
	service := exec.Command(p.Command, "system", "service", "--time", "0", "unix://"+socket)
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = service.Wait()
		close(ended)
	}()
	defer func() {
		_ = service.Process.Kill()
		<-ended
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := connect(t.Context(), "unix://"+socket); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	s := open(t, subject.Engine{Address: socket}, "", ViaAPI, environment(t, "dies", 20))
	lanes := make([]int, 20)
	for i := range lanes {
		lanes[i] = i
	}
	b, err := s.Prepare(t.Context(), subject.Run, lanes)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { _ = service.Process.Kill() })
	_, samples, err := b.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range samples {
		if f := sample.Failure; f == nil || f.Detail == "" || f.Command == "" {
			t.Errorf("lane %d: %+v", sample.Lane, f)
		}
	}
	if _, err := s.Prepare(t.Context(), subject.Run, lanes); err == nil || !strings.Contains(err.Error(), "look for the workload's image") {
		t.Errorf("the next batch: %v", err)
	}
	if err := s.Close(t.Context()); err == nil {
		t.Error("Close said nothing")
	}
	// What it could not remove is found by whoever comes next.
	tg, err := New(t.Context(), "podman/crun", "crun", ViaCLI, at(p))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tg.(subject.Cleaner).Clean(t.Context(), "dies", false); err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, p)
}

func TestAnInterruptedBatchLeavesNothing(t *testing.T) {
	p := engines.Podman(t)
	for _, via := range []string{ViaCLI, ViaAPI} {
		s := open(t, at(p), "crun", via, environment(t, "interrupted"+via, 8))
		b, err := s.Prepare(t.Context(), subject.Run, []int{0, 1, 2, 3, 4, 5, 6, 7})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		_, samples, err := b.Start(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if f := samples[0].Failure; f == nil || f.Kind != record.FailInterrupted {
			t.Errorf("%s: %+v", via, f)
		}
		if err := s.Discard(t.Context(), []int{0, 1, 2, 3, 4, 5, 6, 7}); err != nil {
			t.Error(err)
		}
		closed(t, p, s)
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
	before := mountsOf(t)
	s := open(t, e, "crun", ViaCLI, environment(t, "private", 3))
	for _, op := range subject.ContainerOps {
		must(t, s, op, 3)
	}
	if after := mountsOf(t); after != before {
		t.Error("the machine's mounts have changed")
	}
	closed(t, p, s)
}

func mountsOf(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "cgroup2") || strings.Contains(line, "/merged ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestWhatAKilledRunLeftIsFoundAndRemovedAndNothingElse(t *testing.T) {
	p := engines.Podman(t)
	for _, via := range []string{ViaCLI, ViaAPI} {
		s := open(t, at(p), "crun", via, environment(t, "swept"+via, 2))
		must(t, s, subject.Run, 2)
		tg, err := New(t.Context(), "podman/crun", "crun", via, at(p))
		if err != nil {
			t.Fatal(err)
		}
		cleaner := tg.(subject.Cleaner)
		if found, err := cleaner.Clean(t.Context(), "another", false); err != nil || found != nil {
			t.Errorf("%s: another run's: %q, %v", via, found, err)
		}
		found, err := cleaner.Clean(t.Context(), "swept"+via, true)
		if err != nil || len(found) != 3 || len(p.Containers(t)) != 2 {
			t.Errorf("%s: %q, %v", via, found, err)
		}
		if _, err := cleaner.Clean(t.Context(), "swept"+via, false); err != nil {
			t.Errorf("%s: %v", via, err)
		}
		nothingIsLeft(t, p)
		closed(t, p, s)
	}
}

func TestAPodmanThatCannotBeWeighedSaysWhy(t *testing.T) {
	p := engines.Podman(t)
	stale := filepath.Join(t.TempDir(), "stale")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: stale})
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	for _, c := range []struct {
		name, runtime, via string
		e                  subject.Engine
		reason, advice     string
	}{
		{"no program", "", ViaCLI, subject.Engine{Command: "/nothing/podman"}, "there is no /nothing/podman", "apt-get install podman"},
		{"no such runtime", "nosuch", ViaCLI, at(p), "it has crun, runc", "containers.conf"},
		{"a runtime's path that is not there", "/nothing/runc", ViaCLI, at(p), "it has crun, runc", "containers.conf"},
		{"a client of a service", "", ViaCLI, subject.Engine{Command: p.Command, Env: map[string]string{"CONTAINER_HOST": p.Host}}, "client of a service", "unset CONTAINER_HOST"},
		{"no service", "", ViaAPI, subject.Engine{Address: "/nothing/podman.sock"}, "does not answer", "podman system service"},
		{"a service that is gone", "", ViaAPI, subject.Engine{Address: stale}, "does not answer", "podman system service"},
		{"a service elsewhere", "", ViaAPI, subject.Engine{Address: "tcp://localhost:1"}, "no unix socket", ""},
		{"a runtime that the service will not take", "runc", ViaAPI, at(p), "takes no runtime", "podman --runtime runc system service"},
		{"another way", "", "grpc", at(p), "not by", "podman+api"},
	} {
		_, err := New(t.Context(), "podman/x", c.runtime, c.via, c.e)
		var u *subject.Unavailable
		if !errors.As(err, &u) || !strings.Contains(u.Reason, c.reason) || !strings.Contains(u.Advice, c.advice) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestInfoTellsWhatIsWeighed(t *testing.T) {
	p := engines.Podman(t)
	for _, via := range []string{ViaCLI, ViaAPI} {
		tg, err := New(t.Context(), "podman/crun", "crun", via, at(p))
		if err != nil {
			t.Fatal(err)
		}
		info := tg.Info()
		for _, key := range []string{"runtime", "runtime path", "runtime version", "storage driver", "cgroup driver", "cgroup version", "network", "via", "log driver"} {
			if info.Config[key] == "" {
				t.Errorf("%s: no %s", via, key)
			}
		}
		if info.Version != p.Version || info.Kind != "podman" || info.Name != "podman/crun" {
			t.Errorf("%s: %+v", via, info)
		}
		for _, op := range subject.Ops {
			o := info.Operations[string(op)]
			if isPod := slices.Contains(subject.PodOps, op); isPod != (o.Absent != "") || isPod != (o.Command == "") {
				t.Errorf("%s, %s: %+v", via, op, o)
			}
		}
	}
}
