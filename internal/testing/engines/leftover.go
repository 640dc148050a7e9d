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
	cgroupPrefix = "tare-engine-" // and an engine's id: the cgroup that is its own
	beforeName   = "before.json"
	sharedName   = "shared.lock" // it stays, in an empty folder
)

// fixed are folders that engines use whatever they are told, outermost first.
var fixed = []string{
	"/run/runc", "/run/crun", "/run/runsc", "/run/netns", "/run/libpod",
	"/run/containerd", "/run/containerd/s", "/run/containerd/runc", "/run/containerd/runsc", "/run/containerd/fifo",
	"/run/containers", "/run/containers/storage", "/run/crio", "/run/docker", "/run/docker/plugins",
	"/etc/containers", "/etc/cni", "/etc/cni/net.d", "/etc/crio",
	"/var/lib/cni", "/var/lib/containers", "/var/lib/crio", "/var/lib/kubelet", "/var/log/containers", "/var/cache/cni",
}

// usual are cgroups that engines make at the top, whatever they are told.
var usual = []string{"libpod_parent", "conmon", "k8s.io", "default", "crio"}

// baseDir is where the engines' folders are: a short path, for sockets' names
// are limited, and not on an overlay, for overlays can't be made there.
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

// sweep removes what dead set-ups left: those whose folder nobody has locked.
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
		if strings.HasPrefix(e.Name(), ".") { // about to get its name, unless it is old
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
				continue // alive
			}
			dead := about(dir)
			err = errors.Join(err, dead.erase(), lock.Close())
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil // removed in this moment
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// before is what was there before any engine was started.
type before struct {
	Folders []string
	Groups  []string // "HIERARCHY/NAME"
}

// lastOne is a share in the state of the machine: whoever gives up the last
// share removes what the engines made outside of their own roots.
type lastOne struct {
	base string
	lock *os.File
}

// first takes a share. Who takes the first one notes what is there.
func first(base string) (lastOne, error) {
	lock, err := os.OpenFile(filepath.Join(base, sharedName), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return lastOne{}, err
	}
	l := lastOne{base: base, lock: lock}
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			l.tidy() // what dead ones could not
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
		_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN) // the last one has just left
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

// leave gives the share up.
func (l lastOne) leave() error {
	if l.lock == nil {
		return nil
	}
	if err := unix.Flock(int(l.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		l.tidy()
	}
	return l.lock.Close()
}

// tidy removes the empty folders and cgroups that were not there before.
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
				_ = unix.Rmdir(f) // not if something is in it
			}
		}
		for _, g := range usualGroups() {
			if !slices.Contains(b.Groups, g) {
				_ = rmdir(g) // not if something runs in it
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

// removeGroups removes a cgroup and those below it, in every hierarchy.
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

// rmdir removes the cgroup at a path, and those below it, in which nothing runs.
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
		// A frozen group never lets go of its processes.
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

// containsPath says whether a text holds a path, not merely one that begins
// like it.
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
