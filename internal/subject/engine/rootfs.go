package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
)

// RootMade says, for the facts of a target, how root file systems are made that tare makes.
const RootMade = "a folder that all share, read-only; with --image an overlay for each lane over its unpacked files"

// Root is a lane's root file system, where tare itself makes it. All containers
// share one; where they may write to it, each lane has its own.
func Root(env subject.Env, lane int) string {
	if OwnRoot(env.Workload) {
		return filepath.Join(env.Dir, "rootfs-"+strconv.Itoa(lane))
	}
	return filepath.Join(env.Dir, "rootfs")
}

// OwnRoot tells whether each lane has its own root file system, which its containers may
// write to.
func OwnRoot(w subject.Workload) bool { return onRoot(w) || w.Cargo != nil }

// MakeRoots makes those of all lanes.
func MakeRoots(env subject.Env) error {
	for n := range env.Lanes {
		if err := makeRoot(env, n); err != nil {
			return err
		}
		if !OwnRoot(env.Workload) {
			break
		}
	}
	return nil
}

func makeRoot(env subject.Env, lane int) error {
	if env.Workload.Cargo == nil {
		return probe.Rootfs(Root(env, lane), env.Workload.Files...)
	}
	return layRoot(env, lane)
}

// layRoot lays a folder of the lane's own over the files of the user's image, which all
// lanes share.
func layRoot(env subject.Env, lane int) error {
	lower, err := env.Workload.Cargo.Root()
	if err != nil {
		return err
	}
	at, over := Root(env, lane), over(env, lane)
	for _, dir := range []string{at, over, over + "/upper", over + "/work"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the root file system: %w", err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", lower, over, over)
	if err := unix.Mount("tare-"+env.RunID, at, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount an overlay on %s: %w; its folders have to be on a file system that can be the upper one of an overlay, such as ext4 or xfs: set TARE_DATA_DIR", at, err)
	}
	return furnish(at, env.Workload)
}

func over(env subject.Env, lane int) string {
	return filepath.Join(env.Dir, "over-"+strconv.Itoa(lane))
}

// furnish makes what is mounted on in the root of a user's image, and carries files into
// it. What links in the image lead out of it to is refused.
func furnish(at string, w subject.Workload) error {
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, m := range w.Cargo.Mounts {
		source, destination, _ := m.Parts()
		if err := mountPoint(root, source, destination); err != nil {
			return fmt.Errorf("the mount %s: %w", m, err)
		}
	}
	for _, f := range w.Files {
		if err := carry(root, f); err != nil {
			return fmt.Errorf("carry %s into the root file system: %w", f.Source, err)
		}
	}
	return nil
}

func mountPoint(root *os.Root, source, destination string) error {
	name := strings.TrimPrefix(destination, "/")
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func carry(root *os.Root, f probe.File) error {
	content, err := os.ReadFile(f.Source)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(path.Clean("/"+f.Path), "/")
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.WriteFile(name, content, 0o600); err != nil {
		return err
	}
	return root.Chmod(name, f.Mode.Perm())
}

// ClearRoot takes away what a container left on its root file system, so that the
// next one on the lane has a fresh one.
func ClearRoot(env subject.Env, lane int) error {
	if env.Workload.Cargo != nil {
		for _, dir := range []string{Root(env, lane), over(env, lane)} { // nothing is laid over what is still there
			if err := mounts.RemoveTree(dir); err != nil {
				return err
			}
		}
		return layRoot(env, lane)
	}
	if !onRoot(env.Workload) {
		return nil
	}
	data := filepath.Join(Root(env, lane), subject.VolumePath)
	return errors.Join(mounts.RemoveTree(data), os.Mkdir(data, 0o755))
}
