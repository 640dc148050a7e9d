package containerd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// started runs a program that waits, and returns its pid once it is wholly in it:
// for a moment after Start the kernel shows an empty environment.
func started(t *testing.T, attr *syscall.SysProcAttr, env ...string) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr, cmd.Env = attr, env
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	environ := fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(environ); err != nil || time.Now().After(end) {
			t.Fatalf("%s stays empty: %v", environ, err)
		} else if len(b) > 0 {
			return cmd.Process.Pid
		}
	}
}

func TestOnlyRootOfThisMachineIsTrusted(t *testing.T) {
	mapped := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	for _, c := range []struct {
		name string
		attr *syscall.SysProcAttr
		says string // "" when it is trusted
	}{
		{"root", nil, ""},
		{"root with mounts of its own", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, ""},
		{"another user", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "is not root"},
		{"root of a user namespace", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: mapped, GidMappings: mapped}, "another user namespace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := trust(started(t, c.attr))
			if d != nil {
				defer d.Close()
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, not %q", err, c.says)
			}
		})
	}
	for status, want := range map[string]bool{
		"Name:\tx\nUid:\t0\t0\t0\t0\n": true, "Uid:\t1000\t0\t0\t0\n": false, "Uid:\t0\t1000\t0\t0\n": false,
		"Name:\tUid:\t0\t0\t0\t0\n": false, "": false,
	} {
		if rootAlone(status) != want {
			t.Errorf("%q: %v", status, !want)
		}
	}
}

func TestWhatADaemonFindsInOtherMountsIsNotExecuted(t *testing.T) {
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
		{"the same mounts", nil, dir, fake, fake},
		{"other mounts", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, dir, fake, ""},
		{"other mounts with the same file", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, filepath.Dir(real), real, real},
		{"no absolute path", nil, ".", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := trust(started(t, c.attr, "PATH="+c.path))
			must.OK(t, err)
			defer d.Close()
			in := d.search()
			if got := in.look("runc"); got != c.finds {
				t.Fatalf("found %q, not %q", got, c.finds)
			}
			if c.finds != "" && in.own(c.finds) != c.own {
				t.Errorf("may execute %q, not %q", in.own(c.finds), c.own)
			}
		})
	}
}

func TestTheEnvironmentOfATargetComesFirst(t *testing.T) {
	t.Setenv("CONTAINERD_ADDRESS", "/process.sock")
	t.Setenv("CONTAINERD_NAMESPACE", "process")
	own := map[string]string{"CONTAINERD_ADDRESS": "/plan.sock", "CONTAINERD_NAMESPACE": "plan"}
	for _, c := range []struct {
		name string
		e    subject.Engine
		want address
	}{
		{"its own", subject.Engine{Env: own}, address{"/plan.sock", "plan"}},
		{"tare's", subject.Engine{}, address{"/process.sock", "process"}},
		{"what is given comes before both", subject.Engine{Address: "unix:///given.sock", Namespace: "given", Env: own}, address{"/given.sock", "given"}},
	} {
		if got, err := addressOf(c.e); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
