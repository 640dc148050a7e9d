package machine

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// mountinfoLimit allows some fifty thousand mounts; a node has one per layer and volume.
const mountinfoLimit = 16 << 20

// mounts is a mount namespace. It resolves paths to mounts as the kernel does.
type mounts struct {
	all []*mountinfo.Info
	on  map[covering]*mountinfo.Info // the mount on a path of another mount
}

type covering struct {
	parent int
	path   string
}

// outside stands for the mount of the process's root if the list lacks it, as after a
// chroot into a plain folder.
const outside = -1

func (r Root) mounts() (mounts, error) {
	data, err := r.ThreadFile("mountinfo", mountinfoLimit)
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

// at returns the mount of a path, or nil. It does not follow symbolic links.
func (m mounts) at(path string) *mountinfo.Info {
	current, id := m.top(nil, outside, "/")
	for end := 1; end <= len(path); end++ {
		if end == len(path) || path[end] == '/' {
			current, id = m.top(current, id, path[:end])
		}
	}
	return current
}

// top returns the topmost mount at a path of a mount.
func (m mounts) top(current *mountinfo.Info, id int, path string) (*mountinfo.Info, int) {
	// A forged list could have a cycle.
	for range m.all {
		next, ok := m.on[covering{id, path}]
		if !ok {
			break
		}
		current, id = next, next.ID
	}
	return current, id
}

// visible returns the mounts of a type without those that another mount covers.
func (m mounts) visible(fsType string) []*mountinfo.Info {
	var found []*mountinfo.Info
	for _, info := range m.all {
		if info.FSType == fsType && m.at(info.Mountpoint) == info {
			found = append(found, info)
		}
	}
	return found
}

// fileSystem returns the type of the file system of a folder, which need not exist yet.
func (r Root) fileSystem(dir string) string {
	path, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if r == "" {
		path = resolve(path)
	}
	m, _ := r.mounts() // without any, nothing is found
	if info := m.at(path); info != nil {
		return info.FSType
	}
	return ""
}

// resolve follows symbolic links in the existing part of a path.
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
