package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// stranger creates a container of another owner from tare's image.
func stranger(t *testing.T, tg *Target, ref, name string) string {
	t.Helper()
	o := (&driver{Target: tg, image: &image.Image{Ref: ref}}).options(name, engine.Place{})
	o.Config.Labels = nil
	made := must.Get(tg.ContainerCreate(t.Context(), o))(t)
	t.Cleanup(func() {
		_, _ = tg.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true})
	})
	return made.ID
}

func TestExistingNameIsAFailureAndItsOwnerIsUntouched(t *testing.T) {
	d := engines.Docker(t)
	for _, via := range []string{viaAPI, viaCLI} {
		s := open(t, weigh(t, subject.Engine{Address: d.Host}, "crun", via), 2)
		var next int // number of the next container of the first lane
		must.Get(fmt.Sscanf(strings.TrimPrefix(engine.NewName("", 0), "tare--0-"), "%d", &next))(t)
		next++
		theirs := stranger(t, s.Target, s.image.Ref, engine.Name(s.env.RunID, 1, next+1))
		samples := enginetest.Do(t, s, subject.Create, 2)
		if f := samples[0].Failure; f != nil {
			t.Errorf("the other lane failed: %+v", *f)
		}
		f := samples[1].Failure
		must.That(t, f != nil && strings.Contains(f.Detail+f.Output, "already in use") && strings.Contains(f.Command, "create"),
			"%s: %+v", via, f)
		must.OK(t, s.Discard(t.Context(), enginetest.UpTo(2)))
		left := d.Containers(t)
		check.That(t, len(left) == 1 && left[0] == theirs, "remaining containers: %v, want only %s", left, theirs)
		must.Get(s.ContainerRemove(t.Context(), theirs, client.ContainerRemoveOptions{}))(t)
	}
}

// liar is a runtime whose start does nothing.
func liar(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "liar")
	must.OK(t, os.WriteFile(path, []byte("#!/bin/sh\nfor a in \"$@\"; do [ \"$a\" = start ] && exit 0; done\nexec runc \"$@\"\n"), 0o755))
	return path
}

// Both cases use one daemon. The second case kills it.
func TestFalseSuccessAndKilledDaemonAreFailures(t *testing.T) {
	d := engines.Docker(t, engines.Runtime("idle", liar(t)))
	e := subject.Engine{Address: d.Host}
	t.Run("start without effect", func(t *testing.T) {
		env := enginetest.Environment(t, 1)
		env.Timeout = 8 * time.Second
		s := must.Get(weigh(t, e, "idle", viaAPI).Open(t.Context(), env))(t)
		defer s.Close(context.Background())
		samples := enginetest.Do(t, s, subject.Run, 1)
		f := samples[0].Failure
		check.That(t, f != nil && f.Kind == record.FailWorkload && strings.Contains(f.Detail, "first line"), "got %+v", f)
	})
	t.Run("daemon is killed", func(t *testing.T) {
		s := must.Get(weigh(t, e, "crun", viaAPI).Open(t.Context(), enginetest.Environment(t, 20)))(t)
		b := must.Get(s.Prepare(t.Context(), subject.Run, enginetest.UpTo(20)))(t)
		began := time.Now()
		// The lanes connect before the release, so stop the daemon afterwards. SIGSTOP
		// before SIGKILL prevents any lane from finishing.
		_, samples, err := subject.StartBetween(t.Context(), b, func() {
			_ = syscall.Kill(d.Pid, syscall.SIGSTOP)
			time.AfterFunc(300*time.Millisecond, func() { _ = syscall.Kill(d.Pid, syscall.SIGKILL) })
		}, func() {})
		must.OK(t, err)
		failed := 0
		for _, x := range samples {
			if f := x.Failure; f != nil {
				failed++
				if f.Kind != record.FailError && f.Kind != record.FailState {
					t.Errorf("lane %d: %+v", x.Lane, *f)
				}
				if failed == 1 {
					t.Logf("%+v", *f)
				}
			}
		}
		check.That(t, failed != 0, "no failure")
		took := time.Since(began)
		check.That(t, took <= 2*time.Minute, "it took %v", took)
		var why error
		if b, why = s.Prepare(t.Context(), subject.Run, enginetest.UpTo(20)); why == nil {
			_, _, why = b.Start(t.Context())
		}
		for what, err := range map[string]error{"the next batch": why, "discard": s.Discard(t.Context(), enginetest.UpTo(20)), "close": s.Close(t.Context())} {
			check.That(t, err != nil, "%s: no error", what)
			t.Logf("%s: %v", what, err)
		}
		var gone *subject.Unavailable
		_, err = New(t.Context(), "docker/crun", "crun", viaAPI, e)
		check.That(t, errors.As(err, &gone), "got %v", err)
	})
}

// relay forwards connections to the socket of a daemon.
func relay(t *testing.T, network, at, host string) string {
	t.Helper()
	l := must.Get(net.Listen(network, at))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				d, err := net.Dial("unix", engine.Socket(host))
				if err != nil {
					return
				}
				defer d.Close()
				go func() { _, _ = io.Copy(d, c); _ = d.(*net.UnixConn).CloseWrite() }()
				_, _ = io.Copy(c, d)
			}()
		}
	}()
	return l.Addr().String()
}

func TestRemoteDaemonHasNoStampsOfTheWorkload(t *testing.T) {
	d := engines.Docker(t)
	dir := t.TempDir()
	for name, address := range map[string]string{
		"tcp": "tcp://" + relay(t, "tcp", "127.0.0.1:0", d.Host), "tunnel": "unix://" + relay(t, "unix", filepath.Join(dir, "s"), d.Host),
	} {
		t.Run(name, func(t *testing.T) {
			tg := weigh(t, subject.Engine{Address: address}, "crun", viaAPI)
			i := tg.Info()
			check.That(t, i.Clock == "guest" && strings.HasPrefix(i.Config["daemon"], "elsewhere") && len(i.Notes) != 0, "%+v", i)
			s := open(t, tg, 3)
			for _, op := range []subject.Op{subject.Create, subject.Start, subject.Stop, subject.Remove} {
				for _, x := range enginetest.Must(t, s, op, 3) {
					enginetest.Stamped(t, tg, op, x)
				}
			}
			p := s.Processes(t.Context())
			check.That(t, len(p) == 0, "processes %v", p)
		})
	}
}

func TestCommandFindsItsDaemon(t *testing.T) {
	d := engines.Docker(t)
	wrapped := filepath.Join(t.TempDir(), "docker28")
	must.OK(t, os.Symlink(d.Command, wrapped))
	for name, e := range map[string]subject.Engine{
		"environment": {Env: map[string]string{"DOCKER_HOST": d.Host}},
		"arguments":   {Args: []string{"--host", d.Host}},
		"command":     {Address: d.Host, Command: wrapped, Args: []string{"--log-level", "error"}},
	} {
		s := open(t, weigh(t, e, "crun", viaCLI), 1)
		enginetest.Must(t, s, subject.Run, 1)
		must.OK(t, s.Discard(t.Context(), enginetest.UpTo(1)))
		check.That(t, e.Command == "" || s.Info().Path == wrapped, "%s: path %q", name, s.Info().Path)
	}
}

func TestContainerHasTheRequestedNetwork(t *testing.T) {
	d := engines.Docker(t)
	for _, network := range []string{subject.NetworkBridge, subject.NetworkHost} {
		s := open(t, weigh(t, subject.Engine{Address: d.Host, Network: network}, "runc", viaAPI), 1)
		enginetest.Must(t, s, subject.Run, 1)
		found, err := s.ContainerInspect(t.Context(), s.first(), client.ContainerInspectOptions{})
		check.That(t, err == nil && found.Container.NetworkSettings.Networks[network] != nil,
			"%s: %+v, %v", network, found.Container.NetworkSettings, err)
	}
}

func TestUnreadableLogDriverIsNoted(t *testing.T) {
	for driver, c := range map[string]struct {
		api  string
		want string
	}{
		"json-file": {"1.41", ""}, "local": {"1.41", ""}, "journald": {"1.41", ""},
		"none": {"1.41", "log driver is none"}, "syslog": {"1.40", "cannot be read before Docker 20.10"}, "fluentd": {"1.41", "the daemon's cache"},
	} {
		got := logNote(system.Info{LoggingDriver: driver}, c.api)
		check.That(t, (got == "") == (c.want == "") && strings.Contains(got, c.want), "%s: %q", driver, got)
	}
}

func TestRemoteDaemonRefusesLocalFolders(t *testing.T) {
	e, _ := serve(t, map[string]string{"GET /containers/json": "[]"})
	path := filepath.Join(t.TempDir(), "x")
	for what, w := range map[string]subject.Workload{"a volume": {Volume: path}, "a device": {Device: path}} {
		env := enginetest.Environment(t, 1)
		env.Workload = w
		_, err := weigh(t, e, "", viaAPI).Open(t.Context(), env)
		check.That(t, errors.Is(err, subject.ErrUnsupported) && strings.Contains(err.Error(), what+" on a daemon elsewhere"), "%v", err)
		_, err = os.Stat(path)
		check.That(t, os.IsNotExist(err), "the folder was created: %v", err)
	}
}

func TestMemoryMatchesDockerStats(t *testing.T) {
	for name, c := range map[string]struct {
		stats string
		want  int64
	}{
		"cgroup v1":             {`{"usage":1000,"stats":{"total_inactive_file":300,"inactive_file":200}}`, 700},
		"cgroup v2":             {`{"usage":1000,"stats":{"inactive_file":200}}`, 800},
		"more cache than usage": {`{"usage":1000,"stats":{"total_inactive_file":3000,"inactive_file":2000}}`, 1000},
		"only usage":            {`{"usage":1000}`, 1000},
		"none":                  {`{}`, -1},
		"an impossible value":   {`{"usage":18446744073709551615}`, -1},
	} {
		var m container.MemoryStats
		must.OK(t, json.Unmarshal([]byte(c.stats), &m))
		check.Equal(t, name, shownMemory(m), c.want)
	}
}
