package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func TestLimitsOfAGroupAndOfThoseAboveAreRead(t *testing.T) {
	devices, err := os.ReadDir("/sys/dev/block")
	if err != nil || len(devices) == 0 {
		t.Skip("this machine has no block device to be limited")
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

// memory is a folder on a tmpfs.
func memory(t *testing.T) string {
	t.Helper()
	need.Root(t)
	at := t.TempDir()
	must.OK(t, unix.Mount("tmpfs", at, "tmpfs", 0, "size=64M"))
	t.Cleanup(func() {
		// A loop device lets go of its file a moment after it was detached, if
		// somebody looks at it.
		for deadline := time.Now().Add(time.Minute); unix.Unmount(at, 0) != nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("%s stays mounted", at)
				return
			}
		}
	})
	return at
}

func TestBelowALoopDeviceIsWhatItsFileLiesOn(t *testing.T) {
	dir := t.TempDir()
	disk, _, err := Under(dir)
	if err != nil || disk == "" {
		t.Fatalf("the tests' folder lies on no device (%v): give them a TMPDIR on a disk", err)
	}
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
		if got := [2]string{device, memory}; err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestRAMDisksAreMemoryByTheirDrivers(t *testing.T) {
	for name, want := range map[string]bool{"ram0": true, "zram12": true, "nullb0": true, "ramfoo": false, "zram": false, "sda": false} {
		check.Equal(t, name, isMemory(name), want)
	}
	if _, err := os.Stat(Sysfs("zram0")); err != nil {
		t.Skip("this kernel has no zram device to ask about")
	}
	if device, memory, err := Below("zram0"); device != "zram0" || memory != "zram0 is memory" || err != nil {
		t.Errorf("%q %q %v", device, memory, err)
	}
}

func TestADeviceThatIsNotThereIsNotTakenForADisk(t *testing.T) {
	if device, _, err := Below("no-such-device"); err == nil || device != "" {
		t.Errorf("%q %v", device, err)
	}
}

func TestADropHearsThatItIsToStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	hangs, over := make(chan struct{}), make(chan struct{})
	began := func() { stop(); <-hangs; close(over) }
	err := dropAfter(ctx, began, func() error { t.Error("it was dropped all the same"); return nil })
	check.Is(t, err, context.Canceled)
	close(hangs)
	<-over
}

func TestADropWritesBackBeforeIt(t *testing.T) {
	done := ""
	err := dropAfter(t.Context(), func() { done += "sync " }, func() error { done += "drop"; return fs.ErrPermission })
	if !errors.Is(err, fs.ErrPermission) || done != "sync drop" {
		t.Errorf("%q, %v", done, err)
	}
}
