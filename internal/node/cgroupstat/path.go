package cgroupstat

import (
	"fmt"
	"path"
	"strings"
)

// pathLimit is more than the kernel shows: PATH_MAX.
const pathLimit = 4096

// clean checks a path as it is in /proc/PID/cgroup: from the root of the
// hierarchies, whatever is mounted where. A path with ".." is of a group outside
// of tare's own cgroup namespace, and has no place below the mounts.
func clean(p string) (string, error) {
	bad := !strings.HasPrefix(p, "/") || len(p) >= pathLimit || strings.ContainsRune(p, 0)
	for part := range strings.SplitSeq(p, "/") {
		bad = bad || part == ".."
	}
	if bad {
		return "", fmt.Errorf("cgroup %.200q: %w: want one that begins with / and has no .. in it", p, errPath)
	}
	return path.Clean(p), nil
}

// below returns where a group lies below the mountpoint of a hierarchy, relative
// to it. A mount that shows only a part of its hierarchy, as a container's does,
// has no other groups.
func (t *tree) below(p string) (string, bool) {
	if t.Root != "/" {
		rest, ok := strings.CutPrefix(p, t.Root)
		if !ok || (rest != "" && rest[0] != '/') || strings.Contains(t.Root, "..") {
			return "", false
		}
		p = rest
	}
	if p = strings.Trim(p, "/"); p == "" {
		p = "."
	}
	return p, true
}
