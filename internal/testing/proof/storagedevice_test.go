//go:build prove

package proof

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/check"
)

// The same as TestCacheIsDistinguishedFromDiskInRuntimes in the containers of engines,
// for every file location.
func TestCacheIsDistinguishedFromDiskInEngines(t *testing.T) {
	targets := []string{"docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc"}
	tellCaches(t, targets, fleetFlags(t, targets...)...)
}

// Direct I/O of sufficient duration is attributed to the device.
func TestDirectReadIsAttributedToTheDevice(t *testing.T) {
	recs, judged, _ := tare(folders(t), storage.Judge, "run", "testdata/direct.yaml")
	rec, j := recs[0], judged[0]
	for _, table := range j.Tables {
		for _, c := range table.Cells {
			if c.Verdict != storage.Device {
				t.Errorf("%s on %s, %s: %s: %s", c.Target, table.Volume, table.Cache, c.Verdict, strings.Join(c.Because, "; "))
			}
		}
	}
	check.Equal(t, "ceilings", len(rec.Ceilings), 4)
}

// A file system on a loop device is judged by its backing store: memory, or the page
// cache if the image is read through it.
func TestLoopDeviceIsNotJudgedAsADisk(t *testing.T) {
	for name, c := range map[string]struct{ tmpfs bool }{"image on a tmpfs": {true}, "image read through the page cache": {false}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.tmpfs {
				say(t, "mount", "-t", "tmpfs", "-o", "size=200M", "tmpfs", dir)
				t.Cleanup(func() { say(t, "umount", dir) })
			}
			image := filepath.Join(dir, "image")
			say(t, "truncate", "-s", "128M", image)
			loop := say(t, "losetup", "--find", "--show", image)
			t.Cleanup(func() { say(t, "losetup", "--detach", loop) })
			say(t, "mkfs.ext4", "-q", loop)
			at := t.TempDir()
			say(t, "mount", loop, at)
			t.Cleanup(func() { say(t, "umount", at) })
			_, j := weighStorage(t, []string{"--volume", "bind=" + at, "--cache", "direct", "--jobs", "randread", "--bs", "4k", "--size", "32M", "--numjobs", "1",
				"--rounds", "1", "--ceiling", "0", "--settle", "0", "--drop", "files"}, []string{"host", "runc"})
			for _, c := range j.Tables[0].Cells {
				check.That(t, c.Verdict == storage.NotDirect, "%s: %q because %q", c.Target, c.Verdict, c.Because)
			}
			left, _ := filepath.Glob(filepath.Join(at, "tare-*"))
			check.That(t, len(left) == 0, "left: %v", left)
		})
	}
}
