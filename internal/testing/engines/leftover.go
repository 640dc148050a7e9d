package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
)

const (
	cgroupPrefix = "tare-engine-" // followed by an engine's id: its own cgroup
	beforeName   = "before.json"
	sharedName   = "shared.lock" // stays, in an empty folder
)

// fixed are folders that engines use regardless of their configuration, outermost first.
var fixed = []string{
	"/run/runc", "/run/crun", "/run/runsc", "/run/netns", "/run/libpod",
	"/run/containerd", "/run/containerd/s", "/run/containerd/runc", "/run/containerd/runsc", "/run/containerd/fifo",
	"/run/containers", "/run/containers/storage", "/run/crio", "/run/docker", "/run/docker/plugins",
	"/etc/containers", "/etc/cni", "/etc/cni/net.d", "/etc/crio",
	"/var/lib/cni", "/var/lib/containers", "/var/lib/crio", "/var/lib/kubelet", "/var/log/containers", "/var/cache/cni",
}

// usual are top-level cgroups that engines create regardless of their configuration.
var usual = []string{"libpod_parent", "conmon", "k8s.io", "default", "crio"}

// baseDir is the parent of the engines' folders. Its path is short, because socket paths
// are limited. It is not on an overlay, because overlays cannot be nested there.
func baseDir() (string, error) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/var/lib", "/dev/shm"} {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || st.Type == unix.OVERLAYFS_SUPER_MAGIC {
			continue
		}
		base := filepath.Join(dir, "tare-engines")
		return base, os.MkdirAll(base, 0o755)
	}
	return "", errors.New("no folder that is not on an overlay: mount a tmpfs at /var/tmp")
}

func newID() string {
	return strconv.FormatInt(time.Now().UnixNano()&0xffffffff<<12|int64(os.Getpid()&0xfff), 36)
}

// sweep removes the leftovers of dead set-ups, whose folders are not locked.
func sweep(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() {
			continue
		}
		if strings.HasPrefix(e.Name(), ".") { // a folder that is about to get its final name, unless it is old
			if time.Since(info.ModTime()) > time.Minute {
				errs = append(errs, os.RemoveAll(dir))
			}
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err == nil {
			err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			if errors.Is(err, unix.EWOULDBLOCK) {
				_ = lock.Close()
				continue // still running
			}
			dead := about(dir)
			err = errors.Join(err, dead.erase(), lock.Close())
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil // removed concurrently
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// before is the state before the first engine was started.
type before struct {
	Folders []string
	Groups  []string // "HIERARCHY/NAME"
}

// lastOne is a share in the state of the machine. The last holder removes what engines
// created outside of their roots.
type lastOne struct {
	base string
	lock *os.File
}

// first takes a share. The first holder records the existing state.
func first(base string) (lastOne, error) {
	lock, err := os.OpenFile(filepath.Join(base, sharedName), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return lastOne{}, err
	}
	l := lastOne{base: base, lock: lock}
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			l.tidy() // clean up after holders that died
			err = l.note()
			return l, errors.Join(err, unix.Flock(int(lock.Fd()), unix.LOCK_SH))
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return l, fmt.Errorf("lock %s: %w", base, err)
		}
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH); err != nil {
			return l, fmt.Errorf("lock %s: %w", base, err)
		}
		if _, err := os.Stat(filepath.Join(base, beforeName)); err == nil {
			return l, nil
		}
		_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN) // the last holder has just left
	}
}

func (l lastOne) note() error {
	var b before
	for _, f := range fixed {
		if _, err := os.Stat(f); err == nil {
			b.Folders = append(b.Folders, f)
		}
	}
	for _, g := range usualGroups() {
		if _, err := os.Stat(g); err == nil {
			b.Groups = append(b.Groups, g)
		}
	}
	text, err := json.Marshal(b)
	return errors.Join(err, os.MkdirAll(l.base, 0o755), os.WriteFile(filepath.Join(l.base, beforeName), text, 0o600))
}

// leave releases the share.
func (l lastOne) leave() error {
	if l.lock == nil {
		return nil
	}
	if err := unix.Flock(int(l.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		l.tidy()
	}
	return l.lock.Close()
}

// tidy removes the empty folders and cgroups that did not exist before.
func (l lastOne) tidy() {
	file := filepath.Join(l.base, beforeName)
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	var b before
	if json.Unmarshal(text, &b) == nil {
		for _, f := range slices.Backward(fixed) {
			if !slices.Contains(b.Folders, f) {
				_ = unix.Rmdir(f) // fails if it is not empty
			}
		}
		for _, g := range usualGroups() {
			if !slices.Contains(b.Groups, g) {
				_ = rmdir(g) // fails if it has processes
			}
		}
	}
	_ = os.Remove(file)
}

func usualGroups() []string {
	hs, _ := cgroup.Hierarchies()
	var out []string
	for _, h := range hs {
		for _, name := range usual {
			out = append(out, filepath.Join(h.Mount, name))
		}
	}
	return out
}

// removeGroups removes a cgroup and its descendants in every hierarchy.
func removeGroups(name string) error {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range hs {
		errs = append(errs, rmdir(filepath.Join(h.Mount, name)))
	}
	return errors.Join(errs...)
}

// rmdir removes the cgroup at a path and its descendants that have no processes.
func rmdir(dir string) error {
	var groups []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	var errs []error
	for _, g := range slices.Backward(groups) {
		// The processes of a frozen cgroup never exit.
		_ = os.WriteFile(filepath.Join(g, "freezer.state"), []byte("THAWED"), 0o644)
		if err := unix.Rmdir(g); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("rmdir %s: %w", g, err))
		}
	}
	return errors.Join(errs...)
}

func alive(pid int) bool {
	s, err := procs.StatOf(pid)
	return err == nil && !s.Ended()
}

// containsPath reports whether a text contains a path, and not just a path with that
// prefix.
func containsPath(text, path string) bool {
	for {
		_, after, found := strings.Cut(text, path)
		if !found {
			return false
		}
		if after == "" || strings.IndexByte("/ \n\x00,:\"'", after[0]) >= 0 {
			return true
		}
		text = after
	}
}
