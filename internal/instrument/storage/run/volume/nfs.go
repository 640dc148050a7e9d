package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/term"
)

// mounting limits mount(8): a server that does not answer must not block the run. If
// the server stops answering later, the mount's own timeouts (soft) end the calls.
const mounting = 30 * time.Second

// nfs mounts a server's directory below the run's. In it, it creates a directory with
// the run's id, because the server may hold other users' files.
func (v *Volume) nfs(ctx context.Context, a Asked) error {
	if err := clientHere(); err != nil {
		return err
	}
	mount, err := exec.LookPath("mount")
	if err != nil {
		return notHere("install it: apt-get install mount nfs-common", "there is no mount(8) on PATH")
	}
	at := filepath.Join(a.Dir, "mount")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	v.letGo = append(v.letGo, removing(at, removeTree))
	ctx, cancel := context.WithTimeout(ctx, mounting)
	defer cancel()
	ended, err := child.Run(ctx, child.Command{
		Args: []string{mount, "-t", "nfs", "-o", "soft,timeo=50,retrans=2,retry=0,nosuid,nodev", v.Source, at}, Env: lane.Environment(nil),
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return notHere("check whether the server answers: showmount -e "+server(v.Source), "%s did not end within %v", ended.Command, mounting)
	case err != nil:
		return err
	case ended.Exit != 0:
		return notHere("check whether the server answers, and that the client is installed: apt-get install nfs-common",
			"%s: exit status %d: %s", ended.Command, ended.Exit, term.Clean(strings.TrimSpace(ended.Stderr)))
	}
	mine := filepath.Join(at, "tare-"+a.RunID)
	v.letGo = append(v.letGo, removing(mine, os.RemoveAll))
	f, err := within(mounting, func() (folder, error) { return makeFolder(mine) })
	if err != nil {
		return fmt.Errorf("create a directory on the NFS server: %w", err)
	}
	v.take(f)
	return nil
}

// within runs do, which a server may block forever, and waits at most the given time.
// A later result is dropped, so do must have no side effects.
func within[T any](most time.Duration, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-time.After(most):
		var none T
		return none, fmt.Errorf("no answer within %v", most)
	}
}

// server returns the host of "server:/path" and "[fd00::1]:/path".
func server(source string) string {
	host, _, _ := strings.Cut(source, ":/")
	return strings.Trim(host, "[]")
}

// clientHere returns an error if the kernel has no NFS client and no module for it.
// Tests replace it.
var clientHere = func() error {
	if text, err := os.ReadFile("/proc/filesystems"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name := strings.TrimSpace(strings.TrimPrefix(line, "nodev")); name == "nfs" || name == "nfs4" {
				return nil
			}
		}
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("get the kernel's release: %w", err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	for _, name := range []string{"nfs.ko", "nfs.ko.gz", "nfs.ko.xz", "nfs.ko.zst"} {
		if _, err := os.Stat(filepath.Join("/lib/modules", release, "kernel/fs/nfs", name)); err == nil {
			return nil
		}
	}
	return notHere("use a kernel with NFS (CONFIG_NFS_FS), or leave the volume out",
		"unsupported: this kernel (%s) has no NFS client: nfs is not in /proc/filesystems, and /lib/modules/%s has no nfs.ko", release, release)
}
