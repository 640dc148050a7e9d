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

// tmpfses are the tmpfs mounts of a session's pods. CRI has no tmpfs mounts. As for an emptyDir
// with the medium Memory in Kubernetes, each is mounted on the host for one pod and bound into
// its containers. Its pages are charged to the container that writes them.
//
// The folders are named like a kubelet's, because Kata recognises such a folder and replaces it
// with a tmpfs inside its guest. Other runtimes with a guest kernel share the folder like any
// other.
//
// They are mounted in the engine's mount namespace, which may differ from tare's. tare clean
// unmounts those that an interrupted run left below its folder. A mount in another namespace
// disappears with the folder that it is on (since Linux 3.18).
//
// A nil *tmpfses has no mounts.
type tmpfses struct {
	dir    string   // the session's; each pod has a folder in it
	source string   // has the run's id, for the list of mounts
	size   int64    // bytes
	space  *os.File // the engine's mount namespace
}

// emptyDirs is the last but one element of a kubelet's emptyDir path. Kata recognises an
// emptyDir by it.
const emptyDirs = "kubernetes.io~empty-dir"

// openTmpfses prepares the tmpfs mounts of a session and mounts one as a trial. It returns nil
// if the workload has no tmpfs.
func openTmpfses(env subject.Env, socket string) (*tmpfses, error) {
	if env.Workload.Tmpfs == 0 {
		return nil, nil
	}
	pid, err := procs.Listener(socket)
	if err != nil {
		return nil, fmt.Errorf("find the engine, to mount a tmpfs for it: %w", err)
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: run tare as root: %w", err, subject.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("open the mount namespace of the engine (process %d): %w", pid, err)
	}
	t := &tmpfses{dir: filepath.Join(env.Dir, "tmpfs"), source: "tare-" + env.RunID, size: env.Workload.Tmpfs, space: space}
	if err := errors.Join(t.mount("trial"), t.unmount("trial")); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// folder returns a pod's folder, "" without a tmpfs.
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
		err = fmt.Errorf("%w: needs CAP_SYS_ADMIN, run tare as root: %w", err, subject.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("mount a tmpfs of %d bytes on %s, in the engine's mount namespace: %w", t.size, dir, err)
	}
	return nil
}

// unmount removes the tmpfs of a pod. A container that still uses it keeps it alive.
func (t *tmpfses) unmount(pod string) error {
	if t == nil {
		return nil
	}
	dir := t.folder(pod)
	err := t.inside(func() error { return unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // not mounted, or removed
		return fmt.Errorf("unmount %s, in the engine's mount namespace: %w", dir, err)
	}
	return mounts.RemoveTree(filepath.Join(t.dir, pod))
}

// close unmounts all of them.
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

// inside calls do in the engine's mount namespace.
func (t *tmpfses) inside(do func() error) error { return thread.InMounts(int(t.space.Fd()), do) }
