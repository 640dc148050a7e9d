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

	"github.com/tare-bench/tare/internal/loopdev"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
)

// fill writes a file in the container on lane 0.
func fill(t *testing.T, s subject.Session, bytes int64, file string) error {
	t.Helper()
	_, err := probe.ParseFilled(run(t, s, 0, probe.FillArgs(bytes, file)...).Output)
	return err
}

func fileSystems(t *testing.T, s subject.Session, lane int, paths ...string) []probe.FileSystem {
	t.Helper()
	out := run(t, s, lane, probe.FileSystemArgs(paths...)...).Output
	all, err := probe.ParseFileSystems(out)
	if err != nil || len(all) != len(paths) {
		t.Fatalf("%q: %v", out, err)
	}
	return all
}

const file = subject.VolumePath + "/file"

// tmpfs checks that each of the containers on lanes 0 and 1 has a tmpfs of that
// size of its own.
func tmpfs(t *testing.T, s subject.Session, size int64) {
	t.Helper()
	for lane := range 2 {
		if got := fileSystems(t, s, lane, subject.VolumePath)[0]; got.Type != unix.TMPFS_MAGIC || got.Size != size || got.Free != size {
			t.Errorf("lane %d has %+v", lane, got)
		}
	}
	if err := fill(t, s, size/2, file); err != nil {
		t.Error(err)
	}
	if got := fileSystems(t, s, 1, file)[0]; got.Errno != syscall.ENOENT {
		t.Errorf("lane 1 has the file of lane 0: %+v", got)
	}
	if err := fill(t, s, size, file+"2"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("more than there is room for: %v", err)
	}
}

// executable checks that programs may be run from the tmpfs of the container on
// lane 0, as from a folder of the host. The host sees its mounts.
func executable(t *testing.T, s subject.Session) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", sandboxes(t, s)[0].Workload))
	_, rest, found := strings.Cut(string(b), " "+subject.VolumePath+" tmpfs ")
	options, _, _ := strings.Cut(rest, " ")
	if err != nil || !found || strings.Contains(options, "noexec") {
		t.Errorf("the tmpfs is mounted %q: %v", options, err)
	}
}

// rootfs checks that the workload's folder is one of the container's own root
// file system, and gone with the container. again makes a new container on lane 0.
func rootfs(t *testing.T, s subject.Session, again func()) {
	t.Helper()
	_, before := os.Lstat(file)
	if err := fill(t, s, 1<<20, file); err != nil {
		t.Fatal(err)
	}
	got := fileSystems(t, s, 0, "/", subject.VolumePath, file)
	if got[0].Type != got[1].Type || got[0].Size != got[1].Size || got[2].Errno != 0 {
		t.Errorf("%+v", got)
	}
	if _, after := os.Lstat(file); !errors.Is(after, os.ErrNotExist) || !errors.Is(before, os.ErrNotExist) {
		t.Errorf("on the host: before %v, then %v", before, after)
	}
	if got := fileSystems(t, s, 1, file)[0]; got.Errno != syscall.ENOENT {
		t.Errorf("lane 1 has the file of lane 0: %+v", got)
	}
	again()
	if got := fileSystems(t, s, 0, file)[0]; got.Errno != syscall.ENOENT {
		t.Errorf("the next container has the file of the one before: %+v", got)
	}
}

// Loop is a loop device of that size, by a link to it. It is detached with the
// test, when nothing may hold it any more.
func Loop(t *testing.T, size int64) (link, node string) {
	t.Helper()
	dir := t.TempDir()
	var disk string
	t.Cleanup(func() { // after it was detached; one that is still open is detached by whoever closes it
		if out, err := exec.Command("losetup", "--associated", disk).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s is still in use: %v: %s", node, err, out)
		}
	})
	node, disk = loopdev.In(t, dir, size)
	link = filepath.Join(dir, "by:name")
	if err := os.Symlink(node, link); err != nil {
		t.Fatal(err)
	}
	return link, node
}

// device checks that the container on lane 0 reads and writes a device of the
// host, which holds nothing but zeros so far.
func device(t *testing.T, s subject.Session, node string) {
	t.Helper()
	if direct, err := probe.ParseDirect(run(t, s, 0, probe.DirectArgs(subject.DevicePath)...).Output); err != nil || !direct.Taken {
		t.Errorf("a direct read: %+v, %v", direct, err)
	}
	if err := fill(t, s, 1<<20, subject.DevicePath); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(node)
	if err != nil || len(b) < 1<<20 || bytes.Count(b[:1<<20], []byte{0}) > 1<<16 { // of random bytes 1 in 256 is 0
		t.Errorf("of %d bytes %d are 0: %v", len(b), bytes.Count(b, []byte{0}), err)
	}
}
