package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func TestCountersOfBlockDevices(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       map[string]record.DeviceUse
	}{
		{"line with 20 fields", "   8       0 sda 10 1 80 5 20 2 160 7 0 9 12 0 0 0 0 1 1\n",
			map[string]record.DeviceUse{"sda": {Name: "sda", ReadIOs: 10, ReadBytes: 80 * 512, WriteIOs: 20, WriteBytes: 160 * 512, Busy: 9e6}}},
		{"truncated line is skipped", "8 0 sda 10 1 80\n   8 1 sdb 1 0 8 0 0 0 0 0 0 0 0\n",
			map[string]record.DeviceUse{"sdb": {Name: "sdb", ReadIOs: 1, ReadBytes: 8 * 512}}},
		{"overflowing counter is skipped", "8 0 sda 1 0 9223372036854775807 0 0 0 0 0 0 0 0\n", map[string]record.DeviceUse{}},
		{"malformed line is skipped", "8 0 sda x y z 0 0 0 0 0 0 0 0\n\n\x00\xff\n", map[string]record.DeviceUse{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := parse([]byte(test.text))
			must.That(t, len(got) == len(test.want), "got %v, want %v", got, test.want)
			for name, want := range test.want {
				check.Equal(t, name, got[name], want)
			}
		})
	}
}

func TestSumsAndDifferencesAreNotNegative(t *testing.T) {
	then := Stats{"a": {Name: "a", ReadBytes: 5, Busy: 9}, "b": {Name: "b", ReadBytes: 7}}
	now := Stats{"a": {Name: "a", ReadBytes: 15, Busy: 3}, "b": {Name: "b", ReadBytes: 8}}
	got := Between(then.Of("a", "b", "gone"), now.Of("a", "b", "gone"))
	check.Equal(t, "decreasing counter", got, (record.DeviceUse{Name: "a+b", ReadBytes: 11}))
}

func TestWriteToAFileCountsForItsDevice(t *testing.T) {
	dir := t.TempDir()
	device, kind, err := Under(dir)
	must.OK(t, err)
	must.That(t, kind != "tmpfs", "%s is in memory: set TMPDIR to a folder on a disk", dir)
	must.That(t, device != "", "no device for %s (%s)", dir, kind)
	before := must.Get(Read(""))(t)
	const size = 8 << 20
	f := must.Get(os.Create(filepath.Join(dir, "file")))(t)
	defer f.Close()
	must.Get(f.Write(make([]byte, size)))(t)
	must.OK(t, f.Sync())
	after := must.Get(Read(""))(t)
	got := Between(before.Of(device), after.Of(device))
	check.That(t, got.WriteBytes >= size, "%s wrote %d bytes, want at least %d", device, got.WriteBytes, size)
	disks := must.Get(ReadDisks(""))(t)
	whole := after.Whole(disks)
	check.That(t, len(whole) != 0, "the machine has no whole disk")
}

func TestMemoryAndOverlaysAreNotDisks(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	mount := func(kind, options string) string {
		at := filepath.Join(dir, kind)
		must.OK(t, os.Mkdir(at, 0o700))
		err := unix.Mount("tare-test", at, kind, 0, options)
		must.That(t, err == nil, "mount %s: %v", kind, err)
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		return at
	}
	for _, name := range []string{"lower", "upper", "work"} {
		must.OK(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	below, _, err := Under(dir)
	must.OK(t, err)
	device, kind, err := Under(mount("tmpfs", ""))
	check.That(t, err == nil && device == "" && kind == "tmpfs", "tmpfs: got %q on %q, %v", kind, device, err)
	layers := "lowerdir=" + dir + "/lower,upperdir=" + dir + "/upper,workdir=" + dir + "/work"
	device, kind, err = Under(mount("overlay", layers))
	check.That(t, err == nil && device == below && kind == "overlay", "overlay: got %q on %q, want it on %q, %v", kind, device, below, err)
	_, _, err = Under(filepath.Join(dir, "none"))
	check.That(t, err != nil, "a missing folder has a device")
	name, err := NameOf(dir)
	check.That(t, err != nil, "a folder is reported as the block device %s", name)
}

func TestBtrfsOnSeveralDevicesHasNoDevice(t *testing.T) {
	folder := t.TempDir()
	for _, device := range []string{"one/devices/vdb", "two/devices/vdc", "two/devices/cciss!c0d0", "two/allocation"} {
		must.OK(t, os.MkdirAll(filepath.Join(folder, device), 0o700))
	}
	for name, want := range map[string]bool{"vdb": false, "vdc": true, "cciss/c0d0": true, "vda": false} {
		check.Equal(t, name, among(folder, name), want)
	}
}

func TestLoopDeviceHasAName(t *testing.T) {
	path, _ := loopdev.New(t, 1<<20)
	check.Equal(t, path, "/dev/"+must.Get(NameOf(path))(t), path)
}

func TestRestWaitsForIdleDevices(t *testing.T) {
	quiet := "   8 0 sda 10 1 80 5 20 2 160 7 0 9 12\n"
	busy := "   8 0 sda 10 1 80 5 20 2 160 7 3 9 12\n"
	for _, test := range []struct {
		name, text string
		names      []string
		want       bool
	}{
		{"idle device", quiet, []string{"sda"}, true},
		{"requests in flight", busy, []string{"sda"}, false},
		{"requests of another device", busy, []string{"sdb"}, true},
		{"no device", "", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			must.OK(t, os.Mkdir(filepath.Join(root, "proc"), 0o700))
			must.OK(t, os.WriteFile(filepath.Join(root, "proc/diskstats"), []byte(test.text), 0o600))
			synctest.Test(t, func(t *testing.T) { // a busy machine would allow too few readings in this time
				check.Equal(t, "at rest", Rest(t.Context(), machine.Root(root), test.names, 300*time.Millisecond), test.want)
			})
		})
	}
	check.That(t, !Rest(context.Background(), machine.Root(t.TempDir()), []string{"sda"}, 10*time.Millisecond),
		"an unreadable diskstats counts as idle")
}

func TestNewDeviceIsLookedUpOnce(t *testing.T) {
	root := machine.Root(t.TempDir())
	must.OK(t, os.MkdirAll(string(root)+"/sys/block/sda/slaves", 0o700))
	stats := []byte("8 0 sda 1 0 1 0 1 0 2 0 0 0 0\n8 1 sda1 1 0 1 0 1 0 2 0 0 0 0\n66 0 odd 1 0 9 0 1 0 9 0 0 0 0\n")
	var d Disks
	must.OK(t, d.Follow(root, stats))
	read, written := d.Sum(stats)
	check.That(t, read == 512 && written == 1024, "%d read, %d written", read, written)
	name := d.unknown(stats)
	check.That(t, name == nil, "%s is looked up again", name)
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("8 0 sda 1 0 1 0 1 0 2 0 0 0 0\n"))
	f.Fuzz(func(t *testing.T, stats []byte) {
		d := Disks{names: map[string]bool{"sda": true, "": true}}
		read, written := d.Sum(stats)
		check.That(t, min(read, written) >= 0, "%q: %d, %d", stats, read, written)
	})
}

func TestLimitsOfAGroupAndItsAncestorsAreRead(t *testing.T) {
	devices, err := os.ReadDir("/sys/dev/block")
	if err != nil || len(devices) == 0 {
		t.Skip("this machine has no block device")
	}
	number := devices[0].Name()
	var major, minor int
	must.Get(fmt.Sscanf(number, "%d:%d", &major, &minor))(t)
	name := Name(major, minor)
	for version, files := range map[string]map[string]string{
		"1 0 0:1 / /cg/blkio rw - cgroup cgroup rw,blkio\n": {
			"/cg/blkio/a/b/blkio.throttle.read_bps_device":   number + " 1000\n9999:1 7\n",
			"/cg/blkio/a/b/blkio.throttle.write_iops_device": "\n",
			"/cg/blkio/a/blkio.throttle.write_iops_device":   number + " 20\nrubbish\n",
		},
		"1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n": {
			"/cg/cgroup.controllers": "io memory\n",
			"/cg/a/b/io.max":         number + " rbps=1000 wbps=max riops=max wiops=max\n9999:1 rbps=7\n",
			"/cg/a/io.max":           number + " wiops=20 rbps=max\n",
		},
	} {
		root := t.TempDir()
		files["/proc/self/mountinfo"] = version
		for path, text := range files {
			path = filepath.Join(root, path)
			must.Write(t, path, text)
		}
		want := []record.IOLimit{{Group: "/a/b", Device: name, Value: 1000}, {Group: "/a", Device: name, Write: true, IOs: true, Value: 20}}
		check.Equal(t, name, Limits(machine.Root(root), []string{"/a/b", "/a/b", "/a"}), want)
	}
}

// memory mounts a tmpfs and returns its folder.
func memory(t *testing.T) string {
	t.Helper()
	need.Root(t)
	at := t.TempDir()
	must.OK(t, unix.Mount("tmpfs", at, "tmpfs", 0, "size=64M"))
	t.Cleanup(func() {
		// A loop device that is in use releases its file only some time after it was
		// detached.
		for deadline := time.Now().Add(time.Minute); unix.Unmount(at, 0) != nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("%s is still mounted", at)
				return
			}
		}
	})
	return at
}

func TestLoopDeviceIsBackedByTheDeviceOfItsFile(t *testing.T) {
	dir := t.TempDir()
	disk, _, err := Under(dir)
	must.That(t, err == nil && disk != "", "the test folder is on no device (%v): set TMPDIR to a folder on a disk", err)
	onDisk, _ := loopdev.In(t, dir, 16<<20)
	inMemory, _ := loopdev.In(t, memory(t), 16<<20)
	twice := loopdev.On(t, inMemory)
	for path, want := range map[string][2]string{
		onDisk:   {disk, ""},
		inMemory: {filepath.Base(inMemory), filepath.Base(inMemory) + " lies on a tmpfs"},
		twice:    {filepath.Base(inMemory), filepath.Base(twice) + " lies on " + filepath.Base(inMemory) + ": " + filepath.Base(inMemory) + " lies on a tmpfs"},
		disk:     {disk, ""},
	} {
		device, memory, err := Below(filepath.Base(path))
		got := [2]string{device, memory}
		check.That(t, err == nil && got == want, "%s: %q, %v; want %q", path, got, err, want)
	}
}

func TestRAMDisksAreMemoryByTheirDrivers(t *testing.T) {
	for name, want := range map[string]bool{"ram0": true, "zram12": true, "nullb0": true, "ramfoo": false, "zram": false, "sda": false} {
		check.Equal(t, name, isMemory(name), want)
	}
	if _, err := os.Stat(Sysfs("zram0")); err != nil {
		t.Skip("this kernel has no zram device")
	}
	device, memory, err := Below("zram0")
	check.That(t, device == "zram0" && memory == "zram0 is memory" && err == nil, "%q %q %v", device, memory, err)
}

func TestMissingDeviceIsAnError(t *testing.T) {
	device, _, err := Below("no-such-device")
	check.That(t, err != nil && device == "", "%q %v", device, err)
}

func TestDropCachesStopsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	hangs, over := make(chan struct{}), make(chan struct{})
	began := func() { stop(); <-hangs; close(over) }
	err := dropAfter(ctx, began, func() error { t.Error("the caches were dropped"); return nil })
	check.Is(t, err, context.Canceled)
	close(hangs)
	<-over
}

func TestDropCachesWritesBackFirst(t *testing.T) {
	done := ""
	err := dropAfter(t.Context(), func() { done += "sync " }, func() error { done += "drop"; return fs.ErrPermission })
	check.That(t, errors.Is(err, fs.ErrPermission) && done == "sync drop", "%q, %v", done, err)
}
