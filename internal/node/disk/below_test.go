package disk

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

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
		if isMemory(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
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
