package engine

import (
	"errors"
	"fmt"
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

// RootMade describes, among a target's facts, how tare makes root file systems.
const RootMade = "a folder that all share, read-only; with --image an overlay for each lane over its unpacked files"

// Root returns a lane's root file system, for targets that leave it to tare. All containers
// share one, unless they may write to it.
func Root(env subject.Env, lane int) string {
	if OwnRoot(env.Workload) {
		return filepath.Join(env.Dir, "rootfs-"+strconv.Itoa(lane))
	}
	return filepath.Join(env.Dir, "rootfs")
}

// OwnRoot reports whether each lane has its own root file system, which its containers may
// write to.
func OwnRoot(w subject.Workload) bool { return onRoot(w) || w.Cargo != nil }

// MakeRoots makes the root file systems of all lanes.
func MakeRoots(env subject.Env) (err error) {
	for n := range env.Lanes {
		if env.Workload.Cargo != nil {
			err = layRoot(env, n)
		} else {
			err = probe.Rootfs(Root(env, n), env.Workload.Files...)
		}
		if err != nil || !OwnRoot(env.Workload) {
			return err
		}
	}
	return nil
}

// layRoot mounts an overlay for a lane over the files of the user's image, which all lanes
// share.
func layRoot(env subject.Env, lane int) error {
	lower, err := env.Workload.Cargo.Root()
	if err != nil {
		return err
	}
	at, over := Root(env, lane), overlayDir(env, lane)
	for _, dir := range []string{at, over, over + "/upper", over + "/work"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the root file system: %w", err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", lower, over, over)
	if err := unix.Mount("tare-"+env.RunID, at, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount an overlay on %s: %w; set TARE_DATA_DIR to a folder on a file system that supports overlays, such as ext4 or xfs", at, err)
	}
	return addFiles(at, env.Workload)
}

func overlayDir(env subject.Env, lane int) string {
	return filepath.Join(env.Dir, "over-"+strconv.Itoa(lane))
}

// addFiles makes the mount points in the root of a user's image, and copies files into it. It
// follows no link out of the root.
func addFiles(at string, w subject.Workload) error {
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, m := range w.Cargo.Mounts {
		source, destination, _ := m.Parts()
		if err := mountPoint(root, source, destination); err != nil {
			return fmt.Errorf("mount %s: %w", m, err)
		}
	}
	for _, f := range w.Files {
		if err := f.Copy(root); err != nil {
			return err
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

// ClearRoot removes what a container wrote to its root file system, for the next container on
// the lane.
func ClearRoot(env subject.Env, lane int) error {
	if env.Workload.Cargo != nil {
		for _, dir := range []string{Root(env, lane), overlayDir(env, lane)} {
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
