package oci_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// weighed is a session with two lanes.
type weighed struct {
	subject.Session
	name  string
	dir   string // the folder of the target
	runID string
}

// each opens every target with a workload, which may use a folder of the test. Afterwards
// it checks for leftovers. refused reports whether an error of Open is expected. If refused
// is nil, Open must succeed.
func each(t *testing.T, workload func(t *testing.T, dir string) subject.Workload, refused func(name string, err error) bool, test func(t *testing.T, s weighed)) {
	need.Root(t)
	for _, c := range enginetest.Local {
		t.Run(c.Name, func(t *testing.T) {
			need.Runtime(t, c.Name)
			tg := must.Get(c.New(t.Context()))(t)
			env, dir := enginetest.Workspace(t, c.Name, 2)
			env.Workload = workload(t, dir)
			env.Workload.Files = []probe.File{{Path: "/tool", Source: "/proc/self/exe", Mode: 0o755}}
			s, err := tg.Open(t.Context(), env)
			if err != nil && refused != nil && refused(c.Name, err) {
				return
			}
			must.OK(t, err)
			t.Cleanup(func() {
				err := errors.Join(s.Discard(context.Background(), []int{0, 1}), s.Close(context.Background()))
				left, below := mounts.Below(dir)
				check.That(t, errors.Join(err, below) == nil && len(left) == 0, "left mounted: %v, %v, %v", left, err, below)
			})
			enginetest.Must(t, s, subject.Run, 2)
			test(t, weighed{s, c.Name, env.Dir, env.RunID})
		})
	}
}

func TestFilesWithoutAVolumeAreOnTheContainerRoot(t *testing.T) {
	none := func(*testing.T, string) subject.Workload { return subject.Workload{} }
	each(t, none, nil, func(t *testing.T, s weighed) {
		where := map[string]string{"host": "volume/0/file", "runsc": "rootfs-0/.gvisor.filestore.*"}[s.name]
		if where == "" {
			where = "rootfs-0/data/file"
		}
		again := func() {
			found, _ := filepath.Glob(filepath.Join(s.dir, where))
			check.That(t, len(found) == 1 && onDisk(t, found[0]) >= megabyte, "files %s on the host: %v", where, found)
			must.OK(t, s.Discard(t.Context(), []int{0, 1}))
			found, _ = filepath.Glob(filepath.Join(s.dir, where))
			check.That(t, len(found) == 0, "files after the removal: %v", found)
			enginetest.Must(t, s.Session, subject.Run, 2)
		}
		if s.name != "host" {
			enginetest.RootFS(t, s.Session, again)
		} else { // the host has no root per lane
			s.fill(t, 0)
			enginetest.Without(t, s.Session, 1)
			again()
			enginetest.Without(t, s.Session, 0)
		}
		s.fill(t, 0)
		enginetest.Must(t, s.Session, subject.Stop, 2)
		if s.name != "host" {
			enginetest.Must(t, s.Session, subject.Remove, 2)
		}
		enginetest.Must(t, s.Session, subject.Run, 2)
		enginetest.Without(t, s.Session, 0)
	})
}

const megabyte = 1 << 20

// fill writes a megabyte to a file in the container on a lane.
func (s weighed) fill(t *testing.T, lane int) {
	t.Helper()
	must.OK(t, enginetest.Fill(t, s.Session, lane, megabyte, enginetest.File))
}

// onDisk returns the allocated size of a file in bytes.
func onDisk(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must.OK(t, unix.Stat(path, &st))
	return st.Blocks * 512
}

func TestFilesOnAVolumeAreInTheFolderOfTheLane(t *testing.T) {
	bind := func(_ *testing.T, dir string) subject.Workload {
		return subject.Workload{Volume: filepath.Join(dir, "volume")}
	}
	each(t, bind, nil, func(t *testing.T, s weighed) {
		s.fill(t, 1)
		volume := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(s.dir))), "volume")
		check.Equal(t, "size", must.Get(os.Stat(filepath.Join(volume, "1", "file")))(t).Size(), megabyte)
	})
}

func TestTmpfsHasItsSizeAndEndsWithItsContainer(t *testing.T) {
	tmpfs := func(*testing.T, string) subject.Workload { return subject.Workload{Tmpfs: 8 * megabyte} }
	each(t, tmpfs, nil, func(t *testing.T, s weighed) {
		enginetest.Tmpfs(t, s.Session, 8*megabyte)
		points, err := mounts.Below(s.dir)
		on := s.name == "host"
		check.That(t, err == nil && on == (len(points) == 2), "mounted on the host: %v, %v", points, err)
		// The kernel returns the mounts in parts. Entries may be missing while other
		// processes mount.
		named := 0
		for range 20 {
			b, _ := os.ReadFile("/proc/thread-self/mountinfo")
			named = max(named, strings.Count(string(b), " tmpfs tare-"+s.runID+" "))
		}
		check.That(t, s.name != "host" || named == 2, "%d mounts have the name of the run, want 2", named)
		must.OK(t, s.Discard(t.Context(), []int{0, 1}))
		enginetest.Must(t, s.Session, subject.Run, 2)
		enginetest.Without(t, s.Session, 0)
		must.OK(t, enginetest.Fill(t, s.Session, 0, 7*megabyte, enginetest.File))
	})
}

func TestDeviceIsWrittenFromInside(t *testing.T) {
	var node string
	device := func(t *testing.T, _ string) (w subject.Workload) {
		w.Device, node = enginetest.Loop(t, 4*megabyte)
		return w
	}
	refused := func(name string, err error) bool {
		return name == "runsc" && errors.Is(err, subject.ErrUnsupported) && strings.Contains(err.Error(), "ENXIO")
	}
	each(t, device, refused, func(t *testing.T, s weighed) {
		must.That(t, s.name != "runsc", "gVisor accepted a block device, so tare need not refuse it")
		enginetest.Device(t, s.Session, node)
	})
}

func TestContradictoryWorkloadIsRefused(t *testing.T) {
	for name, w := range map[string]subject.Workload{
		"volume and tmpfs": {Volume: "/nonexistent", Tmpfs: megabyte},
		"negative tmpfs":   {Tmpfs: -1},
		"file as a device": {Device: "/etc/passwd"},
		"link as a device": {Device: "/dev/fd"},
		"missing device":   {Device: "/dev/tare-absent"},
	} {
		t.Run(name, func(t *testing.T) {
			all := func(string, error) bool { return true }
			each(t, func(*testing.T, string) subject.Workload { return w }, all, func(t *testing.T, s weighed) {
				t.Error(fmt.Errorf("%s was opened with %+v", s.name, w))
			})
		})
	}
}
