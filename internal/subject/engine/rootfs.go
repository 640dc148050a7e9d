package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
)

// Root is a lane's root file system, where tare itself makes it. All containers
// share one; where their files are to lie in it, each lane has its own.
func Root(env subject.Env, lane int) string {
	if OnRoot(env.Workload) {
		return filepath.Join(env.Dir, "rootfs-"+strconv.Itoa(lane))
	}
	return filepath.Join(env.Dir, "rootfs")
}

// MakeRoots makes those of all lanes.
func MakeRoots(env subject.Env) error {
	for n := range env.Lanes {
		if err := probe.Rootfs(Root(env, n), env.Workload.Files...); err != nil {
			return err
		}
		if !OnRoot(env.Workload) {
			break
		}
	}
	return nil
}

// ClearRoot takes away what a container left on its root file system, so that the
// next one on the lane has a fresh one.
func ClearRoot(env subject.Env, lane int) error {
	if !OnRoot(env.Workload) {
		return nil
	}
	data := filepath.Join(Root(env, lane), subject.VolumePath)
	return errors.Join(mounts.RemoveTree(data), os.Mkdir(data, 0o755))
}
