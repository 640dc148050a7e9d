package containerd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
)

// said runs the test's program in the container on lane 0 and returns what it said.
func said(t *testing.T, s *session, inside string, args ...string) string {
	t.Helper()
	got, err := s.Exec(t.Context(), 0, append([]string{inside}, args...))
	if err != nil || got.Exit != 0 {
		t.Fatalf("%q: %+v, %v", args, got, err)
	}
	return got.Output
}

// fails runs it where it has to fail, and returns why it did.
func fails(t *testing.T, s *session, lane int, inside string, args ...string) string {
	t.Helper()
	got, err := s.Exec(t.Context(), lane, append([]string{inside}, args...))
	if err != nil || got.Exit == 0 {
		t.Errorf("%q on lane %d: %+v, %v", args, lane, got, err)
	}
	return got.Stderr
}

func TestATmpfsHasTheTypeAndTheSizeAskedForAndIsTheContainersOwn(t *testing.T) {
	inside := carried(t)
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		for _, runtime := range runtimes(t) {
			t.Run(filepath.Base(runtime), func(t *testing.T) {
				env := environment(t, newID(), 2)
				env.Workload = subject.Workload{Files: []probe.File{inside}, Tmpfs: 12 << 20}
				s := openWith(t, d, runtime, env)
				succeed(t, s, subject.Run, 2)
				const magic = "0x1021994 12582912" // TMPFS_MAGIC
				if got := said(t, s, inside.Path, "fs", subject.VolumePath); got != magic {
					t.Errorf("%s, not %s", got, magic)
				}
				said(t, s, inside.Path, "write", subject.VolumePath+"/file", "text")
				if got := said(t, s, inside.Path, "cat", subject.VolumePath+"/file"); got != "text" {
					t.Errorf("%q", got)
				}
				fails(t, s, 1, inside.Path, "cat", subject.VolumePath+"/file")
				shut(t, d, s)
			})
		}
	})
}

// The file system of a container's root is that of the snapshotter; no two of
// them need be alike.
func TestAFolderOfTheRootFileSystemGoesWithTheContainer(t *testing.T) {
	inside := carried(t)
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		for _, runtime := range runtimes(t) {
			t.Run(filepath.Base(runtime), func(t *testing.T) {
				env := environment(t, newID(), 1)
				env.Workload.Files = []probe.File{inside}
				s := openWith(t, d, runtime, env)
				for range 2 { // the second container has nothing of the first
					succeed(t, s, subject.Run, 1)
					fails(t, s, 0, inside.Path, "cat", subject.VolumePath+"/file")
					said(t, s, inside.Path, "write", subject.VolumePath+"/file", "text")
					root, data := said(t, s, inside.Path, "fs", "/"), said(t, s, inside.Path, "fs", subject.VolumePath)
					if root != data {
						t.Errorf("%s, and the root has %s", data, root)
					}
					if err := s.Discard(t.Context(), upTo(1)); err != nil {
						t.Fatal(err)
					}
				}
				shut(t, d, s)
			})
		}
	})
}

// loop is a loop device of 1 MiB. It is told at the end whether anything still
// holds it.
func loop(t *testing.T) (device, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup: %v: %s", err, out)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("detach %s: %v: %s", device, err, out)
		}
		// One that is in use is detached by its last user, and until then listed.
		if out, err := exec.Command("losetup", "--associated", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s is still in use: %s, %v", device, out, err)
		}
	})
	return device, file
}

func TestABlockDeviceIsReadAndWritten(t *testing.T) {
	inside := carried(t)
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		for _, runtime := range []string{"runc", "crun"} {
			t.Run(runtime, func(t *testing.T) {
				device, file := loop(t)
				if err := os.WriteFile(device, []byte("from outside"), 0); err != nil {
					t.Fatal(err)
				}
				link := filepath.Join(t.TempDir(), "link")
				if err := os.Symlink(device, link); err != nil {
					t.Fatal(err)
				}
				env := environment(t, newID(), 1)
				env.Workload = subject.Workload{Files: []probe.File{inside}, Device: link}
				s := openWith(t, d, runtime, env)
				succeed(t, s, subject.Run, 1)
				if got := said(t, s, inside.Path, "cat", subject.DevicePath); len(got) != 1<<20 || !strings.HasPrefix(got, "from outside\x00") {
					t.Errorf("%d bytes: %.20q", len(got), got)
				}
				said(t, s, inside.Path, "write", subject.DevicePath, "from inside!")
				shut(t, d, s)
				written(t, device, file)
			})
		}
	})
}

// written checks what came of the write.
func written(t *testing.T, device, file string) {
	t.Helper()
	for _, path := range []string{device, file} {
		if out, err := exec.Command("sync", device).CombinedOutput(); err != nil {
			t.Fatalf("sync: %v: %s", err, out)
		}
		if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "from inside!\x00") {
			t.Errorf("%s: %.20q, %v", path, b, err)
		}
	}
}

func TestGVisorHasNoBlockDevices(t *testing.T) {
	if engines.Runsc() == "" {
		t.Skip("there is no runsc; run: make runtimes")
	}
	inside := carried(t)
	d := engines.Containerd(t, engines.V2)
	device, file := loop(t)
	env := environment(t, newID(), 1)
	env.Workload = subject.Workload{Files: []probe.File{inside}, Device: device}
	got, err := New(t.Context(), "containerd/runsc", engines.Runsc(), "", at(d))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := got.Open(t.Context(), env); !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), device) {
		t.Errorf("%v", err)
	}
	env.Workload.Device = file
	if _, err := got.Open(t.Context(), env); err == nil || errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), "no block device") {
		t.Errorf("%v", err)
	}
	// It is as the error says: gVisor does not refuse to make the node.
	env = environment(t, newID(), 1)
	env.Workload = subject.Workload{Files: []probe.File{inside}}
	s := openWith(t, d, engines.Runsc(), env)
	s.device.Node = device
	succeed(t, s, subject.Run, 1)
	if why := fails(t, s, 0, inside.Path, "cat", subject.DevicePath); !strings.Contains(why, "no such device or address") {
		t.Errorf("%s", why)
	}
	shut(t, d, s)
}
