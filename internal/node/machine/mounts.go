package machine

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// mountinfoLimit has room for some fifty thousand mounts: a node with many
// containers has one for each of their layers and volumes.
const mountinfoLimit = 16 << 20

// mounts are a mount namespace, ready to be walked as the kernel walks it.
type mounts struct {
	all []*mountinfo.Info
	// on finds the mount that covers a path of another mount.
	on map[covering]*mountinfo.Info
}

type covering struct {
	parent int
	path   string
}

// outside stands for the mount that the process's root is on, when that mount
// itself is not in the list: after a chroot into a plain folder.
const outside = -1

func (r Root) mounts() (mounts, error) {
	data, err := r.own("mountinfo", mountinfoLimit)
	if err != nil {
		return mounts{}, err
	}
	return readMounts(bytes.NewReader(data))
}

func readMounts(r io.Reader) (mounts, error) {
	all, err := mountinfo.GetMountsFromReader(r, nil)
	if err != nil {
		return mounts{}, fmt.Errorf("parse mountinfo: %w", err)
	}
	listed := make(map[int]bool, len(all))
	for _, m := range all {
		listed[m.ID] = true
	}
	on := make(map[covering]*mountinfo.Info, len(all))
	for _, m := range all {
		parent := m.Parent
		if parent == m.ID || !listed[parent] {
			parent = outside
		}
		on[covering{parent, m.Mountpoint}] = m
	}
	return mounts{all: all, on: on}, nil
}

// at returns the mount that a path leads to, nil when it is on none in the
// list. Links are not followed.
func (m mounts) at(path string) *mountinfo.Info {
	current, id := m.top(nil, outside, "/")
	for end := 1; end <= len(path); end++ {
		if end == len(path) || path[end] == '/' {
			current, id = m.top(current, id, path[:end])
		}
	}
	return current
}

// top goes up from a mount to the one that was last mounted over it at a path.
func (m mounts) top(current *mountinfo.Info, id int, path string) (*mountinfo.Info, int) {
	// A list that was made up could go in a circle; a real one can't.
	for range m.all {
		next, ok := m.on[covering{id, path}]
		if !ok {
			break
		}
		current, id = next, next.ID
	}
	return current, id
}

// visible returns the mounts of a type that their own paths lead to. A mount
// that another one covers is still in mountinfo, and is of no use to anyone.
func (m mounts) visible(fsType string) []*mountinfo.Info {
	var found []*mountinfo.Info
	for _, info := range m.all {
		if info.FSType == fsType && m.at(info.Mountpoint) == info {
			found = append(found, info)
		}
	}
	return found
}

// fileSystem returns the type of the file system that a folder is on, or will
// be on when it is made.
func (r Root) fileSystem(dir string) string {
	path, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if r == "" {
		path = resolve(path)
	}
	m, err := r.mounts()
	if err != nil {
		return ""
	}
	info := m.at(path)
	if info == nil {
		return ""
	}
	return info.FSType
}

// resolve follows the links of the part of a path that exists.
func resolve(path string) string {
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = filepath.Dir(path)
		if path == "/" || !strings.HasPrefix(path, "/") {
			return filepath.Join(path, rest)
		}
	}
}
