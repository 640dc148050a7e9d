package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
)

// In runs the probe in the container on a lane and returns its output.
func In(t *testing.T, s subject.Session, lane int, args []string) string {
	t.Helper()
	return run(t, s, lane, args...).Output
}

// Fill writes a file in the container on a lane.
func Fill(t *testing.T, s subject.Session, lane int, bytes int64, file string) error {
	t.Helper()
	filled, err := probe.ParseFilled(In(t, s, lane, probe.FillArgs(bytes, file)))
	if err == nil && filled.Bytes != bytes {
		err = fmt.Errorf("%d bytes are written, not %d", filled.Bytes, bytes)
	}
	return err
}

// FileSystems returns the file systems of paths in the container on a lane.
func FileSystems(t *testing.T, s subject.Session, lane int, paths ...string) []probe.FileSystem {
	t.Helper()
	out := In(t, s, lane, probe.FileSystemArgs(paths...))
	all, err := probe.ParseFileSystems(out)
	if err != nil || len(all) != len(paths) {
		t.Fatalf("%q: %v", out, err)
	}
	return all
}

// File is the path of a workload's file.
const File = subject.VolumePath + "/file"

// Without checks that the container on a lane does not have the file.
func Without(t *testing.T, s subject.Session, lane int) {
	t.Helper()
	if got := FileSystems(t, s, lane, File)[0]; got.Errno != syscall.ENOENT {
		t.Errorf("the container on lane %d has a file that another one made: %+v", lane, got)
	}
}

// Tmpfs checks that the containers on lanes 0 and 1 each have their own tmpfs of that
// size.
func Tmpfs(t *testing.T, s subject.Session, size int64) {
	t.Helper()
	for lane := range 2 {
		if got := FileSystems(t, s, lane, subject.VolumePath)[0]; got.Type != unix.TMPFS_MAGIC || got.Size != size || got.Free != size {
			t.Errorf("lane %d has %+v", lane, got)
		}
	}
	must.OK(t, Fill(t, s, 0, size/2, File))
	Without(t, s, 1)
	if err := Fill(t, s, 0, size, File+"2"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("more than there is room for: %v", err)
	}
}

// executable checks that programs in the tmpfs of lane 0's container can be executed, as
// in a folder of the host. The host sees its mounts.
func executable(t *testing.T, s subject.Session) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", sandboxes(t, s)[0].Workload))
	_, rest, found := strings.Cut(string(b), " "+subject.VolumePath+" tmpfs ")
	options, _, _ := strings.Cut(rest, " ")
	if err != nil || !found || strings.Contains(options, "noexec") {
		t.Errorf("the tmpfs is mounted %q: %v", options, err)
	}
}

// RootFS checks that the workload's folder is on the container's own root file system and
// is removed with the container. again creates a new container on lane 0.
func RootFS(t *testing.T, s subject.Session, again func()) {
	t.Helper()
	_, before := os.Lstat(File)
	must.OK(t, Fill(t, s, 0, 1<<20, File))
	got := FileSystems(t, s, 0, "/", subject.VolumePath, File)
	if got[0].Type != got[1].Type || got[0].Size != got[1].Size || got[2].Errno != 0 {
		t.Errorf("%+v", got)
	}
	if _, after := os.Lstat(File); !errors.Is(after, os.ErrNotExist) || !errors.Is(before, os.ErrNotExist) {
		t.Errorf("on the host: before %v, then %v", before, after)
	}
	Without(t, s, 1)
	again()
	Without(t, s, 0)
}

// Loop creates a loop device of that size and returns a link to it. The end of the test
// detaches it and checks that it is unused.
func Loop(t *testing.T, size int64) (link, node string) {
	t.Helper()
	dir := t.TempDir()
	var disk string
	t.Cleanup(func() { // runs after the detach, which takes effect only when the device is closed everywhere
		if out, err := exec.Command("losetup", "--associated", disk).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s is still in use: %v: %s", node, err, out)
		}
	})
	node, disk = loopdev.In(t, dir, size)
	link = filepath.Join(dir, "by:name")
	must.OK(t, os.Symlink(node, link))
	return link, node
}

// Device checks that the containers on lanes 0 and 1 read and write a host device of 4
// MiB, which contains only zeros at first.
func Device(t *testing.T, s subject.Session, node string) {
	t.Helper()
	if direct, err := probe.ParseDirect(In(t, s, 0, probe.DirectArgs(subject.DevicePath))); err != nil || !direct.Taken {
		t.Errorf("a direct read: %+v, %v", direct, err)
	}
	const written = 3 << 20
	must.OK(t, Fill(t, s, 0, written, subject.DevicePath))
	b, err := os.ReadFile(node)
	if zeros := make([]byte, 1<<20); err != nil || len(b) != 4<<20 || bytes.Contains(b[:written], zeros[:512]) || !bytes.Equal(b[written:], zeros) {
		t.Errorf("of %d bytes it does not hold those that were written, and no others: %v", len(b), err)
	}
	if err := Fill(t, s, 1, 5<<20, subject.DevicePath); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("more than there is room for: %v", err)
	}
}
