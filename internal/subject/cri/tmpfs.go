package cri

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/thread"
)

// tmpfses are the tmpfs of a session's pods. CRI knows no such mounts: what
// Kubernetes calls an emptyDir with the medium Memory is a tmpfs that the kubelet
// mounts on the host for one pod and has bound into its containers, and so it is
// here. Its pages are charged to the container that writes them.
//
// The folders are named as a kubelet's are, since Kata goes by that name: it makes
// another tmpfs inside its guest in place of such a one. What other runtimes with
// a kernel of their own do with it is as with any folder: they share it in.
//
// They are mounted in the mount namespace of the engine, which may not be tare's.
// What an interrupted run leaves is below its folder: tare clean unmounts it, and
// a mount in another namespace goes with the folder that it is on (since Linux
// 3.18).
//
// The zero value, and nil, are none.
type tmpfses struct {
	dir    string   // of the session; every pod has its own below it
	source string   // names the run in the list of mounts
	size   int64    // bytes
	space  *os.File // the engine's mount namespace
}

// emptyDirs is the part of a path by which Kata knows a kubelet's emptyDir: the
// last but one.
const emptyDirs = "kubernetes.io~empty-dir"

// openTmpfses tries whether one can be mounted. It is nil where none is asked for.
func openTmpfses(env subject.Env, socket string) (*tmpfses, error) {
	if env.Workload.Tmpfs == 0 {
		return nil, nil
	}
	pid, err := procs.Listener(socket)
	if err != nil {
		return nil, fmt.Errorf("a tmpfs is mounted where the engine sees it, and its process was not found: %w", err)
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: run tare as root: %w", err, subject.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("a tmpfs is mounted where the engine (process %d) sees it: %w", pid, err)
	}
	t := &tmpfses{dir: filepath.Join(env.Dir, "tmpfs"), source: "tare-" + env.RunID, size: env.Workload.Tmpfs, space: space}
	if err := errors.Join(t.mount("trial"), t.unmount("trial")); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// folder is that of a pod, "" where there is no tmpfs.
func (t *tmpfses) folder(pod string) string {
	if t == nil {
		return ""
	}
	return filepath.Join(t.dir, pod, emptyDirs, "data")
}

// mount makes the tmpfs of a new pod.
func (t *tmpfses) mount(pod string) error {
	if t == nil {
		return nil
	}
	dir := t.folder(pod)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of a tmpfs: %w", err)
	}
	err := t.inside(func() error {
		return unix.Mount(t.source, dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=777,size=%d", t.size))
	})
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: it takes CAP_SYS_ADMIN, run tare as root: %w", err, subject.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("mount a tmpfs of %d bytes on %s, in the engine's mount namespace: %w", t.size, dir, err)
	}
	return nil
}

// unmount takes that of a pod away, whatever is in it. What a container that
// could not be removed still holds lives on in that alone.
func (t *tmpfses) unmount(pod string) error {
	if t == nil {
		return nil
	}
	dir := t.folder(pod)
	err := t.inside(func() error { return unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // not mounted, or gone
		return fmt.Errorf("unmount %s, in the engine's mount namespace: %w", dir, err)
	}
	return mounts.RemoveTree(filepath.Join(t.dir, pod))
}

// close takes all of them away.
func (t *tmpfses) close() error {
	if t == nil {
		return nil
	}
	defer t.space.Close()
	pods, err := os.ReadDir(t.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, p := range pods {
		errs = append(errs, t.unmount(p.Name()))
	}
	return errors.Join(errs...)
}

// inside does something in the engine's mount namespace.
func (t *tmpfses) inside(do func() error) error { return thread.InMounts(int(t.space.Fd()), do) }
