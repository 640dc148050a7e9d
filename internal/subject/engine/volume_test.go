package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func volumes(t *testing.T, dir string) *Volumes {
	t.Helper()
	v := must.Get(OpenVolumes(subject.Env{Lanes: 2, Workload: subject.Workload{Volume: dir}}))(t)
	return v
}

func TestEachLaneHasAWritableFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	first, second := volumes(t, dir), volumes(t, dir)
	for n, name := range []string{"0", "1"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o777 || first.Folder(n) != filepath.Join(dir, name) {
			t.Errorf("%v, %v, %s", info, err, first.Folder(n))
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "0", "file"), nil, 0o600))
	must.OK(t, first.Close())
	if _, err := os.Stat(filepath.Join(dir, "0", "file")); err != nil {
		t.Errorf("a folder in use was removed: %v", err)
	}
	must.OK(t, second.Close())
	check.Equal(t, "left", len(must.Get(os.ReadDir(dir))(t)), 0)
}

func TestVolumeIsClosedToOtherUsers(t *testing.T) {
	dir := t.TempDir() // other users can traverse it
	defer volumes(t, dir).Close()
	check.Equal(t, "mode", must.Get(os.Stat(dir))(t).Mode().Perm(), 0o700)
}

func TestExistingFolderStays(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "1"), 0o700))
	must.OK(t, volumes(t, dir).Close())
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "1" {
		t.Errorf("left: %v", left)
	}
}

func TestInvalidVolumeIsRefused(t *testing.T) {
	dir := t.TempDir()
	linked := filepath.Join(dir, "linked")
	must.OK(t, os.Mkdir(linked, 0o700))
	must.OK(t, os.Symlink("/etc", filepath.Join(linked, "0")))
	for _, volume := range []string{"relative", filepath.Join(dir, "a:b"), filepath.Join(dir, "a,b"), linked} {
		if _, err := OpenVolumes(subject.Env{Lanes: 1, Workload: subject.Workload{Volume: volume}}); err == nil {
			t.Errorf("%s: no error", volume)
		}
	}
	if v, err := OpenVolumes(subject.Env{Lanes: 1}); v != nil || err != nil || v.Folder(0) != "" || v.Close() != nil {
		t.Errorf("no volume: %v, %v", v, err)
	}
}

func TestTmpfsAndVolumeExcludeEachOther(t *testing.T) {
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
		check.Equal(t, c.w, onRoot(c.w), c.onRoot)
	}
	if got := TmpfsOptions(subject.Workload{Tmpfs: 4096}); !slices.Contains(got, "size=4096") || !slices.Contains(got, "mode=1777") {
		t.Errorf("%q", got)
	}
}

func TestFindDeviceRefusesOtherFiles(t *testing.T) {
	check.Equal(t, "none", must.Get(FindDevice(subject.Workload{}))(t), (Device{}))
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{"dev/x", file, dir, "/dev/null", filepath.Join(dir, "absent")} {
		_, err := FindDevice(subject.Workload{Device: path})
		check.Error(t, err, path)
	}
	if _, err := FindDevice(subject.Workload{Device: filepath.Join(dir, "absent")}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestFindDeviceFollowsLinks(t *testing.T) {
	need.Root(t)
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	node, link, odd := filepath.Join(dir, "node"), filepath.Join(dir, "pci-0:1"), filepath.Join(dir, "a:b")
	for _, path := range []string{node, odd} { // the device is never opened, so it need not exist
		must.OK(t, unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(259, 1048575))))
	}
	must.OK(t, os.Symlink(node, link))
	check.Equal(t, "device", must.Get(FindDevice(subject.Workload{Device: link}))(t), (Device{node, 259, 1048575}))
	if d, err := FindDevice(subject.Workload{Device: odd}); err == nil {
		t.Errorf("%+v", d)
	}
}

func TestDevicePassesToAllRuntimesButGVisor(t *testing.T) {
	device := subject.Workload{Device: "/dev/x"}
	for name, c := range map[string]struct {
		err  error
		want string // "" for no error
	}{
		"runc":                               {err: Passes(device, "runc", "/usr/sbin/runc", "", "runc version 1.1.5")},
		"Kata":                               {err: Passes(device, "kata", "io.containerd.kata.v2")},
		"gVisor":                             {Passes(device, "gv", "/opt/bin/runsc"), "gVisor (/opt/bin/runsc)"},
		"gVisor shim":                        {Passes(device, "gv", "", "io.containerd.runsc.v1"), "gVisor"},
		"gVisor by its version output":       {Passes(device, "x", "/x", "runsc version release-20260101.0"), "gVisor"},
		"other runtime in the gVisor folder": {err: Passes(device, "/opt/gvisor/crun")},
		"gVisor without a device":            {err: Passes(subject.Workload{Volume: "/v"}, "runsc")},
		"no name":                            {err: Passes(device)},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && (!errors.Is(c.err, subject.ErrUnsupported) || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func TestPlaceFlags(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	for name, c := range map[string]struct {
		w    subject.Workload
		want string
	}{
		"nothing":  {want: ""},
		"a volume": {w: subject.Workload{Volume: dir}, want: "--volume " + dir + "/1:/data:Z"},
		"a tmpfs":  {w: subject.Workload{Tmpfs: 4096}, want: "--tmpfs /data:nosuid,nodev,mode=1777,size=4096,exec"},
	} {
		p := must.Get(OpenPlaces(subject.Env{Lanes: 2, Workload: c.w}))(t)
		place := p.On(1)
		check.Equal(t, name, strings.Join(place.Flags(place.Tmpfs...), " "), c.want)
		must.OK(t, p.Close())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	must.OK(t, Places{}.Close())
}

func TestDeviceFlagHasTheNode(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	link, node := filepath.Join(dir, "pci-0:1"), filepath.Join(dir, "node")
	if out, err := exec.Command("mknod", node, "b", "7", "200").CombinedOutput(); err != nil {
		t.Fatalf("mknod: %v: %s", err, out)
	}
	must.OK(t, os.Symlink("node", link))
	p := must.Get(OpenPlaces(subject.Env{Lanes: 1, Workload: subject.Workload{Device: link}}))(t)
	check.Equal(t, "flags", p.On(0).Flags(), []string{"--device", node + ":/dev/tare:rwm"})
	if p, err := OpenPlaces(subject.Env{Workload: subject.Workload{Device: "/dev/null"}}); err == nil {
		t.Errorf("a character device was accepted: %+v", p)
	}
}

func TestRemoteEngineHasNoLocalFolders(t *testing.T) {
	device, volume := subject.Workload{Device: "/dev/x"}, subject.Workload{Volume: "/v"}
	for name, c := range map[string]struct {
		err  error
		want string // "" for no error
	}{
		"local volume":  {err: Elsewhere(volume, "daemon", "")},
		"remote volume": {Elsewhere(volume, "daemon", "by ssh"), "a volume on a daemon elsewhere (by ssh)"},
		"remote device": {Elsewhere(device, "service", "by ssh"), "a device on a service elsewhere (by ssh)"},
		"remote tmpfs":  {err: Elsewhere(subject.Workload{Tmpfs: 1}, "daemon", "by ssh")},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && (!errors.Is(c.err, subject.ErrUnsupported) || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func TestProcessBelongsToAContainerByItsCgroup(t *testing.T) {
	need.Root(t)
	hs := must.Get(cgroup.Hierarchies())(t)
	const id = "0123456789abcdef"
	name := cgroup.Prefix + "owns-" + NewName("r", 0)
	sleep := exec.Command("sleep", "1000")
	must.OK(t, sleep.Start())
	t.Cleanup(func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
		must.OK(t, cgroup.Remove(hs, name))
	})
	pid := sleep.Process.Pid
	for _, c := range []State{{}, {ID: id}, {ID: id, Group: "/" + name, GroupRequested: true}, {Group: "/", GroupRequested: true}} {
		if c.owns(pid) {
			t.Errorf("%+v: a foreign process", c)
		}
	}
	must.OK(t, cgroup.Delegate(hs, name+"/"+id, "pids"))
	for _, h := range cgroup.Using(hs, "pids") {
		must.OK(t, os.WriteFile(filepath.Join(h.Mount, name, id, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600))
	}
	for want, all := range map[bool][]State{
		true:  {{ID: id}, {ID: "other", Pod: Pod{ID: id}}, {ID: "other", Group: "/" + name, GroupRequested: true}},
		false: {{ID: "other", Group: "/" + name}, {ID: "other", Group: "/" + name + "-2", GroupRequested: true}, {}},
	} {
		for _, c := range all {
			check.That(t, c.owns(pid) == want, "%+v: want %v for a process in %s/%s", c, want, name, id)
		}
	}
}
