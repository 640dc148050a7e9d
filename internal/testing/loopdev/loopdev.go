// Package loopdev creates loop devices and file systems on them for tests.
package loopdev

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// New creates a device of a zero-filled file. It exists until the end of the test.
func New(t *testing.T, size int64, options ...string) (device, file string) {
	t.Helper()
	return In(t, t.TempDir(), size, options...)
}

// In creates a device of a zero-filled file in a folder. It exists until the end of the
// test.
func In(t *testing.T, dir string, size int64, options ...string) (device, file string) {
	t.Helper()
	f, err := os.CreateTemp(dir, "image-*")
	if err == nil {
		defer f.Close()
		err = f.Truncate(size)
	}
	must.OK(t, err)
	return On(t, f.Name(), options...), f.Name()
}

// On creates a device of a file or another device. It exists until the end of the test.
func On(t *testing.T, path string, options ...string) (device string) {
	t.Helper()
	need.Root(t)
	out, err := exec.Command("losetup", append(options, "--find", "--show", path)...).Output()
	if err != nil {
		t.Fatalf("losetup: %v", err)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if err := exec.Command("losetup", "--detach", device).Run(); err != nil {
			t.Errorf("losetup --detach %s: %v", device, err)
		}
	})
	return device
}

// Mount creates an ext4 on a device and mounts it at a folder until the end of the test.
func Mount(t *testing.T, device, at string, flags uintptr) {
	t.Helper()
	if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", device).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	must.OK(t, os.MkdirAll(at, 0o755))
	if err := unix.Mount(device, at, "ext4", flags, ""); err != nil {
		t.Fatalf("mount %s: %v", device, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Errorf("unmount %s: %v", at, err)
			_ = unix.Unmount(at, unix.MNT_DETACH)
		}
	})
}
