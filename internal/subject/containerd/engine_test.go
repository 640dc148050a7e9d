package containerd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestMain(m *testing.M) { engines.Main(m) }

// onBoth runs a test with both versions of containerd.
func onBoth(t *testing.T, test func(t *testing.T, d *engines.ContainerdDaemon)) {
	for name, v := range map[string]engines.ContainerdVersion{"containerd 1.6": engines.V1, "containerd 2.4": engines.V2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the engines are independent
			test(t, engines.Containerd(t, v))
		})
	}
}

func at(d *engines.ContainerdDaemon) subject.Engine { return subject.Engine{Address: d.Address} }

func weigh(t *testing.T, d *engines.ContainerdDaemon, runtime string) *Target {
	t.Helper()
	got := must.Get(New(t.Context(), "containerd/"+filepath.Base(runtime), runtime, "", at(d)))(t)
	return got.(*Target)
}

// open opens a runtime of an engine for a new run.
func open(t *testing.T, d *engines.ContainerdDaemon, runtime string, env subject.Env) *session {
	t.Helper()
	return enginetest.Open(t, weigh(t, d, runtime), env).(*session)
}

// left lists the objects in the namespace of tare. containerd lists a namespace only if it
// has objects or was created explicitly.
func left(d *engines.ContainerdDaemon) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		if slices.Contains(d.Namespaces(t), ownNamespace) {
			return slices.Concat([]string{ownNamespace}, d.Containers(t, ownNamespace), d.Images(t, ownNamespace), d.Snapshots(t, ownNamespace))
		}
		return nil
	}
}

func nothing(t *testing.T, d *engines.ContainerdDaemon) {
	t.Helper()
	left := left(d)(t)
	check.That(t, len(left) == 0, "left: %q", left)
}

func TestContainerdConforms(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		of := func(runtime string) enginetest.Case {
			return enginetest.Case{
				Name: filepath.Base(runtime), Target: func(t *testing.T) subject.Target { return weigh(t, d, runtime) },
				Left: left(d), Source: "ctr task metrics", Swept: 4,
			}
		}
		if strings.HasPrefix(d.Version, "1.") {
			enginetest.Conforms(t, of("runc"))
			return
		}
		gvisor := of(engines.Runsc())
		gvisor.Known = true
		enginetest.Conforms(t, of("crun"), gvisor)
	})
}

func TestContainerdEventsMatchTheContainers(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		s := open(t, d, "crun", enginetest.Environment(t, 5))
		c := must.Get(Connect(t.Context(), d.Address, ownNamespace))(t)
		defer func() { _ = c.Close() }()
		const begun, ended = "/namespaces/create", "/namespaces/update"
		events, errs := c.Subscribe(t.Context(), `topic=="/containers/create"`, `topic=="/tasks/start"`, `topic=="/containers/delete"`, `topic=="`+begun+`"`, `topic=="`+ended+`"`)
		// A subscription is not acknowledged, and a stream of events has no end. Events
		// of other kinds therefore mark the begin and the end. The first marker may be
		// sent before the subscription is active.
		tell := func(name string) {
			all := c.NamespaceService()
			must.OK(t, errors.Join(all.Create(t.Context(), name, nil), all.SetLabel(t.Context(), name, "it", "is"), all.Delete(t.Context(), name)))
		}
		next := func(within time.Duration) string {
			select {
			case e := <-events:
				return e.Topic
			case err := <-errs:
				t.Fatal(err)
			case <-time.After(within):
			}
			return ""
		}
		for tell("begins"); next(10*time.Millisecond) != begun; {
			tell("begins")
		}
		for _, op := range subject.ContainerOps[:4] {
			enginetest.Must(t, s, op, 5)
		}
		enginetest.Must(t, s, subject.Run, 3)
		must.OK(t, s.Close(t.Context()))
		nothing(t, d)
		// More start markers may be in flight; they precede all container events.
		count := map[string]int{}
		tell("ends")
		for topic := ""; topic != ended || count["/containers/create"] == 0; {
			if topic = next(time.Minute); topic == "" {
				t.Fatalf("no event in a minute, after %v", count)
			}
			count[topic]++
		}
		delete(count, begun)
		delete(count, ended)
		check.Equal(t, "figures", count, map[string]int{"/containers/create": 8, "/tasks/start": 8, "/containers/delete": 8})
	})
}

// started starts a waiting program and returns its PID after exec. Before exec its
// environment appears empty.
func started(t *testing.T, attr *syscall.SysProcAttr, env ...string) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr, cmd.Env = attr, env
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	environ := fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(environ); err != nil || time.Now().After(end) {
			t.Fatalf("%s is still empty: %v", environ, err)
		} else if len(b) > 0 {
			return cmd.Process.Pid
		}
	}
}

func TestOnlyRootDaemonIsTrusted(t *testing.T) {
	need.Root(t)
	mapped := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	for _, c := range []struct {
		name string
		attr *syscall.SysProcAttr
		says string // "" if trusted
	}{
		{"root", nil, ""},
		{"root in another mount namespace", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, ""},
		{"another user", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "is not root"},
		{"root of a user namespace", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: mapped, GidMappings: mapped}, "another user namespace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := trust(started(t, c.attr))
			if d != nil {
				defer d.Close()
			}
			check.Error(t, err, c.says)
		})
	}
	for status, want := range map[string]bool{
		"Name:\tx\nUid:\t0\t0\t0\t0\n": true, "Uid:\t1000\t0\t0\t0\n": false, "Uid:\t0\t1000\t0\t0\n": false,
		"Name:\tUid:\t0\t0\t0\t0\n": false, "": false,
	} {
		check.Equal(t, status, rootAlone(status), want)
	}
}

func TestProgramInOtherMountsIsNotExecuted(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	fake := filepath.Join(dir, "runc")
	must.OK(t, os.WriteFile(fake, []byte("#!/bin/sh\n"), 0o755))
	real := need.Tool(t, "runc")
	for _, c := range []struct {
		name       string
		attr       *syscall.SysProcAttr
		path       string
		finds, own string
	}{
		{"same mounts", nil, dir, fake, fake},
		{"other mounts", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, dir, fake, ""},
		{"other mounts with the same file", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, filepath.Dir(real), real, real},
		{"relative path", nil, ".", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := must.Get(trust(started(t, c.attr, "PATH="+c.path)))(t)
			defer d.Close()
			in := d.search()
			got := in.look("runc")
			must.That(t, got == c.finds, "found %q, want %q", got, c.finds)
			check.That(t, c.finds == "" || in.executable(c.finds) == c.own, "may execute %q, want %q", in.executable(c.finds), c.own)
		})
	}
}

func TestTargetEnvironmentOverridesTares(t *testing.T) {
	t.Setenv("CONTAINERD_ADDRESS", "/process.sock")
	t.Setenv("CONTAINERD_NAMESPACE", "process")
	own := map[string]string{"CONTAINERD_ADDRESS": "/plan.sock", "CONTAINERD_NAMESPACE": "plan"}
	for _, c := range []struct {
		name string
		e    subject.Engine
		want address
	}{
		{"daemon environment", subject.Engine{Env: own}, address{"/plan.sock", "plan"}},
		{"tare's", subject.Engine{}, address{"/process.sock", "process"}},
		{"explicit settings precede both", subject.Engine{Address: "unix:///given.sock", Namespace: "given", Env: own}, address{"/given.sock", "given"}},
	} {
		check.Equal(t, c.name, must.Get(addressOf(c.e))(t), c.want)
	}
}
