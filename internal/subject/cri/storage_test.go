package cri

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/mounts"
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

// fails runs it where it has to fail.
func fails(t *testing.T, s *session, lane int, inside string, args ...string) {
	t.Helper()
	got, err := s.Exec(t.Context(), lane, append([]string{inside}, args...))
	if err != nil || got.Exit == 0 {
		t.Errorf("%q on lane %d: %+v, %v", args, lane, got, err)
	}
}

// mounted checks how many tmpfs of a run there are where an engine sees them,
// which here is not where the test does: there must be none.
func mounted(t *testing.T, u engineUnderTest, runID string, want int) {
	t.Helper()
	for _, c := range []struct{ pid, want int }{{u.pid, want}, {os.Getpid(), 0}} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", c.pid))
		if err != nil {
			t.Fatal(err)
		}
		count := strings.Count(string(b), " - tmpfs tare-"+runID+" ")
		if count != c.want {
			t.Errorf("process %d sees %d tmpfs of the run, not %d", c.pid, count, c.want)
		}
	}
}

func TestATmpfsHasTheTypeAndTheSizeAskedForAndIsThePodsOwn(t *testing.T) {
	inside := carried(t)
	onHandlers(t, func(t *testing.T, u engineUnderTest, handler string) {
		env := environment(t, 2)
		env.Workload = subject.Workload{Files: []probe.File{inside}, Tmpfs: 12 << 20}
		s := openedWith(t, u, handler, env)
		mounted(t, u, env.RunID, 0)
		succeed(t, s, subject.Run, 2)
		mounted(t, u, env.RunID, 2)
		const magic = "0x1021994 12582912" // TMPFS_MAGIC
		if got := said(t, s, inside.Path, "fs", subject.VolumePath); got != magic {
			t.Errorf("%s, not %s", got, magic)
		}
		said(t, s, inside.Path, "write", subject.VolumePath+"/file", "text")
		fails(t, s, 1, inside.Path, "cat", subject.VolumePath+"/file")
		// It is the pod's, and stays for its next container.
		for _, op := range []subject.Op{subject.Stop, subject.Remove, subject.Create, subject.Start} {
			succeed(t, s, op, 1)
		}
		if got := said(t, s, inside.Path, "cat", subject.VolumePath+"/file"); got != "text" {
			t.Errorf("%q", got)
		}
		// A pod that is removed takes it along, and one that is discarded.
		for _, op := range []subject.Op{subject.Stop, subject.Remove, subject.StopPod, subject.RemovePod} {
			succeed(t, s, op, 1)
		}
		mounted(t, u, env.RunID, 1)
		if err := s.Discard(t.Context(), []int{1}); err != nil {
			t.Fatal(err)
		}
		mounted(t, u, env.RunID, 0)
		succeed(t, s, subject.Run, 1)
		fails(t, s, 0, inside.Path, "cat", subject.VolumePath+"/file")
		shut(t, u, s)
		mounted(t, u, env.RunID, 0)
	})
}

// What a run that was killed has made is removed by whoever cleans: first the
// pods, then its folder.
func TestTheTmpfsOfAnInterruptedRunGoesWithItsFolder(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		env := environment(t, 2)
		env.Workload.Tmpfs = 1 << 20
		s := openedWith(t, u, "runc", env)
		succeed(t, s, subject.Run, 2)
		mounted(t, u, env.RunID, 2)
		left, err := s.conn.findOf(t.Context(), env.RunID, nil)
		if err == nil {
			err = left.remove(t.Context(), s.conn)
		}
		if err := errors.Join(err, mounts.RemoveTree(env.Dir)); err != nil {
			t.Fatal(err)
		}
		mounted(t, u, env.RunID, 0)
		shut(t, u, s)
	})
}

func TestTheTmpfsOfAPodThatFailedIsUnmounted(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		env := environment(t, 2)
		env.Workload.Tmpfs = 1 << 20
		s := openedWith(t, u, "runc", env)
		s.env.Timeout = 8 * time.Millisecond // too short for a pod
		for _, sample := range do(t, s, subject.Run, 2) {
			if sample.Failure == nil {
				t.Error("it did not fail")
			}
		}
		if err := s.Discard(t.Context(), upTo(2)); err != nil {
			t.Fatal(err)
		}
		mounted(t, u, env.RunID, 0)
		shut(t, u, s)
	})
}

func TestATmpfsThatCannotBeMountedFailsTheOpening(t *testing.T) {
	u := onCRIO(t)
	got, err := New(t.Context(), "cri+cri-o/runc", u.name, "runc", u.e)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*subject.Env){
		"a size that is none":     func(e *subject.Env) { e.Workload.Tmpfs = -1 },
		"a volume beside it":      func(e *subject.Env) { e.Workload.Volume = filepath.Join(e.Dir, "volume") },
		"a folder that is no one": func(e *subject.Env) { e.Dir = "/proc/tare" },
	} {
		t.Run(name, func(t *testing.T) {
			env := environment(t, 1)
			env.Workload.Tmpfs = 1 << 20
			change(&env)
			if s, err := got.Open(t.Context(), env); err == nil {
				t.Errorf("no error; closing it: %v", s.Close(t.Context()))
			}
			mounted(t, u, env.RunID, 0)
		})
	}
}

func TestAFolderOfTheRootFileSystemGoesWithTheContainer(t *testing.T) {
	inside := carried(t)
	onHandlers(t, func(t *testing.T, u engineUnderTest, handler string) {
		env := environment(t, 1)
		env.Workload.Files = []probe.File{inside}
		s := openedWith(t, u, handler, env)
		succeed(t, s, subject.RunPod, 1)
		for range 2 { // the second container of the pod has nothing of the first
			succeed(t, s, subject.Create, 1)
			succeed(t, s, subject.Start, 1)
			fails(t, s, 0, inside.Path, "cat", subject.VolumePath+"/file")
			said(t, s, inside.Path, "write", subject.VolumePath+"/file", "text")
			root, data := said(t, s, inside.Path, "fs", "/"), said(t, s, inside.Path, "fs", subject.VolumePath)
			if root != data {
				t.Errorf("%s, and the root has %s", data, root)
			}
			succeed(t, s, subject.Stop, 1)
			succeed(t, s, subject.Remove, 1)
		}
		shut(t, u, s)
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
	onHandlers(t, func(t *testing.T, u engineUnderTest, handler string) {
		device, file := loop(t)
		if err := os.WriteFile(device, []byte("from outside"), 0); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(device, link); err != nil {
			t.Fatal(err)
		}
		env := environment(t, 1)
		env.Workload = subject.Workload{Files: []probe.File{inside}, Device: link}
		s := openedWith(t, u, handler, env)
		succeed(t, s, subject.Run, 1)
		if got := said(t, s, inside.Path, "cat", subject.DevicePath); len(got) != 1<<20 || !strings.HasPrefix(got, "from outside\x00") {
			t.Errorf("%d bytes: %.20q", len(got), got)
		}
		said(t, s, inside.Path, "write", subject.DevicePath, "from inside!")
		shut(t, u, s)
		if out, err := exec.Command("sync", device).CombinedOutput(); err != nil {
			t.Fatalf("sync: %v: %s", err, out)
		}
		if b, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(b), "from inside!\x00") {
			t.Errorf("%.20q, %v", b, err)
		}
	})
}

func TestGVisorHasNoBlockDevices(t *testing.T) {
	device, file := loop(t)
	for runtime, unsupported := range map[string]bool{"runsc": true, "io.containerd.runsc.v1": true, "crun": false} {
		t.Run(runtime, func(t *testing.T) {
			s := &session{
				Target: &Target{handler: "x", facts: facts{handlers: map[string]handler{"x": {kind: runtime}}}},
				env:    subject.Env{Dir: t.TempDir(), Workload: subject.Workload{Device: device}},
			}
			if err := s.openStorage(); errors.Is(err, subject.ErrUnsupported) != unsupported || unsupported != (s.device.Node == "") {
				t.Errorf("%+v, %v", s.device, err)
			}
			s.env.Workload.Device = file
			if err := s.openStorage(); err == nil || errors.Is(err, subject.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), file) {
				t.Errorf("a file: %v", err)
			}
		})
	}
}
