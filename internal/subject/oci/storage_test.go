package oci_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/loopdev"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
)

// weighed is a session on two lanes with all that it was made with.
type weighed struct {
	subject.Session
	name  string
	dir   string // the target's folder of the run
	runID string
}

// each opens every target with what a workload says, given a folder of the test,
// and checks afterwards that nothing is left. An error of Open is refused's, which
// may be nil where there must be none.
func each(t *testing.T, workload func(t *testing.T, dir string) subject.Workload, refused func(name string, err error) bool, test func(t *testing.T, s weighed)) {
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	for _, c := range enginetest.Local {
		t.Run(c.Name, func(t *testing.T) {
			tg, err := c.New(t.Context())
			if err != nil {
				t.Skip(err)
			}
			env, dir := enginetest.Workspace(t, c.Name, 2)
			env.Workload = workload(t, dir)
			env.Workload.Files = []probe.File{{Path: "/tool", Source: "/proc/self/exe", Mode: 0o755}}
			s, err := tg.Open(t.Context(), env)
			if err != nil && refused != nil && refused(c.Name, err) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				err := errors.Join(s.Discard(context.Background(), []int{0, 1}), s.Close(context.Background()))
				left, below := mounts.Below(dir)
				if errors.Join(err, below) != nil || len(left) > 0 {
					t.Errorf("left mounted: %v, %v, %v", left, err, below)
				}
			})
			x := weighed{s, c.Name, env.Dir, env.RunID}
			x.run(t)
			test(t, x)
		})
	}
}

func (s weighed) run(t *testing.T) { s.do(t, subject.Run) }

func (s weighed) do(t *testing.T, op subject.Op) {
	t.Helper()
	enginetest.Must(t, s.Session, op, 2)
}

func (s weighed) exec(t *testing.T, lane int, args []string) subject.Executed {
	t.Helper()
	e, err := s.Session.(subject.Executor).Exec(t.Context(), lane, args)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (s weighed) fill(t *testing.T, lane int, bytes int64, path string) {
	t.Helper()
	e := s.exec(t, lane, probe.FillArgs(bytes, path))
	if f, err := probe.ParseFilled(e.Output); err != nil || f.Bytes != bytes || e.Exit != 0 {
		t.Fatalf("%+v: %+v, %v", e, f, err)
	}
}

// has tells whether there is the file in the container on a lane.
func (s weighed) has(t *testing.T, lane int) bool {
	t.Helper()
	e := s.exec(t, lane, probe.EvictArgs(file))
	_, err := probe.ParseEvicted(e.Output)
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		t.Fatalf("%+v: %v", e, err)
	}
	return err == nil
}

func (s weighed) fileSystems(t *testing.T) (data, root probe.FileSystem) {
	t.Helper()
	e := s.exec(t, 0, probe.FileSystemArgs(subject.VolumePath, "/"))
	list, err := probe.ParseFileSystems(e.Output)
	if err != nil || len(list) != 2 || list[0].Errno != 0 || list[1].Errno != 0 {
		t.Fatalf("%+v: %+v, %v", e, list, err)
	}
	return list[0], list[1]
}

const megabyte = 1 << 20

const file = subject.VolumePath + "/file"

func TestWithoutAVolumeFilesLieOnTheContainersOwnRoot(t *testing.T) {
	none := func(*testing.T, string) subject.Workload { return subject.Workload{} }
	each(t, none, nil, func(t *testing.T, s weighed) {
		s.fill(t, 0, megabyte, file)
		if s.has(t, 1) {
			t.Error("the container on lane 1 has the file of that on lane 0")
		}
		data, root := s.fileSystems(t)
		if s.name != "host" && data.Type != root.Type {
			t.Errorf("%+v is not on %+v", data, root)
		}
		where := map[string]string{"host": "volume/0/file", "runsc": "rootfs-0/.gvisor.filestore.*"}[s.name]
		if where == "" {
			where = "rootfs-0/data/file"
		}
		found, _ := filepath.Glob(filepath.Join(s.dir, where))
		if len(found) != 1 || onDisk(t, found[0]) < megabyte {
			t.Errorf("on the host %s is %v", where, found)
		}
		if err := s.Discard(t.Context(), []int{0, 1}); err != nil {
			t.Fatal(err)
		}
		if found, _ := filepath.Glob(filepath.Join(s.dir, where)); len(found) > 0 {
			t.Errorf("the container is gone and left %v", found)
		}
		s.run(t)
		s.fill(t, 0, megabyte, file)
		s.do(t, subject.Stop)
		if s.name != "host" {
			s.do(t, subject.Remove)
		}
		s.run(t)
		if s.has(t, 0) {
			t.Error("the next container on the lane has it still")
		}
	})
}

// onDisk is the room that a file takes, in bytes.
func onDisk(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Error(err)
	}
	return st.Blocks * 512
}

func TestOnAVolumeFilesLieInTheFolderOfTheLane(t *testing.T) {
	bind := func(_ *testing.T, dir string) subject.Workload {
		return subject.Workload{Volume: filepath.Join(dir, "volume")}
	}
	each(t, bind, nil, func(t *testing.T, s weighed) {
		s.fill(t, 1, megabyte, file)
		volume := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(s.dir))), "volume")
		if info, err := os.Stat(filepath.Join(volume, "1", "file")); err != nil || info.Size() != megabyte {
			t.Errorf("%v, %v", info, err)
		}
	})
}

func TestATmpfsHasItsSizeAndGoesWithItsContainer(t *testing.T) {
	tmpfs := func(*testing.T, string) subject.Workload { return subject.Workload{Tmpfs: 8 * megabyte} }
	each(t, tmpfs, nil, func(t *testing.T, s weighed) {
		s.fill(t, 0, megabyte, file)
		if s.has(t, 1) {
			t.Error("the container on lane 1 has the file of that on lane 0")
		}
		if data, _ := s.fileSystems(t); data.Type != unix.TMPFS_MAGIC || data.Size != 8*megabyte {
			t.Errorf("%+v, want a tmpfs of %d bytes", data, 8*megabyte)
		}
		e := s.exec(t, 0, probe.FillArgs(9*megabyte, file))
		if _, err := probe.ParseFilled(e.Output); !errors.Is(err, syscall.ENOSPC) || e.Exit != 1 {
			t.Errorf("%+v: %v", e, err)
		}
		points, err := mounts.Below(s.dir)
		if on := s.name == "host"; err != nil || on != (len(points) == 2) {
			t.Errorf("mounted on the host: %v, %v", points, err)
		}
		// A list of mounts that is read while others mount can lack some: it is read in parts.
		named := 0
		for range 20 {
			b, _ := os.ReadFile("/proc/thread-self/mountinfo")
			named = max(named, strings.Count(string(b), " tmpfs tare-"+s.runID+" "))
		}
		if s.name == "host" && named != 2 {
			t.Errorf("the run's name is that of %d of its 2 mounts", named)
		}
		if err := s.Discard(t.Context(), []int{0, 1}); err != nil {
			t.Fatal(err)
		}
		s.run(t)
		if s.has(t, 0) {
			t.Error("the next container on the lane has it still")
		}
		s.fill(t, 0, 7*megabyte, file)
	})
}

// loop is a block device of eight megabytes and the file that is its content.
func loop(t *testing.T) (device, content string) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { // after it was detached: whoever still had it open would keep it
		backing := filepath.Join("/sys/block", filepath.Base(device), "loop", "backing_file")
		if b, err := os.ReadFile(backing); err == nil && strings.TrimSpace(string(b)) == content {
			t.Errorf("%s is still %s: something has it open", device, content)
		}
	})
	return loopdev.In(t, dir, 8*megabyte)
}

func TestADeviceIsWrittenFromInside(t *testing.T) {
	var content string
	device := func(t *testing.T, _ string) (w subject.Workload) {
		w.Device, content = loop(t)
		return w
	}
	refused := func(name string, err error) bool {
		return name == "runsc" && errors.Is(err, subject.ErrUnsupported) && strings.Contains(err.Error(), "ENXIO")
	}
	each(t, device, refused, func(t *testing.T, s weighed) {
		if s.name == "runsc" {
			t.Fatal("gVisor was opened with a block device: then nothing need refuse it")
		}
		s.fill(t, 0, 3*megabyte, subject.DevicePath)
		b, err := os.ReadFile(content)
		if err != nil || len(b) != 8*megabyte {
			t.Fatal(len(b), err)
		}
		if zero := make([]byte, megabyte); bytes.Contains(b[:3*megabyte], zero[:512]) || !bytes.Equal(b[3*megabyte:4*megabyte], zero) {
			t.Error("the device does not hold what was written, to the byte")
		}
		e := s.exec(t, 1, probe.DirectArgs(subject.DevicePath))
		if d, err := probe.ParseDirect(e.Output); err != nil || !d.Taken {
			t.Errorf("%+v: %+v, %v", e, d, err)
		}
		e = s.exec(t, 1, probe.FillArgs(9*megabyte, subject.DevicePath))
		if _, err := probe.ParseFilled(e.Output); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%+v: %v", e, err)
		}
	})
}

func TestAWorkloadThatContradictsItselfIsRefused(t *testing.T) {
	for name, w := range map[string]subject.Workload{
		"a volume and a tmpfs":      {Volume: "/nonexistent", Tmpfs: megabyte},
		"a tmpfs of less than none": {Tmpfs: -1},
		"a device that is a file":   {Device: "/etc/passwd"},
		"a device that is a link":   {Device: "/dev/fd"},
		"a device that isn't there": {Device: "/dev/tare-absent"},
	} {
		t.Run(name, func(t *testing.T) {
			all := func(string, error) bool { return true }
			each(t, func(*testing.T, string) subject.Workload { return w }, all, func(t *testing.T, s weighed) {
				t.Error(fmt.Errorf("%s was opened with %+v", s.name, w))
			})
		})
	}
}
