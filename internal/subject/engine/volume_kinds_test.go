package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestAWorkloadHasOneThingAtTheVolumesPath(t *testing.T) {
	for _, w := range []subject.Workload{{Tmpfs: 1, Volume: t.TempDir()}, {Tmpfs: -1}} {
		if v, err := OpenVolumes(subject.Env{Lanes: 1, Workload: w}); err == nil {
			t.Errorf("%+v: %v", w, v)
		}
	}
	files := []probe.File{{Path: "/fio"}}
	for _, c := range []struct {
		w      subject.Workload
		onRoot bool
	}{
		{subject.Workload{Files: files}, true},
		{subject.Workload{}, false},
		{subject.Workload{Files: files, Volume: "/v"}, false},
		{subject.Workload{Files: files, Tmpfs: 1}, false},
		{subject.Workload{Files: files, Device: "/dev/x"}, false},
	} {
		if onRoot(c.w) != c.onRoot {
			t.Errorf("%+v: on the root file system: %v", c.w, !c.onRoot)
		}
	}
	if got := TmpfsOptions(subject.Workload{Tmpfs: 4096}); !slices.Contains(got, "size=4096") || !slices.Contains(got, "mode=1777") {
		t.Errorf("%q", got)
	}
}

func TestADeviceIsABlockDevice(t *testing.T) {
	if d, err := FindDevice(subject.Workload{}); err != nil || d != (Device{}) {
		t.Errorf("none: %+v, %v", d, err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{"dev/x", file, dir, "/dev/null", filepath.Join(dir, "absent")} {
		if d, err := FindDevice(subject.Workload{Device: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %+v, %v", path, d, err)
		}
	}
	if _, err := FindDevice(subject.Workload{Device: filepath.Join(dir, "absent")}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestALinkLeadsToItsDevice(t *testing.T) {
	need.Root(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	node, link, odd := filepath.Join(dir, "node"), filepath.Join(dir, "pci-0:1"), filepath.Join(dir, "a:b")
	for _, path := range []string{node, odd} { // nobody opens it: 259:1048575 need not be
		must.OK(t, unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(259, 1048575))))
	}
	must.OK(t, os.Symlink(node, link))
	if d, err := FindDevice(subject.Workload{Device: link}); err != nil || d != (Device{node, 259, 1048575}) {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := FindDevice(subject.Workload{Device: odd}); err == nil {
		t.Errorf("%+v", d)
	}
}

func TestADevicePassesToRuntimesWhoseContainersOpenIt(t *testing.T) {
	device := subject.Workload{Device: "/dev/x"}
	for name, c := range map[string]struct {
		err  error
		want string // "" for no error
	}{
		"runc":                         {err: Passes(device, "runc", "/usr/sbin/runc", "", "runc version 1.1.5")},
		"Kata":                         {err: Passes(device, "kata", "io.containerd.kata.v2")},
		"gVisor":                       {Passes(device, "gv", "/opt/bin/runsc"), "gVisor (/opt/bin/runsc)"},
		"gVisor's shim":                {Passes(device, "gv", "", "io.containerd.runsc.v1"), "gVisor"},
		"gVisor by its words":          {Passes(device, "x", "/x", "runsc version release-20260101.0"), "gVisor"},
		"another one in its folder":    {err: Passes(device, "/opt/gvisor/crun")},
		"gVisor, which is given none":  {err: Passes(subject.Workload{Volume: "/v"}, "runsc")},
		"nothing is known of the name": {err: Passes(device)},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && (!errors.Is(c.err, subject.ErrUnsupported) || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}
