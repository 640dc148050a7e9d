package kata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// overhead is the cgroup below which Kata's Go runtime has one for each sandbox,
// with what is in no pod's (docs/design/host-cgroups.md). Some versions leave it
// behind when the sandbox has gone.
const overhead = "kata_overhead"

// Folders in which both runtimes have one for each sandbox. A start whose client has gone
// leaves them for good.
const states = "/run/vc/sbs"

var folders = []string{states, "/run/vc/vm", "/run/kata", "/run/kata-containers/shared/sandboxes"}

// networks is where the Go runtime makes a network namespace for a sandbox that is given none
// (NewNS of containernetworking/plugins, which names them cnitest-UUID).
const networks, networkPrefix = "/run/netns", "cnitest-"

// Sandboxes are the ids of sandboxes of which Kata keeps something, as far as they are mine.
// Root is "" but for tests.
func Sandboxes(root string, hs []cgroup.Hierarchy, mine func(id string) bool) []string {
	var ids []string
	for _, dir := range places(root, hs) {
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

// places are the folders that have one for each sandbox.
func places(root string, hs []cgroup.Hierarchy) (dirs []string) {
	for _, h := range hs {
		dirs = append(dirs, filepath.Join(h.Mount, overhead))
	}
	for _, dir := range folders {
		dirs = append(dirs, root+dir)
	}
	return dirs
}

// Of are the folders and cgroups that Kata keeps of a sandbox. A cgroup has its path from the
// root of the hierarchies, once.
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

// Remove removes what Kata keeps of a sandbox that has gone, and returns it. What a process
// still uses was not left behind and stays; the error has the command that removes it.
func Remove(root string, hs []cgroup.Hierarchy, id string) (removed []string, err error) {
	if users := procs.Mentioning([]string{id}); len(users) > 0 {
		return nil, fmt.Errorf("%s stays: process %d (%s) uses it; when that has ended: tare clean", strings.Join(Of(root, hs, id), ", "), users[0].Pid, users[0].Name)
	}
	var errs []error
	for _, what := range Of(root, hs, id) {
		var err error
		if what == OverheadPath(id) {
			err = removeGroups(hs, id)
		} else if err = mounts.RemoveTree(what); err != nil {
			err = fmt.Errorf("%w, which Kata left: umount -R %[2]s; rm -r --one-file-system %[2]s", err, what)
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
			errs = append(errs, fmt.Errorf("rmdir %s, which Kata left: %w; cat %[1]s/cgroup.procs lists what uses it", dir, err))
		}
	}
	return errors.Join(errs...)
}

// dying is how long the processes of a sandbox that was removed may take to go.
const dying = 5 * time.Second

// OverheadPath is the path of a sandbox's overhead cgroup from the root of the hierarchies.
func OverheadPath(id string) string { return "/" + overhead + "/" + id }

// stateLimit bounds what is read of a sandbox's state: that of one with a hundred devices has
// some 100 KiB.
const stateLimit = 4 << 20

// State is what the Go runtime has written down of a sandbox, "" for none.
func State(root, id string) string {
	f, err := machine.OpenPlain(filepath.Join(root+states, id, "persist.json"), 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, _ := io.ReadAll(io.LimitReader(f, stateLimit))
	return string(text)
}

// Network is the inode of the network namespace that Kata made for a sandbox, 0 where that is
// not known (NetworkInfo in virtcontainers/persist/api/network.go).
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

// NetworkOf is the inode of a process's network namespace, 0 where it has this process's or
// that of the first, or it is not known.
func NetworkOf(pid int) uint64 {
	space := procs.Namespace(pid, "net")
	if space == procs.Namespace(0, "net") || space == procs.Namespace(1, "net") {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(space, "net:["), "]"), 10, 64)
	return n
}

// Networks are the names of the network namespaces of Kata's making that nothing is in: those of
// the given inodes are mine, of the others it is not known to which sandbox they belonged.
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

// RemoveNetwork removes the name of a network namespace, and with it one that nothing is in.
func RemoveNetwork(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // no mount any more
		if err = os.Remove(path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("remove the network namespace that Kata left: %w; ip netns delete %s", err, filepath.Base(path))
	}
	return nil
}
