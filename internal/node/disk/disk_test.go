package disk

import (
	"context"
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
	tests := []struct {
		name, text string
		want       map[string]record.DeviceUse
	}{
		{"a kernel's line of 20 fields", "   8       0 sda 10 1 80 5 20 2 160 7 0 9 12 0 0 0 0 1 1\n",
			map[string]record.DeviceUse{"sda": {Name: "sda", ReadIOs: 10, ReadBytes: 80 * 512, WriteIOs: 20, WriteBytes: 160 * 512, Busy: 9e6}}},
		{"a line that is cut costs that line", "8 0 sda 10 1 80\n   8 1 sdb 1 0 8 0 0 0 0 0 0 0 0\n",
			map[string]record.DeviceUse{"sdb": {Name: "sdb", ReadIOs: 1, ReadBytes: 8 * 512}}},
		{"a counter too large for bytes costs that line", "8 0 sda 1 0 9223372036854775807 0 0 0 0 0 0 0 0\n", map[string]record.DeviceUse{}},
		{"rubbish costs that line", "8 0 sda x y z 0 0 0 0 0 0 0 0\n\n\x00\xff\n", map[string]record.DeviceUse{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := parse([]byte(test.text))
			if len(got) != len(test.want) {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			for name, want := range test.want {
				check.Equal(t, name, got[name], want)
			}
		})
	}
}

func TestDevicesAddUpAndDifferencesAreNeverNegative(t *testing.T) {
	then := Stats{"a": {Name: "a", ReadBytes: 5, Busy: 9}, "b": {Name: "b", ReadBytes: 7}}
	now := Stats{"a": {Name: "a", ReadBytes: 15, Busy: 3}, "b": {Name: "b", ReadBytes: 8}}
	got := Between(then.Of("a", "b", "gone"), now.Of("a", "b", "gone"))
	check.Equal(t, "a counter that went back", got, (record.DeviceUse{Name: "a+b", ReadBytes: 11}))
}

func TestAWriteToAFileShowsAtItsDevice(t *testing.T) {
	dir := t.TempDir()
	device, kind, err := Under(dir)
	must.OK(t, err)
	if kind == "tmpfs" {
		t.Fatalf("%s is in memory: give the tests a TMPDIR on a disk", dir)
	}
	if device == "" {
		t.Fatalf("no device below %s (%s)", dir, kind)
	}
	before := must.Get(Read(""))(t)
	const size = 8 << 20
	f := must.Get(os.Create(filepath.Join(dir, "file")))(t)
	defer f.Close()
	must.Get(f.Write(make([]byte, size)))(t)
	must.OK(t, f.Sync())
	after := must.Get(Read(""))(t)
	if got := Between(before.Of(device), after.Of(device)); got.WriteBytes < size {
		t.Errorf("%s wrote %d bytes of %d", device, got.WriteBytes, size)
	}
	disks := must.Get(ReadDisks(""))(t)
	if whole := after.Whole(disks); len(whole) == 0 {
		t.Error("the machine has no whole disk")
	}
}

func TestMemoryAndOverlaysAreToldFromDisks(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	mount := func(kind, options string) string {
		at := filepath.Join(dir, kind)
		must.OK(t, os.Mkdir(at, 0o700))
		if err := unix.Mount("tare-test", at, kind, 0, options); err != nil {
			t.Fatalf("mount %s: %v", kind, err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		return at
	}
	for _, name := range []string{"lower", "upper", "work"} {
		must.OK(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	below, _, err := Under(dir)
	must.OK(t, err)
	if device, kind, err := Under(mount("tmpfs", "")); err != nil || device != "" || kind != "tmpfs" {
		t.Errorf("tmpfs: got %q on %q, %v", kind, device, err)
	}
	layers := "lowerdir=" + dir + "/lower,upperdir=" + dir + "/upper,workdir=" + dir + "/work"
	if device, kind, err := Under(mount("overlay", layers)); err != nil || device != below || kind != "overlay" {
		t.Errorf("overlay: got %q on %q, want it on %q, %v", kind, device, below, err)
	}
	if _, _, err := Under(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there lies on something")
	}
	if name, err := NameOf(dir); err == nil {
		t.Errorf("a folder is the block device %s", name)
	}
}

func TestABtrfsOfSeveralDevicesIsOfNone(t *testing.T) {
	folder := t.TempDir()
	for _, device := range []string{"one/devices/vdb", "two/devices/vdc", "two/devices/cciss!c0d0", "two/allocation"} {
		must.OK(t, os.MkdirAll(filepath.Join(folder, device), 0o700))
	}
	for name, want := range map[string]bool{"vdb": false, "vdc": true, "cciss/c0d0": true, "vda": false} {
		check.Equal(t, name, among(folder, name), want)
	}
}

func TestALoopDeviceHasAName(t *testing.T) {
	path, _ := loopdev.New(t, 1<<20)
	check.Equal(t, path, "/dev/"+must.Get(NameOf(path))(t), path)
}

func TestRestIsToldFromWork(t *testing.T) {
	quiet := "   8 0 sda 10 1 80 5 20 2 160 7 0 9 12\n"
	busy := "   8 0 sda 10 1 80 5 20 2 160 7 3 9 12\n"
	for _, test := range []struct {
		name, text string
		names      []string
		want       bool
	}{
		{"nothing moves", quiet, []string{"sda"}, true},
		{"requests are in flight", busy, []string{"sda"}, false},
		{"another's requests do not count", busy, []string{"sdb"}, true},
		{"no device is always at rest", "", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			must.OK(t, os.Mkdir(filepath.Join(root, "proc"), 0o700))
			must.OK(t, os.WriteFile(filepath.Join(root, "proc/diskstats"), []byte(test.text), 0o600))
			synctest.Test(t, func(t *testing.T) { // on a busy machine too few looks fit into the time
				check.Equal(t, "at rest", Rest(t.Context(), machine.Root(root), test.names, 300*time.Millisecond), test.want)
			})
		})
	}
	if Rest(context.Background(), machine.Root(t.TempDir()), []string{"sda"}, 10*time.Millisecond) {
		t.Error("what cannot be read is at rest")
	}
}

func TestADeviceThatComesIsLookedUpOnce(t *testing.T) {
	root := machine.Root(t.TempDir())
	must.OK(t, os.MkdirAll(string(root)+"/sys/block/sda/slaves", 0o700))
	stats := []byte("8 0 sda 1 0 1 0 1 0 2 0 0 0 0\n8 1 sda1 1 0 1 0 1 0 2 0 0 0 0\n66 0 odd 1 0 9 0 1 0 9 0 0 0 0\n")
	var d Disks
	must.OK(t, d.Follow(root, stats))
	if read, written := d.Sum(stats); read != 512 || written != 1024 {
		t.Errorf("%d read, %d written", read, written)
	}
	if name := d.unknown(stats); name != nil {
		t.Errorf("%s is looked up again and again", name)
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("8 0 sda 1 0 1 0 1 0 2 0 0 0 0\n"))
	f.Fuzz(func(t *testing.T, stats []byte) {
		d := Disks{names: map[string]bool{"sda": true, "": true}}
		if read, written := d.Sum(stats); min(read, written) < 0 {
			t.Errorf("%q: %d, %d", stats, read, written)
		}
	})
}
