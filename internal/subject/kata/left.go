package kata

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// overhead is the parent of cgroups with one sandbox each. Kata's Go runtime puts processes
// there that are outside of the pod's cgroup (docs/design/host-cgroups.md). Some versions leave
// these cgroups behind.
const overhead = "kata_overhead"

// states and the other folders have one subfolder per sandbox. An abandoned start leaves its
// subfolders behind.
const states = "/run/vc/sbs"

var folders = []string{states, "/run/vc/vm", "/run/kata", "/run/kata-containers/shared/sandboxes"}

// networks is the folder of network namespaces that the Go runtime makes for sandboxes without
// one, called cnitest-UUID (NewNS of containernetworking/plugins).
const networks, networkPrefix = "/run/netns", "cnitest-"

// Sandboxes returns the ids of sandboxes with remains of Kata, if mine accepts them. root is ""
// except in tests.
func Sandboxes(root string, hs []cgroup.Hierarchy, mine func(id string) bool) []string {
	var dirs, ids []string
	for _, h := range hs {
		dirs = append(dirs, filepath.Join(h.Mount, overhead))
	}
	for _, dir := range folders {
		dirs = append(dirs, root+dir)
	}
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir) // most machines have none
		for _, e := range entries {
			if e.IsDir() && mine(e.Name()) {
				ids = append(ids, e.Name())
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Of returns the folders and cgroups that Kata keeps of a sandbox. A cgroup is listed once, by
// its path from the root of the hierarchies.
func Of(root string, hs []cgroup.Hierarchy, id string) (all []string) {
	if slices.ContainsFunc(hs, func(h cgroup.Hierarchy) bool { return isFolder(filepath.Join(h.Mount, overhead, id)) }) {
		all = append(all, OverheadPath(id))
	}
	for _, dir := range folders {
		if dir = filepath.Join(root+dir, id); isFolder(dir) {
			all = append(all, dir)
		}
	}
	return all
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// Remove removes what Kata keeps of an ended sandbox, and returns the removed paths. It removes
// nothing that a process uses; the error has the command for what stays.
func Remove(root string, hs []cgroup.Hierarchy, id string) (removed []string, err error) {
	if users := procs.Mentioning([]string{id}); len(users) > 0 {
		return nil, fmt.Errorf("%s stays: process %d (%s) uses it; run tare clean after its end", strings.Join(Of(root, hs, id), ", "), users[0].Pid, users[0].Name)
	}
	var errs []error
	for _, what := range Of(root, hs, id) {
		var err error
		if what == OverheadPath(id) {
			err = removeGroups(hs, id)
		} else if err = mounts.RemoveTree(what); err != nil {
			err = fmt.Errorf("%w; left by Kata: umount -R %[2]s; rm -r --one-file-system %[2]s", err, what)
		}
		if errs = append(errs, err); err == nil {
			removed = append(removed, what)
		}
	}
	return removed, errors.Join(errs...)
}

func removeGroups(hs []cgroup.Hierarchy, id string) error {
	var errs []error
	for _, h := range hs {
		dir := filepath.Join(h.Mount, overhead, id)
		err := unix.Rmdir(dir)
		for until := time.Now().Add(dying); errors.Is(err, unix.EBUSY) && time.Now().Before(until); err = unix.Rmdir(dir) {
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("rmdir %s, left by Kata: %w; see cat %[1]s/cgroup.procs", dir, err))
		}
	}
	return errors.Join(errs...)
}

// dying bounds the wait for the processes of a removed sandbox to end.
const dying = 5 * time.Second

// OverheadPath returns the path of a sandbox's overhead cgroup from the root of the hierarchies.
func OverheadPath(id string) string { return "/" + overhead + "/" + id }

// stateLimit bounds a sandbox's state. With a hundred devices it has about 100 KiB.
const stateLimit = 4 << 20

// State returns the state that the Go runtime saved for a sandbox, "" for none.
func State(root, id string) string {
	text, _ := machine.ReadPlain(filepath.Join(root+states, id, "persist.json"), 0, stateLimit)
	return string(text)
}

// Network returns the inode of the network namespace that Kata made for a sandbox, 0 if unknown
// (NetworkInfo in virtcontainers/persist/api/network.go).
func Network(root, id string) uint64 {
	var state struct {
		Network struct {
			NetworkID      string
			NetworkCreated bool
		}
	}
	if json.Unmarshal([]byte(State(root, id)), &state) != nil || !state.Network.NetworkCreated {
		return 0
	}
	return inode(filepath.Join(root+networks, filepath.Base(state.Network.NetworkID)))
}

func inode(path string) uint64 {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// NetworkOf returns the inode of a process's network namespace; 0 if it is this process's or
// that of pid 1, or unknown.
func NetworkOf(pid int) uint64 {
	space := procs.Namespace(pid, "net")
	if space == procs.Namespace(0, "net") || space == procs.Namespace(1, "net") {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(space, "net:["), "]"), 10, 64)
	return n
}

// Networks returns the paths of unused network namespaces that Kata made. mine are those with
// the given inodes. unknown are the others, whose sandboxes are not known.
func Networks(root string, inodes map[uint64]bool) (mine, unknown []string) {
	all, _ := filepath.Glob(root + networks + "/" + networkPrefix + "*")
	if len(all) == 0 {
		return nil, nil
	}
	used := map[uint64]bool{}
	for _, pid := range procs.All() {
		used[NetworkOf(pid)] = true
	}
	for _, path := range all {
		switch n := inode(path); {
		case n == 0 || used[n]:
		case inodes[n]:
			mine = append(mine, path)
		default:
			unknown = append(unknown, path)
		}
	}
	return mine, unknown
}

// RemoveNetwork removes the name of a network namespace, and with it an unused namespace.
func RemoveNetwork(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // not mounted
		if err = os.Remove(path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("remove the network namespace left by Kata: %w; ip netns delete %s", err, filepath.Base(path))
	}
	return nil
}
