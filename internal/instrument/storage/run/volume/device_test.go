package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// taken prepares a device with permission to overwrite it.
func taken(t *testing.T, path string) *Volume {
	t.Helper()
	v, err := Prepare(context.Background(), storage.Volume{Name: "device=" + path, Kind: record.VolumeDevice, Source: path}, Asked{Destroys: []string{path}})
	must.OK(t, err)
	t.Cleanup(func() {
		check.Error(t, v.Close(), "")
	})
	return v
}

// refused requires an error with the given texts and with advice.
func refused(t *testing.T, err error, whys ...string) {
	t.Helper()
	for _, why := range whys {
		check.That(t, err != nil && strings.Contains(err.Error(), why) && Advice(err) != "", "want %q, got %v, advice %q", why, err, Advice(err))
	}
}

// The kernel does not count a loop device as a user of its backing device: O_EXCL
// succeeds, and the device has no holder.
func TestFileSystemOnALoopDeviceIsDetected(t *testing.T) {
	path, _ := loopdev.New(t, 16<<20, "--partscan")
	behind := loopdev.On(t, path)
	at := t.TempDir()
	loopdev.Mount(t, behind, at, 0)
	fd := must.Get(unix.Open(path, unix.O_RDWR|unix.O_EXCL|unix.O_CLOEXEC, 0))(t)
	unix.Close(fd)
	refused(t, Free(path), "below the loop device "+behind+", which is mounted on "+at, "is in use")
}

func TestLoopDeviceOnADeviceInUseIsRefused(t *testing.T) {
	path, _ := loopdev.New(t, 16<<20, "--partscan")
	at := t.TempDir()
	loopdev.Mount(t, path, at, 0)
	refused(t, Free(loopdev.On(t, path)), "mounted on "+at, "is in use")
}

func TestLoopDeviceOnAPartitionIsDetected(t *testing.T) {
	path, _ := loopdev.New(t, 16<<20, "--partscan")
	part := partitioned(t, path)
	behind := loopdev.On(t, part)
	refused(t, Free(path), "below the loop device "+behind, "is in use")
}

func TestDeviceWithAMountedPartitionIsRefused(t *testing.T) {
	path, _ := loopdev.New(t, 16<<20, "--partscan")
	part := partitioned(t, path)
	name := strings.TrimPrefix(path, "/dev/")
	check.Equal(t, "parts of the device", partsOf(name), []string{name, name + "p1"})
	check.Equal(t, "parts of the partition", partsOf(name+"p1"), []string{name + "p1", name})
	at := t.TempDir()
	loopdev.Mount(t, part, at, 0)
	refused(t, Free(path), "mounted on "+at, "is in use")
}

// partitioned creates one partition of 8 MiB.
func partitioned(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("addpart", path, "1", "2048", "16384").CombinedOutput()
	must.That(t, err == nil, "addpart: %v: %s", err, out) // in sectors
	part := path + "p1"
	if _, err := os.Stat(part); err != nil { // without udev, nothing creates device nodes
		var major, minor int
		text, err := os.ReadFile(disk.Sysfs(strings.TrimPrefix(part, "/dev/")) + "/dev")
		if err == nil {
			_, err = fmt.Sscanf(string(text), "%d:%d", &major, &minor)
		}
		if err == nil {
			err = unix.Mknod(part, unix.S_IFBLK|0o600, int(unix.Mkdev(uint32(major), uint32(minor))))
		}
		must.OK(t, err)
		t.Cleanup(func() { os.Remove(part) })
	}
	t.Cleanup(func() {
		// A loop device detached while another program has it open releases its backing
		// device only when that program closes it.
		var out []byte
		var err error
		for range 600 {
			if out, err = exec.Command("delpart", path, "1").CombinedOutput(); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("delpart: %v: %s", err, out)
	})
	return part
}

func TestDeviceOpenInAProcessIsRefused(t *testing.T) {
	path, _ := loopdev.New(t, 16<<20, "--partscan")
	held := must.Get(os.Open(path))(t)
	defer held.Close()
	check.Error(t, Free(path), "")
	other := exec.Command("sleep", "60")
	other.Stdin = held
	must.OK(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	refused(t, Free(path), fmt.Sprintf("open in sleep (process %d)", other.Process.Pid), "is in use")
}

func TestClaimedDeviceCanBeOpenedButNotMounted(t *testing.T) {
	path, _ := loopdev.New(t, 16<<20, "--partscan")
	out, err := exec.Command("mkfs.ext4", "-q", path).CombinedOutput()
	must.That(t, err == nil, "mkfs.ext4: %v: %s", err, out)
	v := taken(t, path)
	check.Is(t, unix.Mount(path, t.TempDir(), "ext4", 0, ""), unix.EBUSY)
	// Open it as fio and dd do.
	f := must.Get(os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0))(t)
	defer f.Close()
	check.Error(t, v.Check(), "")
}

func TestDeviceUsedDuringTheRunIsLeftAlone(t *testing.T) {
	path, _ := loopdev.New(t, 16<<20, "--partscan")
	v := taken(t, path)
	must.OK(t, v.Check())
	behind := loopdev.On(t, path)
	refused(t, v.Check(), "below the loop device "+behind, "is in use")
}

func TestDeviceLinkIsResolvedOnce(t *testing.T) {
	one, _ := loopdev.New(t, 16<<20)
	other, _ := loopdev.New(t, 16<<20)
	link := filepath.Join(t.TempDir(), "by-id")
	must.OK(t, os.Symlink(one, link))
	v := taken(t, link)
	check.Equal(t, "device", v.Workload.Device, one)
	must.OK(t, errors.Join(os.Remove(link), os.Symlink(other, link)))
	err := v.Check()
	check.That(t, err == nil && v.Workload.Device == one, "device is now %s, %v", v.Workload.Device, err)
}

func TestReplacedDeviceNodeIsLeftAlone(t *testing.T) {
	one, _ := loopdev.New(t, 16<<20)
	other, _ := loopdev.New(t, 16<<20)
	node := filepath.Join(t.TempDir(), "node")
	lead := func(of string) {
		t.Helper()
		var st unix.Stat_t
		must.OK(t, errors.Join(unix.Stat(of, &st), unix.Mknod(node, unix.S_IFBLK|0o600, int(st.Rdev))))
	}
	lead(one)
	v := taken(t, node)
	must.OK(t, os.Remove(node))
	refused(t, v.Check(), "is not there")
	lead(other)
	refused(t, v.Check(), "is not the allowed device", "so it is not used")
}
