package volume

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func parsed(t *testing.T, s string) storage.Volume {
	t.Helper()
	return must.Get(storage.ParseVolume(s))(t)
}

func TestFolderIsCreatedAndRemoved(t *testing.T) {
	dir := t.TempDir()
	v := must.Get(Prepare(context.Background(), parsed(t, "bind"), Asked{RunID: "x", Dir: dir}))(t)
	check.That(t, v.Workload.Volume != "" && v.On.HostType != "" && v.Own != "", "got %+v", v)
	must.OK(t, v.Close())
	left, _ := os.ReadDir(dir)
	check.That(t, len(left) == 0, "left: %v", left)
}

func TestTmpfsLargerThanMemoryIsRefused(t *testing.T) {
	v, err := Prepare(context.Background(), parsed(t, "tmpfs"), Asked{Bytes: 1 << 20})
	must.That(t, err == nil && v.Workload.Tmpfs >= 1<<20, "got %+v, %v", v, err)
	_, err = Prepare(context.Background(), parsed(t, "tmpfs"), Asked{Bytes: 1 << 50})
	refused(t, err, "of memory that are available")
}

func TestDeviceMustBeAllowedAndFree(t *testing.T) {
	path, _ := loopdev.New(t, 16<<20)
	take := func(asked Asked) (*Volume, error) {
		return Prepare(context.Background(), storage.Volume{Name: "device=" + path, Kind: record.VolumeDevice, Source: path}, asked)
	}
	v, err := take(Asked{Destroys: []string{path}, Bytes: 1 << 20})
	must.That(t, err == nil && v.Workload.Device == path && "/dev/"+v.On.Device == path && v.Size == 16<<20, "got %+v, %v", v, err)
	must.OK(t, v.Close())
	for why, asked := range map[string]Asked{
		"overwrites everything": {}, "allow it by name": {Destroys: []string{path + "/."}}, "16 MiB": {Destroys: []string{path}, Bytes: 17 << 20},
	} {
		_, err := take(asked)
		refused(t, err, why)
	}

	out, err := exec.Command("mkfs.ext4", "-q", path).CombinedOutput()
	must.That(t, err == nil, "mkfs.ext4: %v: %s", err, out)
	at := t.TempDir()
	must.OK(t, unix.Mount(path, at, "ext4", 0, ""))
	_, err = take(Asked{Destroys: []string{path}})
	refused(t, err, "mounted on "+at)
	must.OK(t, unix.Unmount(at, 0))
	if v, err = take(Asked{Destroys: []string{path}}); err != nil {
		t.Fatalf("after unmounting: %v", err)
	}
	check.Error(t, v.Close(), "")
}

func TestInvalidDeviceIsRefused(t *testing.T) {
	for _, path := range []string{"/dev/null", "/dev/no-such-device", t.TempDir()} {
		_, err := Prepare(context.Background(), storage.Volume{Name: "device", Kind: record.VolumeDevice, Source: path}, Asked{Destroys: []string{path}})
		refused(t, err, path)
	}
}

// mounter puts a fake mount(8) on PATH and simulates a kernel with NFS.
func mounter(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "mount"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	saved := clientHere
	clientHere = func() error { return nil }
	t.Cleanup(func() { clientHere = saved })
}

func TestUnresponsiveServerTimesOut(t *testing.T) {
	mounter(t, "sleep 60")
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	dir := t.TempDir()
	began := time.Now()
	_, err := Prepare(ctx, parsed(t, "nfs=[fd00::1]:/path"), Asked{RunID: "x", Dir: dir})
	check.That(t, err != nil && strings.Contains(err.Error(), "did not end") && strings.HasSuffix(Advice(err), "showmount -e fd00::1"),
		"got %v, advice %q", err, Advice(err))
	took := time.Since(began)
	check.That(t, took <= 50*time.Second, "took %v", took)
	left, _ := os.ReadDir(dir)
	check.That(t, len(left) == 0, "left: %v", left)
}

func TestMountErrorHasItsOutput(t *testing.T) {
	mounter(t, "echo 'mount.nfs: access denied by server' >&2; exit 32")
	_, err := Prepare(context.Background(), parsed(t, "nfs=server:/path"), Asked{RunID: "x", Dir: t.TempDir()})
	check.That(t, err != nil && strings.Contains(err.Error(), "exit status 32") && strings.Contains(err.Error(), "access denied by server"),
		"got %v", err)
}

// A bind mount of a local folder replaces the server's. The test checks what is created
// there and what is left.
func TestOnlyTheRunFolderIsUsedOnAServer(t *testing.T) {
	need.Root(t)
	server := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(server, "theirs"), []byte("x"), 0o600))
	mounter(t, `for last; do :; done; exec /bin/mount --bind `+server+` "$last"`)
	dir := t.TempDir()
	v := must.Get(Prepare(context.Background(), parsed(t, "nfs=server:/path"), Asked{RunID: "run1", Dir: dir}))(t)
	made, _ := os.ReadDir(filepath.Join(server, "tare-run1"))
	check.That(t, len(made) != 0, "no folder of the run on the server")
	must.OK(t, v.Close())
	left, _ := os.ReadDir(server)
	check.That(t, len(left) == 1 && left[0].Name() == "theirs", "on the server: %v", left)
	points, err := mounts.Below(dir)
	check.That(t, err == nil && len(points) == 0, "still mounted: %v, %v", points, err)
}

func TestHangingRemovalTimesOut(t *testing.T) {
	v := must.Get(Prepare(context.Background(), parsed(t, "bind"), Asked{RunID: "x", Dir: t.TempDir()}))(t)
	answers, saved := make(chan struct{}), closing
	closing = 50 * time.Millisecond
	defer func() { closing = saved; close(answers) }()
	v.letGo = append(v.letGo, removing("/on/a/server", func(string) error { <-answers; return nil }))
	check.Error(t, v.Close(), "remove /on/a/server: no answer within 50ms")
}

// A late response of the server must not change a volume that is in use by others by then.
func TestLateResultIsDropped(t *testing.T) {
	answers := make(chan struct{})
	defer close(answers)
	f, err := within(50*time.Millisecond, func() (folder, error) { <-answers; return folder{own: "late"}, nil })
	check.That(t, err != nil && f.own == "", "got %+v, %v", f, err)
}

func TestMissingNFSClientIsReported(t *testing.T) {
	if err := clientHere(); err != nil {
		check.That(t, strings.Contains(err.Error(), "no NFS client") && Advice(err) != "", "got %v", err)
		return
	}
	text := must.Get(os.ReadFile("/proc/filesystems"))(t)
	modules, _ := filepath.Glob("/lib/modules/*/kernel/fs/nfs/nfs.ko*")
	check.That(t, strings.Contains(string(text), "nfs") || len(modules) != 0, "an NFS client was detected on a kernel without one")
}

func TestOtherErrorsHaveNoAdvice(t *testing.T) {
	check.Equal(t, "advice", Advice(errors.New("x")), "")
}
